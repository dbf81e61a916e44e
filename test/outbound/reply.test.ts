import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { excerpt } from '../../src/outbound/excerpt.ts'
import { judge, judgeDelivery, retryAfter } from '../../src/outbound/reply.ts'

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

  test('of what is said about one event, 400, 413 and 422 refuse it alone', () => {
    for (const status of [400, 413, 422]) assert.equal(judgeDelivery({ ...reply, status }).is, 'refused')
    for (const status of [401, 404, 409, 415, 451])
      assert.equal(judgeDelivery({ ...reply, status }).is, 'misconfigured')
    for (const status of [408, 425]) assert.equal(judgeDelivery({ ...reply, status }).is, 'unreached')
  })

  test('a look that makes no sense, or fails, has changed nothing in any case', () => {
    assert.equal(judge({ ...reply, safe: true, status: 200 }).is, 'unreached')
  })
})

const now = Date.parse('2026-11-21T12:00:00.250Z')

const waits: readonly [text: string, milliseconds: number | undefined][] = [
  ['0', 0],
  [' 120 ', 120_000],
  ['1.5', 1_500],
  ['Sat, 21 Nov 2026 12:00:10 GMT', 9_750],
  ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
  ['1795262410', 9_750],
  ['', undefined],
  ['soon', undefined],
  ['99999999999', undefined],
]

describe('how long an answer asks us to wait', () => {
  for (const [text, milliseconds] of waits) {
    test(`${JSON.stringify(text)}: ${milliseconds} ms`, () => {
      assert.equal(retryAfter({ 'retry-after': text }, ['retry-after'], now), milliseconds)
    })
  }

  test('the first field that makes sense counts', () => {
    const answer = { 'retry-after': 'soon', 'ratelimit-reset': '7', 'x-reset': '9' }
    assert.equal(retryAfter(answer, ['missing', 'retry-after', 'ratelimit-reset', 'x-reset'], now), 7_000)
    assert.equal(retryAfter(answer, [], now), undefined)
    assert.equal(retryAfter({}, ['retry-after'], now), undefined)
  })
})

const excerpts: readonly [what: string, said: string, line: string][] = [
  ['nothing', '', ''],
  ['one line', ' No.\n\tReally ', 'No. Really'],
  [
    'an address of anybody',
    'known: <eve@example.com>, EVE%40example.com, {"to":"o\'neil+1@example.com"}',
    'known: <…>, …, {"to":"…"}',
  ],
  ['our own secrets', 'the API key key_api_1 is bad', 'the API key … is bad'],
  ['a long one', 'x'.repeat(1_000), 'x'.repeat(200)],
  ['an address at the cut', `${'x '.repeat(98)}ada@example.com`, `${'x '.repeat(98)}…`],
  ['a large one', '@'.repeat(60_000), '…'],
]

describe('what an error answer says, for the log', () => {
  for (const [what, said, line] of excerpts) test(what, () => assert.equal(excerpt(said, ['key_api_1']), line))
})
