/** `TRACK_SOURCES`: the query of a signup says where it came from. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { sourceParameters } from '../../src/signup/contact.ts'
import { type Answer, clientOf } from '../harness/client.ts'
import { withDatabase } from '../harness/database.ts'
import { send } from '../harness/raw.ts'
import { startReceiver } from '../harness/receiver.ts'
import { startService, type TestService } from '../harness/service.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const TRACKING = { TRACK_SOURCES: 'true' }
const QUERY = '?utm_source=newsletter&utm_medium=e%2Dmail&utm_campaign=Early+%F0%9F%9A%80&gclid=1&ref=ada'
const SOURCE = { utm_source: 'newsletter', utm_medium: 'e-mail', utm_campaign: 'Early 🚀', ref: 'ada' }

const rowsIn = ({ databasePath }: TestService) =>
  withDatabase(databasePath, database => database.prepare('select * from contact order by number').all())

const sourcesIn = (service: TestService) => rowsIn(service).map(({ source }) => source)

/** An answer without what differs from one to the next. */
const sameIn = ({ status, headers, text, json }: Answer) => {
  const { date: _, ratelimit: __, ...fields } = Object.fromEntries(headers)
  return { status, fields, text: json?.contactId === undefined ? text : text.replace(json.contactId, '…') }
}

/** A row without its id and its times. */
const sameInRow = ({ id: _, created_at: __, event_at: ___, ...row }: Record<string, unknown>) => row

