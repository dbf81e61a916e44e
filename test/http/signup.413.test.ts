import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BODY_LIMIT } from '../../src/http/wire/limits.ts'
import { tooLarge } from '../../src/http/wire/refusals.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { send } from '../harness/raw.ts'
import { startService, wholeFile } from '../harness/service.ts'

const service = await startService(wholeFile)
const { baseUrl } = service

const head = ['POST /api/waitlist HTTP/1.1', 'Host: x', 'Content-Type: application/json']
const signup = '{"name":"Ada","email":"ada@example.com"}'

test('C-30, C-61: one byte too many is refused by Content-Length, and the connection closes', async () => {
  const answer = await send(baseUrl, [...head, `Content-Length: ${BODY_LIMIT + 1}`], signup.padEnd(BODY_LIMIT + 1))
  assertRefused(answer, 413, tooLarge.error)
  assert.equal(answer.headers.get('connection'), 'close')
})

test('C-30: Content-Length alone is enough: the body is not waited for', async () => {
  assertRefused(await send(baseUrl, [...head, 'Content-Length: 99999999999']), 413, tooLarge.error)
})

test('C-30: a chunked body is refused while it streams, before its end', async () => {
  const size = BODY_LIMIT + 1
  const answer = await send(
    baseUrl,
    [...head, 'Transfer-Encoding: chunked'],
    `${size.toString(16)}\r\n${signup.padEnd(size)}`,
  )
  assertRefused(answer, 413, tooLarge.error)
  assert.equal(answer.headers.get('connection'), 'close')
})

test('C-30: a client that expects 100 gets the 413 and no 100 before it', async () => {
  const answer = await send(baseUrl, [...head, 'Expect: 100-continue', `Content-Length: ${BODY_LIMIT + 1}`])
  assertRefused(answer, 413, tooLarge.error)
  assert.deepEqual(answer.interim, [])
})

test('C-30: a client that goes on sending two megabytes still reads the answer', async () => {
  assertRefused(await (await clientOf(service)).signUp(signup.padEnd(2_000_000)), 413, tooLarge.error)
})
