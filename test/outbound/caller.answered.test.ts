import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { judge } from '../../src/outbound/reply.ts'
import { calling, classOf, create, KEY, patient, serving } from './misbehaving.ts'

/** Status, content type and body of an answer, and what is read from it. */
const whole: readonly [status: number, type: string, body: string, json: unknown][] = [
  [200, 'application/json', '{"id":"1"}', { id: '1' }],
  [200, 'application/vnd.api+json; charset=utf-8', '\n{"id":"ü"}', { id: 'ü' }],
  [201, 'text/html', '{"id":"1"}', { id: '1' }],
  [200, 'text/html', '<p>Welcome', undefined],
  [200, 'application/json', '{"id":"1', undefined],
  [202, 'application/json', '', undefined],
  [204, 'application/json', '', undefined],
  [400, 'application/json', '{"message":"bad"}', { message: 'bad' }],
  [404, 'text/html', '<h1>Not found', undefined],
  [408, 'text/plain', '', undefined],
  [499, 'application/json', 'null', null],
]

describe('an answer that arrived whole is answered, for the caller to judge', { timeout: 60_000 }, () => {
  for (const [status, type, body, json] of whole) {
    test(`${status} of ${type}: ${JSON.stringify(body)}`, async t => {
      const { base } = await serving(t, response => {
        response.writeHead(status, { 'content-type': type, 'X-Twice': ['a', 'b'] }).end(body)
      })
      const outcome = await calling(t, base)(create, patient)
      assert.equal(classOf(outcome), 'answered')
      assert.ok(outcome.is === 'answered')
      assert.deepEqual([outcome.status, outcome.json], [status, json])
      assert.deepEqual([outcome.fields['content-type'], outcome.fields['x-twice']], [type, 'a, b'])
    })
  }

  test('an interim answer before it does no harm', async t => {
    const { base } = await serving(t, response => {
      response.writeEarlyHints({ link: '</x>; rel=preload' })
      response.end('{"id":"1"}')
    })
    const outcome = await calling(t, base)(create, patient)
    assert.deepEqual(outcome.is === 'answered' && [outcome.status, outcome.json], [200, { id: '1' }])
  })

  test('what a 4xx says goes to the log without what was sent, and without the key', async t => {
    const { base } = await serving(t, response => {
      const message = `the contact ADA@example.com (ada%40example.com, lovelace) is odd; key ${KEY}`
      response.writeHead(422).end(JSON.stringify({ code: 'odd', message, dump: 'Ada' }))
    })
    const call = { ...create, query: { search: 'ada@example.com' } }
    const outcome = await calling(t, base)(call, patient)
    assert.equal(classOf(outcome), 'answered')
    const summary = 'create a contact: answered with 422 (odd, the contact … … …) is odd; key …)'
    assert.equal(outcome.is === 'answered' && outcome.summary, summary)
  })

  test('what is sent: path and query after the base, the fields of both, the body as JSON or as it is', async t => {
    const { base, received } = await serving(t, response => response.end('{}'))
    const call = calling(t, `${base}/api/v3`)
    await call({ ...create, query: { 'a b': 'c&d=é' }, headers: { 'idempotency-key': 'evt_1' } }, patient)
    await call({ to: 'look', method: 'GET', path: '/me' }, patient)
    await call({ to: 'tell', method: 'PUT', path: '/hook', body: '{"is": "signed"}' }, patient)
    assert.deepEqual(
      received.map(({ method, url, body }) => `${method} ${url} ${body}`),
      [
        `POST /api/v3/contacts?a+b=c%26d%3D%C3%A9 ${JSON.stringify(create.body)}`,
        'GET /api/v3/me ',
        'PUT /api/v3/hook {"is": "signed"}',
      ],
    )
    assert.deepEqual(
      received.map(({ headers }) => [headers.authorization, headers['content-type'], headers['idempotency-key']]),
      [
        [`Bearer ${KEY}`, 'application/json', 'evt_1'],
        [`Bearer ${KEY}`, undefined, undefined],
        [`Bearer ${KEY}`, 'application/json', undefined],
      ],
    )
  })

  test('a connection that was closed while idle is replaced, and the call is answered', async t => {
    const { base, received, sockets, connections } = await serving(t, response => response.end('{}'))
    const call = calling(t, base, { rate: { calls: 1_000, per: 1_000, connections: 1 } })
    for (let i = 0; i < 3; i++) assert.equal(classOf(await call(create, patient)), 'answered')
    assert.equal(connections(), 1)
    for (let i = 0; i < 5; i++) {
      for (const socket of sockets) socket.end()
      while (sockets.size > 0) await new Promise(resolve => setTimeout(resolve, 10))
      assert.equal(classOf(await call(create, patient)), 'answered')
    }
    assert.deepEqual([connections(), received.length], [6, 8])
  })
})

describe('a redirect is misconfigured, and nothing goes to where it points', { timeout: 60_000 }, () => {
  for (const status of [301, 302, 303, 304, 307, 308]) {
    test(`${status}`, async t => {
      const elsewhere = await serving(t, response => response.end('{"id":"1"}'))
      const { base } = await serving(t, response => {
        response.writeHead(status, { location: `${elsewhere.base}/contacts` }).end()
      })
      const outcome = await calling(t, base)(create, patient)
      assert.equal(classOf(outcome), 'misconfigured')
      assert.equal(elsewhere.connections(), 0, 'neither body nor key are for anybody else')
    })
  }
})

describe('what a status means where nothing more is known', () => {
  const reply = { is: 'answered', safe: false, fields: {}, json: undefined, summary: 'told' } as const
  const meant = { 200: 'unclear', 204: 'unclear', 400: 'misconfigured', 401: 'misconfigured', 404: 'misconfigured' }
  for (const [status, is] of Object.entries({ ...meant, 408: 'unreached', 410: 'misconfigured', 425: 'unreached' })) {
    test(`${status}: ${is}`, () => {
      const outcome = judge({ ...reply, status: Number(status) })
      assert.equal(outcome.is, is)
      assert.match(outcome.why, /^told/)
    })
  }

  test('a look that makes no sense, or fails, has changed nothing in any case', () => {
    assert.equal(judge({ ...reply, safe: true, status: 200 }).is, 'unreached')
  })
})
