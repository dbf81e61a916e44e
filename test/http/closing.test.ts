import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { contactsIn } from '../harness/database.ts'
import { readAnswers } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { ca, http2, http2Session, post, startTls } from '../harness/tls.ts'

const head = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const body = '{"name":"Ada","email":"ada@example.com"}'
const signup = `${head}Content-Length: ${body.length}\r\n\r\n${body}`
const get = 'GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n'

interface Opened {
  readonly socket: Socket
  readonly closed: Promise<unknown>
  received(): string
}

/** A connection that stays open for writing when the server has ended its side, and all that it receives. */
async function open(t: TestContext, baseUrl: string): Promise<Opened> {
  const { protocol, hostname, port } = new URL(baseUrl)
  const place = { host: hostname, port: Number(port), allowHalfOpen: true }
  const isSecure = protocol === 'https:'
  const socket: Socket | TLSSocket = isSecure
    ? connectTls({ ...place, ca, ALPNProtocols: ['http/1.1'] })
    : connect(place)
  t.after(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
  })
  await once(socket, isSecure ? 'secureConnect' : 'connect')
  socket.on('error', () => {})
  // An error is no reason not to look at what came before it.
  const closed = new Promise(resolve => socket.once('close', resolve))
  return { socket, closed, received: () => received }
}

const PIECE = 16_000

const statuses = (received: string) => readAnswers(received).map(({ status }) => status)

for (const [scheme, start] of [
  ['http', startService],
  ['https', startTls],
] as const) {
  describe(`RFC 9112 §9.6: the end of a connection over ${scheme}`, { concurrency: true, timeout: 60_000 }, () => {
    test('a client that has said all it has to say gets its answers', async t => {
      const { baseUrl, databasePath } = await start(t)
      for (const [bytes, expected] of [
        [signup, [200]],
        [signup + get + signup, [200, 200, 200]],
        [signup.slice(0, -1), [400]],
      ] as const) {
        const { socket, closed, received } = await open(t, baseUrl)
        socket.end(bytes)
        await closed
        assert.deepEqual(statuses(received()), expected)
      }
      assert.equal(contactsIn(databasePath).length, 1)
    })

    test('a client that goes on sending garbage reads the refusal first, and has two seconds for it', async t => {
      const { baseUrl } = await start(t)
      const { socket, closed, received } = await open(t, baseUrl)
      const timer = setInterval(() => socket.writable && socket.write('GARBAGE\r\n'.repeat(1_000)), 1)
      t.after(() => clearInterval(timer))
      await once(socket, 'end')
      const ended = performance.now()
      assert.deepEqual(statuses(received()), [501])
      await closed
      // A little less, as the answer takes a moment to arrive.
      assert.ok(performance.now() - ended > 1_500)
    })

    const tries = isSlow ? 200 : 10
    test(`C-30: a 413 is read by each of ${tries} clients that go on sending two megabytes`, async t => {
      const { baseUrl } = await start(t)
      const bytes = 'x'.repeat(2_000_000)
      for (let i = 0; i < tries; i++) {
        const { socket, closed, received } = await open(t, baseUrl)
        const framing =
          i % 2 === 0 ? `Content-Length: ${bytes.length}\r\n\r\n` : 'Transfer-Encoding: chunked\r\n\r\n1E8480\r\n'
        socket.write(head + framing)
        // In pieces, so that most are on their way when the refusal leaves.
        for (let sent = 0; sent < bytes.length && socket.writable; sent += PIECE) {
          if (!socket.write(bytes.slice(0, PIECE))) await Promise.race([once(socket, 'drain').catch(() => {}), closed])
        }
        socket.end()
        await closed
        assert.deepEqual(statuses(received()), [413])
      }
    })
  })
}

test(`C-30: over HTTP/2, a 413 is read by each of ${isSlow ? 200 : 10} clients that go on sending two megabytes`, async t => {
  const { baseUrl } = await startTls(t)
  const bytes = 'x'.repeat(2_000_000)
  for (let i = 0; i < (isSlow ? 200 : 10); i++) {
    const session = await http2Session(t, baseUrl)
    const told = i % 2 === 0 ? { 'content-length': bytes.length } : {}
    assert.equal((await http2(session, '/api/waitlist', { ...post, ...told }, bytes)).status, 413)
    session.destroy()
  }
})
