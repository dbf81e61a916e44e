import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { expectationFailed, fieldsTooLarge, methodUnknown, noSingleHost } from '../../src/http/wire/refusals.ts'
import { assertRefused } from '../harness/client.ts'
import { exchange, readAnswer, readAnswers } from '../harness/raw.ts'
import { openTestServer } from '../harness/server.ts'
import { startService, wholeFile } from '../harness/service.ts'
import { startTls } from '../harness/tls.ts'

const { baseUrl } = await startService(wholeFile)

const signup = '{"name":"Ada","email":"ada@example.com"}'
const chunked = `${signup.length.toString(16)}\r\n${signup}\r\n0\r\n\r\n`
const get = 'GET /api/health HTTP/1.1\r\n'
const nowhere = 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'
const post = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const whole = `${post}Content-Length: ${signup.length}\r\n\r\n${signup}`
const unchunked = `${post}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`

const refused: readonly [what: string, bytes: string | Buffer, status: number, sentence?: string][] = [
  // RFC 9112 §3.2.
  ['no Host in HTTP/1.1', `${get}\r\n`, 400, noSingleHost.error],
  ['two Host lines', `${get}Host: x\r\nHost: y\r\n\r\n`, 400, noSingleHost.error],
  ['two Host lines before a body', whole.replace('\r\n', '\r\nHost: y\r\n'), 400, noSingleHost.error],
  ['a Host with a space', `${get}Host: a b\r\n\r\n`, 400, noSingleHost.error],
  ['a Host with two ports', `${get}Host: a:1:2\r\n\r\n`, 400, noSingleHost.error],

  // RFC 9110 §9.1, §10.1.1, §15.6.6; RFC 6585 §5.
  ['an unknown method', 'BREW /api/waitlist HTTP/1.1\r\nHost: x\r\n\r\n', 501, methodUnknown.error],
  ['fields that are too large', `${get}Host: x\r\nX: ${'a'.repeat(9_000)}\r\n\r\n`, 431, fieldsTooLarge.error],
  ['too many fields', `${get}Host: x\r\n${'X: y\r\n'.repeat(100)}\r\n`, 431, fieldsTooLarge.error],
  ['a target that is too long', get.replace('health', 'a'.repeat(9_000)), 431, fieldsTooLarge.error],
  ['an unknown expectation', `${get}Host: x\r\nExpect: x\r\n\r\n`, 417, expectationFailed.error],

  // RFC 9112 §6.1, §6.3.
  ['two lengths', `${post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`, 400],
  ['two Content-Length lines', `${post}Content-Length: 3\r\nContent-Length: 4\r\n\r\n`, 400],
  ['a Content-Length that is no number', `${post}Content-Length: 3x\r\n\r\n`, 400],
  ['an unknown Transfer-Encoding', `${post}Transfer-Encoding: x\r\n\r\n${chunked}`, 400],
  ['a Transfer-Encoding that does not end in chunked', `${post}Transfer-Encoding: chunked, x\r\n\r\n${chunked}`, 400],
  ['a coding below chunked that is not understood', `${post}Transfer-Encoding: gzip, chunked\r\n\r\n${chunked}`, 400],
  ['a chunk size that is no number', `${post}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, 400],

  // No HTTP, or no HTTP of ours.
  ['a space before a colon', `${get}Host: x\r\nX : y\r\n\r\n`, 400],
  ['a folded field', `${get}Host: x\r\nX: y\r\n z\r\n\r\n`, 400],
  ['a NUL in a field', `${get}Host: x\r\nX: \0\r\n\r\n`, 400],
  ['a bare carriage return', `${get}Host: x\rX: y\r\n\r\n`, 400],
  ['a space in the target', 'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['a target that is not ASCII', Buffer.from('GET /ü HTTP/1.1\r\nHost: x\r\n\r\n'), 400],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['a version that does not exist', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n', 400],
]

/** C-59: what every answer below the router carries; HTTP/1.1 §9.6 for the last. */
function assertComplete(received: string, status: number, sentence?: string): void {
  const answer = readAnswer(received)
  assertRefused(answer, status, sentence)
  assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(answer.text)))
  assert.ok(!Number.isNaN(Date.parse(answer.headers.get('date') ?? '')))
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  assert.equal(answer.headers.get('connection'), 'close')
}

test('C-19, C-21, C-31, C-59, C-61: what Node refuses by itself is refused in our words, and the connection closes', async t => {
  for (const [what, bytes, status, sentence] of refused) {
    await t.test(what, async () => assertComplete(await exchange(baseUrl, bytes), status, sentence))
  }
})

test('C-31: bytes that are no HTTP/1.x have no way past the checks, and are never a 500', async () => {
  for (const bytes of [
    '\0\x01\x02\x03\r\n\r\n',
    '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
    '{"name":"Ada"}\r\n\r\n',
    'GET /api/health\r\n\r\n',
    'POST /api/waitlist HTTP/2.0\r\nHost: a\r\nHost: b\r\n\r\n',
    post.replace('1.1', '2.0').concat('Transfer-Encoding: chunked\r\n\r\n', chunked),
  ]) {
    const received = await exchange(baseUrl, Buffer.from(bytes, 'latin1'))
    const { status } = readAnswer(received)
    assert.ok([400, 501, 505].includes(status), `${JSON.stringify(bytes)}: ${status}`)
    assertComplete(received, status)
  }
})

test('C-31, C-103: a valid Host of every kind is taken, and HTTP/1.0 needs none', async () => {
  for (const host of ['', 'a', 'example.com:443', 'example.com:', '192.0.2.1:80', '[2001:db8::1]:8080', '%41']) {
    const { status } = readAnswer(await exchange(baseUrl, `${get}Host: ${host}\r\nConnection: close\r\n\r\n`))
    assert.equal(status, 200, host)
  }
  assert.equal(readAnswer(await exchange(baseUrl, 'GET /api/health HTTP/1.0\r\n\r\n')).status, 200)
})

test('C-31: an upgrade is ignored, a CONNECT closes the connection', async () => {
  const upgrade = `${get}Host: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n`
  assert.equal(readAnswer(await exchange(baseUrl, upgrade)).status, 200)
  assert.equal(await exchange(baseUrl, 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n'), '')
})

/** What a client sends behind a signup. */
const behind: readonly [what: string, bytes: string][] = [
  ['garbage', `${whole}GARBAGE\r\n\r\n`],
  ['three requests, then garbage', `${whole}${get}Host: x\r\n\r\n${whole}${nowhere}\0`],
  ['a body that is not chunked', `${whole}${unchunked}`],
  ['garbage, though it is the last', `${whole.replace('\r\n', '\r\nConnection: close\r\n')}GARBAGE`],
]

for (const [scheme, start] of [
  ['http', startService],
  ['https', startTls],
] as const) {
  test(`C-31: over ${scheme}, a request before a broken one gets its own answer, then the connection ends`, async t => {
    const { baseUrl } = await start(t)
    for (const [what, bytes] of behind) {
      await t.test(what, async () => {
        const answers = readAnswers(await exchange(baseUrl, bytes))
        assert.deepEqual(
          answers.map(({ status, headers }) => [status, headers.get('connection')]),
          [[200, 'close']],
        )
      })
    }
  })
}

test('C-31: a signup under way is answered, however much garbage arrives meanwhile', async t => {
  const asked = Promise.withResolvers<void>()
  const stored = Promise.withResolvers<void>()
  const { baseUrl } = await openTestServer(t, {}, {}, store => ({
    ...store,
    async admit(signup) {
      asked.resolve()
      await stored.promise
      return store.admit(signup)
    },
  }))
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1')
  t.after(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
  })
  socket.write(whole)
  await asked.promise
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  t.after(() => process.off('warning', warned))
  for (let packet = 0; packet < 20; packet++) {
    socket.write('GARBAGE\r\n\r\n')
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  assert.equal(received, '')
  assert.deepEqual(warnings, [], 'nothing is kept for each packet')
  stored.resolve()
  await once(socket, 'close')
  assert.deepEqual(
    readAnswers(received).map(({ json, headers }) => [json.alreadyExisted, headers.get('connection')]),
    [[false, 'close']],
  )
})
