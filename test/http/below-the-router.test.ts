import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { expectationFailed, fieldsTooLarge, methodUnknown, noSingleHost } from '../../src/http/errors.ts'
import * as limits from '../../src/http/limits.ts'
import { TOGETHER } from '../../src/http/router.ts'
import { assertRefused } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { exchange, readAnswer, readAnswers } from '../harness/raw.ts'
import { openTestServer } from '../harness/server.ts'
import { startService, wholeFile } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { ca, startTls } from '../harness/tls.ts'
import { within } from '../harness/within.ts'

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

/** A connection that stays open for writing when the server has ended its side, and all that it receives. */
async function open(t: TestContext, baseUrl: string) {
  const { protocol, hostname, port } = new URL(baseUrl)
  const place = { host: hostname, port: Number(port), allowHalfOpen: true }
  const isSecure = protocol === 'https:'
  const socket: Socket = isSecure ? connectTls({ ...place, ca }) : connect(place)
  t.after(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
  })
  await once(socket, isSecure ? 'secureConnect' : 'connect')
  socket.on('error', () => {})
  // An error is no reason not to look at what came before it.
  const closed = new Promise(resolve => socket.once('close', resolve))
  return { socket, closed, received: () => received, statuses: () => readAnswers(received).map(({ status }) => status) }
}

const PIECE = 16_000
const large = Array.from({ length: 1_000 }, (_, i) => JSON.stringify({ name: 'x', email: `v${i}@example.com` }))
  .map(body => `${post}Content-Length: ${body.length}\r\n\r\n${body}`)
  .join('')

/** What a client sends behind a signup. */
const behind: readonly [what: string, bytes: string][] = [
  ['garbage', `${whole}GARBAGE\r\n\r\n`],
  ['three requests, then garbage', `${whole}${get}Host: x\r\n\r\n${whole}${nowhere}\0`],
  ['a body that is not chunked', `${whole}${unchunked}`],
  ['garbage, though it is the last', `${whole.replace('\r\n', '\r\nConnection: close\r\n')}GARBAGE`],
  ['a thousand signups', whole + large],
]

