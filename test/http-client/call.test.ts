import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { Worker } from 'node:worker_threads'
import { type Call, call, deadline, excerpt, type Reply } from '../../src/http-client/call.ts'
import { freePort, listening } from '../harness/port.ts'
import { type Deed, startReceiver } from '../harness/receiver.ts'
import { fixture } from '../harness/tls.ts'

const KEY = 'sk_live_0123456789abcdef'
const never = new AbortController().signal

/** With everything that must never be in a log. */
const create = (url: string, more: Partial<Call> = {}): Promise<Reply> =>
  call({
    action: 'create a contact',
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${KEY}` },
    body: { email: 'ada@example.com', name: 'Ada Lovelace' },
    signal: never,
    ...more,
  })

const serving = (t: TestContext, deed: Deed) => startReceiver(t, () => deed)

/** What a reply is, once its reason is seen to be one line that betrays nothing. */
function outcome({ is, why }: Reply): string {
  assert.match(why, /^create a contact: [^\n]+$/)
  assert.doesNotMatch(why, /ada|@|example|sk_live|0123456789abcdef/i)
  return is
}

test('what is sent: the address as it is, the headers, the body as JSON or as it is', async t => {
  const { url, received } = await serving(t, response => response.end('{}'))
  await create(`${url}/api/v3/contacts?a+b=c%26d`, { headers: { 'idempotency-key': 'evt_1' } })
  await create(`${url}/hook`, { method: 'PUT', body: '{"is": "signed"}' })
  await create(`${url}/me`, { method: 'GET', body: undefined })
  assert.deepEqual(
    received.map(({ method, path, query, text, headers }) => [method, path, query, text, headers['content-type']]),
    [
      [
        'POST',
        '/api/v3/contacts',
        { 'a b': 'c&d' },
        '{"email":"ada@example.com","name":"Ada Lovelace"}',
        'application/json',
      ],
      ['PUT', '/hook', {}, '{"is": "signed"}', 'application/json'],
      ['GET', '/me', {}, '', undefined],
    ],
  )
  assert.equal(received[0]!.headers['idempotency-key'], 'evt_1')
})

describe('an answer', () => {
  const answers: readonly [status: number, headers: Record<string, string>, body: string, is: string, json: unknown][] =
    [
      [200, {}, '{"id":"ü"}', 'ok', { id: 'ü' }],
      [204, {}, '', 'ok', undefined],
      [302, { location: 'https://elsewhere.example' }, '', 'misconfigured', undefined],
      [400, {}, '{"message":"ADA@example.com is odd"}', 'refused', { message: 'ADA@example.com is odd' }],
      [401, {}, `the key ${KEY} is bad`, 'misconfigured', undefined],
      [403, {}, 'null', 'misconfigured', null],
      [404, {}, '{"id":"1', 'refused', undefined],
      [500, {}, 'ada%40example.com broke it', 'in doubt', undefined],
      [503, {}, '', 'unreachable', undefined],
    ]
  for (const [status, headers, body, is, json] of answers) {
    test(`of ${status} with ${JSON.stringify(body)} is ${is}`, async t => {
      const { url, received } = await serving(t, response => response.writeHead(status, headers).end(body))
      const reply = await create(url)
      assert.deepEqual([outcome(reply), reply.status, reply.json], [is, status, json])
      assert.equal(received.length, 1)
    })
  }

  test('to a call that is safe leaves no doubt', async t => {
    const { url } = await serving(t, (response, { query }) =>
      'reset' in query ? response.socket?.resetAndDestroy() : response.writeHead(500).end(),
    )
    for (const more of [{ method: 'GET', body: undefined }, { safe: true }] as const) {
      for (const each of [url, `${url}/?reset`]) assert.equal(outcome(await create(each, more)), 'unreachable')
    }
  })

  const waits: readonly [status: number, headers: Record<string, string>, is: string, seconds?: number][] = [
    [429, {}, 'rate limited', 5],
    [429, { 'retry-after': '7' }, 'rate limited', 7],
    [429, { 'retry-after': '0' }, 'rate limited', 0],
    [429, { 'retry-after': 'soon', 'ratelimit-reset': '1.5' }, 'rate limited', 1.5],
    [429, { 'x-sib-ratelimit-reset': '9' }, 'rate limited', 9],
    [429, { 'retry-after': 'Sat, 21 Nov 2020 12:00:10 GMT' }, 'rate limited', 0],
    [503, { 'retry-after': '7' }, 'rate limited', 7],
  ]
  for (const [status, headers, is, seconds] of waits) {
    test(`of ${status} with ${JSON.stringify(headers)} asks to wait ${seconds} s`, async t => {
      const { url } = await serving(t, response => response.writeHead(status, headers).end())
      const reply = await create(url)
      assert.deepEqual([outcome(reply), 'retryAfter' in reply && reply.retryAfter], [is, seconds! * 1_000])
    })
  }
})

/** What a server does once it has read the whole request, and so may have done what it was asked to. */
const afterReading: Readonly<Record<string, Deed>> = {
  'resets the connection': response => response.socket?.resetAndDestroy(),
  'speaks something else': response => response.socket?.end('+OK POP3 ready\r\n'),
  'says nothing': () => {},
}

describe('a call that arrived and was not answered is in doubt', () => {
  for (const [what, deed] of Object.entries(afterReading)) {
    test(`the other side ${what}`, async t => {
      const { url, received } = await serving(t, deed)
      assert.equal(outcome(await create(url, { signal: deadline(1_000, never) })), 'in doubt')
      assert.equal(received.length, 1, 'it is never sent a second time by itself')
    })
  }

  test('the deadline and the stop are told apart', async t => {
    const { url, arrived } = await serving(t, () => {})
    assert.match((await create(url, { signal: deadline(100, never) })).why, /no answer in time/)
    const stop = new AbortController()
    const stopped = create(url, { signal: deadline(20_000, stop.signal) })
    await arrived(2)
    stop.abort()
    assert.match((await stopped).why, /aborted by shutdown/)
  })
})

describe('a 2xx whose body does not arrive is ok, without a body', () => {
  const bodies: Readonly<Record<string, Deed>> = {
    'too long': response => response.end(JSON.stringify({ id: 'x'.repeat(100_000) })),
    'cut off': response => {
      response.writeHead(200, { 'content-length': '100' }).write('{"id":')
      setTimeout(() => response.socket?.resetAndDestroy(), 50)
    },
  }
  for (const [what, deed] of Object.entries(bodies)) {
    test(what, async t => {
      const { url } = await serving(t, deed)
      const reply = await create(url, { signal: deadline(1_000, never) })
      assert.deepEqual([outcome(reply), reply.status, reply.json], ['ok', 200, undefined])
    })
  }
})

describe('a call that was not sent is unreachable: certainly without effect', () => {
  test('a port that nobody listens on', async () => {
    assert.equal(outcome(await create(`http://127.0.0.1:${await freePort()}`)), 'unreachable')
  })

  test('a name that does not exist', async () => {
    // A label of more than 63 characters (RFC 1035 §2.3.4) is refused without asking anybody.
    assert.equal(outcome(await create(`http://${'x'.repeat(64)}.test`)), 'unreachable')
  })

  test('a host that drops packets', async t => {
    assert.equal(outcome(await create(`http://127.0.0.1:${await blackHole(t)}`)), 'unreachable')
  })

  test('a process that stops', async t => {
    const { url, received } = await serving(t, response => response.end('{}'))
    assert.equal(outcome(await create(url, { signal: AbortSignal.abort() })), 'unreachable')
    assert.deepEqual(received, [])
  })

  test('a certificate that nobody vouches for: neither body nor key are sent', async t => {
    let heard = ''
    const pair = { cert: readFileSync(fixture('first.crt')), key: readFileSync(fixture('first.key')) }
    const server = createTlsServer(pair, socket => {
      socket
        .on('error', () => {})
        .on('data', chunk => {
          heard += chunk
        })
    })
    const url = await listening(t, server)
    assert.equal(outcome(await create(url.replace('http:', 'https:'))), 'unreachable')
    assert.equal(heard, '')
  })
})