async function visitor(t: TestContext, env: Record<string, string> = {}) {
  const service = await startService(t, env)
  const { request } = await clientOf(service)
  const signUp = (query: string, body: unknown = { name: 'Ada', email: 'ada@example.com' }) =>
    request(`/api/waitlist${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'https://www.example.com' },
      body: JSON.stringify(body),
    })
  return { service, request, signUp }
}

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('\0', '\n', '🚀'.repeat(101), ' ', '%', '#', '?'),
)
const queries: readonly string[] = [
  '',
  QUERY,
  '?',
  '??ref=a',
  '?ref=a?ref=b',
  '?ref=%00&utm_source=%',
  `?utm_source=${'a'.repeat(7_000)}`,
  `?${'ref&'.repeat(1_500)}`,
  ...fc
    .sample(fc.array(fc.tuple(fc.constantFrom(...sourceParameters, 'q'), text), { maxLength: 4 }), 10)
    .map(list => `?${new URLSearchParams(list.map(([name, value]) => [name, value.toWellFormed()]))}`),
  // As somebody types them: fetch encodes what a URL must not have.
  ...fc.sample(fc.tuple(fc.constantFrom(...sourceParameters), text), 5).map(([name, value]) => `?${name}=${value}`),
]

describe('with the query of a landing page', () => {
  for (const [title, env] of [
    ['TRACK_SOURCES is not set', {}],
    ['TRACK_SOURCES=true', TRACKING],
  ] as const) {
    test(`whatever the query is, a signup is answered as without it; ${title}`, async t => {
      const cors = { CORS_ORIGINS: 'https://www.example.com' }
      const [plain, asked] = await Promise.all([visitor(t, { ...env, ...cors }), visitor(t, { ...env, ...cors })])
      for (const [i, query] of queries.entries()) {
        const email = `visitor-${i}@example.com`
        for (const body of [
          { name: '', email },
          { name: 'Ada', email },
          { name: 'Eve', email: email.toUpperCase() },
        ]) {
          const answers = await Promise.all([asked.signUp(query, body), plain.signUp('', body)])
          assert.deepEqual(sameIn(answers[0]), sameIn(answers[1]), query)
        }
      }
      const [with_, without] = [rowsIn(asked.service), rowsIn(plain.service)]
      assert.equal(with_.length, queries.length)
      if (!('TRACK_SOURCES' in env)) assert.deepEqual(with_.map(sameInRow), without.map(sameInRow))
      else {
        const rest = ({ source: _, source_label: __, ...row }: Record<string, unknown>) => sameInRow(row)
        assert.deepEqual(with_.map(rest), without.map(rest))
        assert.ok(without.every(({ source }) => source === null))
        const known = with_.map(({ source }) => source as string | null).filter(source => source !== null)
        assert.ok(known.length >= 5, `${known.length} sources`)
        for (const json of known) {
          const source = JSON.parse(json) as Record<string, string>
          assert.deepEqual(
            Object.keys(source),
            sourceParameters.filter(name => name in source),
          )
          for (const value of Object.values(source)) {
            assert.ok([...value].length <= 100 && value === value.trim() && value.isWellFormed(), json)
            assert.doesNotMatch(value, /[\p{Cc}\u2028\u2029]/u)
          }
        }
      }
    })
  }

  test('the source of the first signup is stored, and a later one changes nothing', async t => {
    const { service, signUp } = await visitor(t, TRACKING)
    assert.equal((await signUp(QUERY)).json.alreadyExisted, false)
    assert.equal((await signUp('?ref=eve')).json.alreadyExisted, true)
    await signUp('', { name: 'Grace', email: 'grace@example.com' })
    assert.equal((await signUp('?ref=eve', { name: 'Grace', email: 'Grace@example.com' })).json.alreadyExisted, true)
    assert.deepEqual(sourcesIn(service), [JSON.stringify(SOURCE), null])
  })

  test('only the query counts: no fragment, no body; the target may have the absolute form', async t => {
    const { service } = await visitor(t, TRACKING)
    const post = async (target: string, i: number) => {
      const body = JSON.stringify({ name: 'Ada', email: `ada-${i}@example.com`, ref: 'body', source: { ref: 'body' } })
      const fields = [
        'host: x',
        'connection: close',
        'content-type: application/json',
        `content-length: ${body.length}`,
      ]
      const answer = await send(service.baseUrl, [`POST ${target} HTTP/1.1`, ...fields], body)
      assert.equal(answer.status, 200, target)
    }
    const targets = [
      '/api/waitlist?ref=a',
      'http://elsewhere.example/api/waitlist?ref=b',
      '/api/waitlist',
      '/api/waitlist#?ref=c',
      '/api/waitlist?ref=d#&ref=e',
      '/api/w%61itlist?ref=f',
    ]
    for (const [i, target] of targets.entries()) await post(target, i)
    assert.deepEqual(sourcesIn(service), ['{"ref":"a"}', '{"ref":"b"}', null, null, '{"ref":"d"}', '{"ref":"f"}'])
  })
})

test('the webhook is told the source of who has one, and the same as ever of who has none', async t => {
  const receiver = await startReceiver(t, () => ({ status: 204 }))
  const { signUp } = await visitor(t, {
    ...TRACKING,
    WEBHOOK_URL: receiver.url,
    WEBHOOK_SECRET: `whsec_${'A'.repeat(32)}`,
  })
  await signUp(QUERY)
  await receiver.arrived(1)
  await signUp('', { name: 'Grace', email: 'grace@example.com' })
  await receiver.arrived(2)
  const [one, other] = receiver.received.map(({ text }) => JSON.parse(text).data)
  assert.deepEqual(Object.keys(one), ['id', 'name', 'email', 'createdAt', 'source'])
  assert.deepEqual(one.source, SOURCE)
  assert.deepEqual(Object.keys(other), ['id', 'name', 'email', 'createdAt'])
})

for (const [title, env, data] of [
  ['the provider is told the source', TRACKING, SOURCE],
  ['unless TRACK_SOURCES is set, the provider is told no source', {}, undefined],
] as const) {
  test(title, async t => {
    const server = await startReceiver(t, loopsFake().answer)
    const { signUp } = await visitor(t, { ...env, PROVIDER: 'loops', ...loopsSettings(server.url) })
    assert.equal((await signUp(QUERY)).json.alreadyExisted, false)
    await server.arrived(2)
    assert.deepEqual(server.received[1]?.json.eventProperties, data)
  })
}

test('the document declares six optional parameters', async t => {
  const { request } = await visitor(t)
  const { parameters } = (await request('/api/openapi.json')).json.paths['/api/waitlist'].post
  assert.deepEqual(
    parameters.map(({ name, in: where, required }: Record<string, unknown>) => [name, where, required]),
    sourceParameters.map(name => [name, 'query', false]),
  )
})
