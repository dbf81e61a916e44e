/** `TRACK_SOURCES`: the query of a signup says where it came from. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { sourceLabel } from '../../src/signup/contact.ts'
import { parseSource } from '../../src/signup/parse.ts'
import { clientOf } from '../harness/client.ts'
import { withDatabase } from '../harness/database.ts'
import { send } from '../harness/raw.ts'
import { startService, type TestService } from '../harness/service.ts'

const cases: readonly (readonly [query: string, source: object | undefined])[] = [
  ['', undefined],
  [
    'ref=f&utm_content=e&utm_source=a&utm_term=d&utm_medium=b&utm_campaign=c',
    { utm_source: 'a', utm_medium: 'b', utm_campaign: 'c', utm_term: 'd', utm_content: 'e', ref: 'f' },
  ],
  // Decoded like a form.
  ['utm_term=early+access&ref=a%2Bb', { utm_term: 'early access', ref: 'a+b' }],
  ['utm_campaign=Gr%C3%BC%C3%9Fe%20%F0%9F%9A%80', { utm_campaign: 'Grüße 🚀' }],
  ['utm_campaign=100%&ref=%zz', { utm_campaign: '100%', ref: '%zz' }],
  ['ref=caf%E9', { ref: 'caf\uFFFD' }],
  // The first of a repeated parameter, even if it is empty.
  ['ref=first&ref=second', { ref: 'first' }],
  ['ref=&ref=second', undefined],
  // Nothing is left, or nothing is known.
  ['utm_source=&ref=+%09%0A+', undefined],
  ['gclid=1&UTM_SOURCE=a&utm_source%20=b&__proto__=c&constructor=d&utm_id=e', undefined],
  // Cleaned like a name.
  ['ref=%20%20ada%20lovelace%C2%A0', { ref: 'ada lovelace' }],
  ['ref=%00a%00b%1B%5B31m%7F%C2%85%E2%80%A8c%E2%80%A9%0D%0A', { ref: 'ab[31mc' }],
  [`ref=${'%F0%9F%9A%80'.repeat(101)}`, { ref: '🚀'.repeat(100) }],
  [`ref=${'a'.repeat(99)}+b`, { ref: 'a'.repeat(99) }],
]

test('what the query says is decoded, cleaned and cut', () => {
  for (const [query, source] of cases) assert.deepEqual(parseSource(query), source, query)
})

test('a source is counted by its utm_source, or else by its ref', () => {
  assert.equal(sourceLabel({ utm_source: 'a', ref: 'b' }), 'a')
  assert.equal(sourceLabel({ utm_medium: 'a', ref: 'b' }), 'b')
  assert.equal(sourceLabel({ utm_medium: 'a' }), null)
})

const sourcesIn = ({ databasePath }: TestService) =>
  withDatabase(databasePath, database => database.prepare('select source from contact order by number').all()).map(
    ({ source }) => source,
  )

async function visitor(t: TestContext, env: Record<string, string>) {
  const service = await startService(t, env)
  const { request } = await clientOf(service)
  const signUp = (query: string, name: string) =>
    request(`/api/waitlist${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, email: `${name}@example.com` }),
    })
  return { service, signUp }
}

describe('a signup with a query', () => {
  test('is answered as without it; its source is stored with TRACK_SOURCES alone, and a later one changes nothing', async t => {
    const queries = ['?utm_source=newsletter&ref=ada', '', '?', '?ref=%00', `?${'ref&'.repeat(1_500)}`]
    for (const [TRACK_SOURCES, first] of [
      ['false', null],
      ['true', '{"utm_source":"newsletter","ref":"ada"}'],
    ] as const) {
      const { service, signUp } = await visitor(t, { TRACK_SOURCES })
      for (const [i, query] of queries.entries()) {
        assert.equal((await signUp(query, `ada${i}`)).json.alreadyExisted, false, query)
        assert.equal((await signUp('?ref=eve', `ADA${i}`)).json.alreadyExisted, true)
      }
      assert.deepEqual(sourcesIn(service), [first, null, null, null, null])
    }
  })

  test('only the query counts: no fragment, no body; the target may have the absolute form', async t => {
    const { service } = await visitor(t, { TRACK_SOURCES: 'true' })
    const targets = [
      '/api/waitlist?ref=a',
      'http://elsewhere.example/api/waitlist?ref=b',
      '/api/waitlist#?ref=c',
      '/api/waitlist?ref=d#&ref=e',
      '/api/w%61itlist?ref=f',
    ]
    for (const [i, target] of targets.entries()) {
      const body = JSON.stringify({ name: 'Ada', email: `ada-${i}@example.com`, ref: 'body', source: { ref: 'body' } })
      const head = ['host: x', 'connection: close', 'content-type: application/json', `content-length: ${body.length}`]
      assert.equal((await send(service.baseUrl, [`POST ${target} HTTP/1.1`, ...head], body)).status, 200, target)
    }
    assert.deepEqual(sourcesIn(service), ['{"ref":"a"}', '{"ref":"b"}', null, '{"ref":"d"}', '{"ref":"f"}'])
  })
})