for (const [scheme, start] of [
  ['http', startService],
  ['https', startTls],
] as const) {
  describe(`the end of a connection over ${scheme}`, { concurrency: true }, () => {
    test('C-31, C-61: what comes behind a signup under way is not carried out, and its answer says that the connection ends', async t => {
      const { baseUrl, databasePath } = await start(t)
      for (const [what, bytes] of behind) {
        const answers = readAnswers(await exchange(baseUrl, bytes))
        assert.deepEqual(
          answers.map(({ status, headers }) => [status, headers.get('connection')]),
          [[200, 'close']],
          what,
        )
      }
      assert.equal(contactsIn(databasePath).length, 1)
    })

    test('a client that has said all it has to say gets its answer', async t => {
      const { baseUrl } = await start(t)
      for (const [bytes, expected] of [
        [whole, [200]],
        [whole.slice(0, -1), [400]],
      ] as const) {
        const { socket, closed, statuses } = await open(t, baseUrl)
        socket.end(bytes)
        await closed
        assert.deepEqual(statuses(), expected)
      }
    })

    test('a connection that its client ends between two requests is not kept', async t => {
      const { baseUrl } = await start(t)
      for (const bytes of ['', nowhere]) {
        await within(2_000, async () => {
          const { socket, closed, received, statuses } = await open(t, baseUrl)
          if (bytes !== '') {
            socket.write(bytes)
            await until(() => received().length > 0 && statuses().length === 1)
          }
          socket.end()
          await closed
        })
      }
    })

    test('a client that goes on sending garbage reads the refusal first, and has two seconds for it', async t => {
      const { baseUrl } = await start(t)
      const begun = performance.now()
      const { socket, closed, statuses } = await open(t, baseUrl)
      const timer = setInterval(() => socket.writable && socket.write('GARBAGE\r\n'.repeat(1_000)), 1)
      t.after(() => clearInterval(timer))
      await once(socket, 'end')
      assert.deepEqual(statuses(), [501])
      await closed
      // Not since the answer came, which may take its time. A timer may be early by a moment.
      assert.ok(performance.now() - begun > 1_990)
    })

    test('C-30: a request behind a body that is refused is not carried out', async t => {
      const { baseUrl, databasePath } = await start(t)
      for (const bytes of [
        `${post.replace('json', 'text')}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
        `${post}Transfer-Encoding: chunked\r\n\r\n4e20\r\n${'x'.repeat(20_000)}\r\n0\r\n\r\n`,
        `${post}Content-Length: 20000\r\n\r\n${'x'.repeat(20_000)}`,
      ]) {
        // Whole, and in two packets, since the refusal may leave between them.
        for (const at of [0, post.length + 10, bytes.length, bytes.length + 1]) {
          const { socket, closed, statuses } = await open(t, baseUrl)
          socket.write(bytes.slice(0, at))
          if (at > 0) await wait(20)
          socket.end((bytes + whole).slice(at))
          await closed
          assert.equal(statuses().length, 1)
        }
      }
      assert.deepEqual(contactsIn(databasePath), [])
    })

    const tries = isSlow ? 50 : 6
    test(`C-30: a 413 is read by each of ${tries} clients that go on sending two megabytes`, async t => {
      const { baseUrl } = await start(t)
      const bytes = 'x'.repeat(2_000_000)
      for (let i = 0; i < tries; i++) {
        const { socket, closed, statuses } = await open(t, baseUrl)
        const framing = i % 2 === 0 ? `Content-Length: ${bytes.length}` : 'Transfer-Encoding: chunked\r\n\r\n1E8480'
        socket.write(`${post}${framing}\r\n${i % 2 === 0 ? '\r\n' : ''}`)
        // In pieces, so that most are on their way when the refusal leaves.
        for (let sent = 0; sent < bytes.length && socket.writable; sent += PIECE) {
          if (!socket.write(bytes.slice(0, PIECE))) await Promise.race([once(socket, 'drain').catch(() => {}), closed])
        }
        socket.end()
        await closed
        assert.deepEqual(statuses(), [413])
      }
    })
  })
}

test('C-61: an answer whose head has left is taken to its end, then the connection ends', async t => {
  const { baseUrl } = await startTls(t)
  const clients = await Promise.all(Array.from({ length: TOGETHER }, () => open(t, baseUrl)))
  const last = clients.pop()!
  for (const { socket } of clients) socket.write(nowhere)
  // The first of these has all answers sent at once, its own too; one may wait behind it, but not two.
  last.socket.write(nowhere.repeat(3))
  await once(last.socket, 'end')
  assert.deepEqual(
    readAnswers(last.received()).map(({ status, headers }) => [status, headers.get('connection')]),
    [[404, 'keep-alive']],
  )
})

test('C-42, C-61: more fields than are taken are refused, so that none can push out what a proxy said', async t => {
  const { baseUrl } = await startService(t, { TRUST_PROXY: '1', RATE_LIMIT: '1' })
  const fillers = Array.from({ length: limits.HEADER_COUNT }, (_, i) => `X-${i}: x\r\n`).join('')
  for (let i = 0; i < 3; i++) {
    const fields = `X-Forwarded-For: 192.0.2.${i}\r\n${fillers}X-Forwarded-For: 198.51.100.1\r\n`
    const bytes = whole.replace('\r\n', `\r\n${fields}`)
    assertComplete(await exchange(baseUrl, bytes), 431, fieldsTooLarge.error)
  }
})

test('C-31: a signup under way is answered, however much garbage arrives meanwhile', async t => {
  const asked = Promise.withResolvers<void>()
  const stored = Promise.withResolvers<void>()
  const { baseUrl } = await openTestServer(t, {}, store => ({
    ...store,
    async admit(signup) {
      asked.resolve()
      await stored.promise
      return store.admit(signup)
    },
  }))
  const { socket, closed, received } = await open(t, baseUrl)
  socket.once('end', () => socket.end())
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
  assert.equal(received(), '')
  assert.deepEqual(warnings, [], 'nothing is kept for each packet')
  stored.resolve()
  await closed
  assert.deepEqual(
    readAnswers(received()).map(({ json, headers }) => [json.alreadyExisted, headers.get('connection')]),
    [[false, 'close']],
  )
})
