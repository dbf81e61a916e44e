import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { exchange, readAnswers } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'

const signup = (email: string) => JSON.stringify({ name: 'Mallory', email })
const body = signup('taken@example.com')
const post = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const get = 'GET /api/health HTTP/1.1\r\nHost: x\r\n'
const chunked = `${post}Transfer-Encoding: chunked\r\n`
const length = (count: number | string) => `Content-Length: ${count}\r\n`
const size = body.length.toString(16)
const inChunks = `${size}\r\n${body}\r\n0\r\n\r\n`
/** The number is that of the request it hides in. */
const smuggled = signup('smuggled-000@example.com')
/** A whole signup, which nobody may ever read as one. */
const hidden = `${post}${length(smuggled.length)}\r\n${smuggled}`
const behind = `0\r\n\r\n${hidden}`

/** What is sent, and the statuses that the one answer may have (RFC 9112). 0: the connection may close without one. */
const requests: readonly (readonly [bytes: string, ...statuses: number[]])[] = [
  // §6.1, §6.3, §11.2: both lengths, or one that another reader does not see, would let a second request in.
  [`${chunked}${length(behind.length)}\r\n${behind}`, 400],
  [`${post}${length(4)}Transfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`, 400],
  [`${chunked}\r\n${behind}`.replace('1.1', '1.0'), 400],
  [`${post}${length(behind.length)}X: y\nTransfer-Encoding: chunked\r\n\r\n${behind}`, 400],
  ...[
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: chunked, chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: identity',
    'Transfer-Encoding:\x0bchunked',
    'Transfer-Encoding : chunked',
    ' Transfer-Encoding: chunked',
    'X: y\r\n Transfer-Encoding: chunked',
    'X: y\rTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
    'Transfer-Encoding chunked',
  ].flatMap(field => [
    [`${post}${field}\r\n\r\n${behind}`, 400, 501] as const,
    [`${post}${length(behind.length)}${field}\r\n\r\n${behind}`, 400, 501] as const,
  ]),
  // A body that nobody expects is still a body, and what follows a close is not carried out (§9.6).
  [`${get}Connection: close\r\n${length(hidden.length)}\r\n${hidden}`, 200, 400],
  [`POST /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${length(hidden.length)}\r\n${hidden}`, 404],
  [`${post}Connection: close\r\n${length(hidden.length * 200)}\r\n${hidden.repeat(200)}`, 413],
  [`CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n${hidden}`, 0, 400, 405, 501],
  [`${get}Connection: close\r\n\r\n${hidden}`, 200],
  [`${get.replace('1.1', '1.0')}\r\n${hidden}`, 200],
  [`GARBAGE\r\n\r\n${hidden}`, 400, 501],
  [`GET /api/health HTTP/1.1\r\n\r\n${hidden}`, 400],
  [`${get}Host: y\r\n\r\n${hidden}`, 400],
  [`${get}${'X: y\r\n'.repeat(100)}\r\n${hidden}`, 431],
  // §6.2, RFC 9110 §8.6
  ...['-1', '+41', '0x29', '4e1', '4,1', 'x', '', '41, 42', '18446744073709551657'].map(
    value => [`${post}${length(value)}\r\n${body}`, 400, 413] as const,
  ),
  [`${post}${length(3)}${length(body.length)}\r\n${body}`, 400],
  [`${post}${length(2 ** 53)}\r\n${body}`, 413],
  // §7.1
  ...['xyz', '', '-1', '0x29', '29g'].map(size => [`${chunked}\r\n${size}\r\n${body}\r\n0\r\n\r\n`, 400, 413] as const),
  [`${chunked}\r\n${size}\n${body}\r\n0\r\n\r\n`, 400],
  [`${chunked}\r\n5\r\n${body}\r\n0\r\n\r\n`, 400],
  [`${chunked}\r\n2;\nxx\r\n${size}\r\n${body}\r\n0\r\n\r\n${hidden}`, 400],
  [`${chunked}Connection: close\r\n\r\n${'1;a=b\r\n \r\n'.repeat(20_000)}0\r\n\r\n`, 400, 413],
  [`${chunked}Connection: close\r\n\r\n${inChunks}`, 200],
  // §2, §3
  [`${get}X: a\rb\r\n\r\n`, 400],
  [`GET /api /health HTTP/1.1\r\nHost: x\r\n\r\n`, 400],
  [`BREW /api/health HTTP/1.1\r\nHost: x\r\n\r\n`, 400, 405, 501],
  ...['HTTP/2.0', 'HTTP/1', 'HTTP/1.1x', 'HTTX/1.1'].map(
    version => [`GET /api/health ${version}\r\nHost: x\r\n\r\n`, 400, 501, 505] as const,
  ),
  ...['*', '/%', '/%c0%af', '/api%2fhealth', '/../api/health', '//evil.example/api/health', '/api/health\x00'].map(
    target => [`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 400, 404] as const,
  ),
  [`GET /${'a'.repeat(10_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414, 431],
  ...['a b', 'a/b', 'u@a', 'a, b', '[::1', 'a\x00'].map(
    host => [`GET /api/health HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 400] as const,
  ),
  ...['X Y: y', ': y', 'X', 'X\x00: y', 'X: a\x00b'].map(field => [`${get}${field}\r\n\r\n`, 400] as const),
  [`${get}X: ${'y'.repeat(100_000)}`, 431],
  // Other protocols
  ['\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03\x7f', 0, 400, 501],
  ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 0, 400, 501, 505],
  ['SSH-2.0-OpenSSH_9.9\r\n', 400, 501],
  ['\0'.repeat(100_000), 400, 501],
]

test('a malformed request has one answer that RFC 9112 allows, and no request that hides in it is carried out', async t => {
  const { baseUrl, databasePath } = await startService(t)
  const wrong: string[] = []
  const send = async ([text, ...allowed]: (typeof requests)[number], number: number) => {
    const bytes = text.replaceAll('smuggled-000', `smuggled-${String(number).padStart(3, '0')}`)
    const received = await exchange(baseUrl, Buffer.from(bytes, 'latin1')).catch(() => '')
    const statuses = readAnswers(received).map(({ status, json }) => {
      if (status >= 400) assert.deepEqual(Object.keys(json as object), ['error'])
      return status
    })
    const isAllowed =
      statuses.length === 0 ? allowed.includes(0) : statuses.length === 1 && allowed.includes(statuses[0]!)
    if (!isAllowed) wrong.push(`${JSON.stringify(bytes.slice(0, 200))} was answered with ${statuses}`)
  }
  await Promise.all(requests.map(send))
  for (const { email } of contactsIn(databasePath)) {
    const [, number] = /^smuggled-(\d+)@/.exec(email) ?? []
    if (number !== undefined)
      wrong.push(`what hides in ${JSON.stringify(requests[Number(number)]![0].slice(0, 200))} is stored`)
  }
  assert.deepEqual(wrong, [])
})