test('an excerpt is one line of 200 characters, without addresses and secrets', () => {
  const excerpts: readonly [said: string, line: string][] = [
    ['', ''],
    [' No.\n\tReally ', 'No. Really'],
    ['known: <eve@example.com>, EVE%40example.com, {"to":"o\'neil+1@example.com"}', 'known: <…>, …, {"to":"…"}'],
    ['the API key key_api_1 is bad', 'the API key … is bad'],
    [`${'x '.repeat(98)}ada@example.com`, `${'x '.repeat(98)}…`],
    ['x'.repeat(1_000), 'x'.repeat(200)],
  ]
  for (const [said, line] of excerpts) assert.equal(excerpt(said, ['key_api_1', 'API']), line)
})

/** A port whose queue of connections is full, and whose owner accepts none: whoever connects hears nothing. */
async function blackHole(t: TestContext): Promise<number> {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const code = `
    const { parentPort, workerData } = require('node:worker_threads')
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      Atomics.wait(workerData, 0, 0)
    })`
  const worker = new Worker(code, { eval: true, workerData: flag })
  const [port] = await once(worker, 'message')
  const fillers: Socket[] = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  await Promise.race([once(fillers[0]!, 'connect'), once(fillers[1]!, 'connect')])
  t.after(async () => {
    for (const filler of fillers) filler.destroy()
    Atomics.store(flag, 0, 1)
    Atomics.notify(flag, 0)
    await worker.terminate()
  })
  return port
}
