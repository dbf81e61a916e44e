import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import * as limits from '../../src/http/wire/limits.ts'
import { fieldsTooLarge } from '../../src/http/wire/refusals.ts'
import { clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { exchange, readAnswer, readAnswers } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'
import { startTls } from '../harness/tls.ts'

const signup = '{"name":"Ada","email":"ada@example.com"}'
const head = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const post = `${head}Content-Length: ${signup.length}\r\n`

test('C-42, C-61: more fields than are taken are refused, so that none can push out what a proxy said', async t => {
  const { baseUrl } = await startService(t, { TRUST_PROXY: '1', RATE_LIMIT: '1' })
  const fillers = Array.from({ length: limits.HEADER_COUNT }, (_, i) => `X-${i}: x\r\n`).join('')
  for (let i = 0; i < 3; i++) {
    const bytes = `${post}X-Forwarded-For: 192.0.2.${i}\r\n${fillers}X-Forwarded-For: 198.51.100.1\r\n\r\n${signup}`
    const answer = readAnswer(await exchange(baseUrl, bytes, 2_000))
    assert.equal(answer.status, 431)
    assert.equal(JSON.parse(answer.text).error, fieldsTooLarge.error)
  }
})

for (const [scheme, start] of [
  ['http', startService],
  ['https', startTls],
] as const) {
  test(`C-61: over ${scheme}, what comes behind a signup under way is not carried out, and its answer says that the connection ends`, async t => {
    const { baseUrl, databasePath } = await start(t)
    const bodies = Array.from({ length: 1_000 }, (_, i) => JSON.stringify({ name: 'x', email: `v${i}@example.com` }))
    const requests = bodies.map(body => `${head}Content-Length: ${body.length}\r\n\r\n${body}`).join('')
    const begun = performance.now()
    const answers = readAnswers(await exchange(baseUrl, requests, 20_000))
    assert.ok(performance.now() - begun < 20_000, 'the connection stays open')
    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers.get('connection')]),
      [[200, 'close']],
    )
    assert.deepEqual(
      contactsIn(databasePath).map(({ email }) => email),
      ['v0@example.com'],
    )
  })
}

test('C-61: an answer whose head has left is taken to its end, then the connection ends', async t => {
  const { baseUrl } = await startTls(t)
  const get = 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'
  const begun = performance.now()
  const answers = readAnswers(await exchange(baseUrl, get + get, 20_000))
  assert.ok(performance.now() - begun < 20_000, 'the connection stays open')
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers.get('connection')]),
    [[404, 'keep-alive']],
  )
})

test('C-92, C-93: health is 503 while another program holds the write lock, as a signup would fail', async t => {
  const service = await startService(t)
  const client = await clientOf(service)
  const other = new DatabaseSync(service.databasePath)
  t.after(() => other.close())
  other.exec('begin immediate')
  const answer = await client.request('/api/health')
  other.exec('rollback')
  assert.equal(answer.status, 503)
})
