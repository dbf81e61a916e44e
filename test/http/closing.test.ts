import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { contactsIn } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { readAnswers } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { ca, startTls } from '../harness/tls.ts'
import { within } from '../harness/within.ts'

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
  const socket: Socket | TLSSocket = isSecure ? connectTls({ ...place, ca }) : connect(place)
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
    test('a client that has said all it has to say gets its answer', async t => {
      const { baseUrl, databasePath } = await start(t)
      for (const [bytes, expected] of [
        [signup, [200]],
        [signup + get + signup, [200]],
        [signup.slice(0, -1), [400]],
      ] as const) {
        const { socket, closed, received } = await open(t, baseUrl)
        socket.end(bytes)
        await closed
        assert.deepEqual(statuses(received()), expected)
      }
      assert.equal(contactsIn(databasePath).length, 1)
    })

    test('a connection that its client ends between two requests is not kept', async t => {
      const { baseUrl } = await start(t)
      for (const bytes of ['', get]) {
        await within(2_000, async () => {
          const { socket, closed, received } = await open(t, baseUrl)
          if (bytes !== '') {
            socket.write(bytes)
            await until(() => received().length > 0 && statuses(received()).length === 1)
          }
          socket.end()
          await closed
        })
      }
    })

    test('a client that goes on sending garbage reads the refusal first, and has two seconds for it', async t => {
      const { baseUrl } = await start(t)
      const begun = performance.now()
      const { socket, closed, received } = await open(t, baseUrl)
      const timer = setInterval(() => socket.writable && socket.write('GARBAGE\r\n'.repeat(1_000)), 1)
      t.after(() => clearInterval(timer))
      await once(socket, 'end')
      assert.deepEqual(statuses(received()), [501])
      await closed
      // Not since the answer came, which may take its time. A timer may be early by a moment.
      assert.ok(performance.now() - begun > 1_990)
    })

    const chunked = 'Transfer-Encoding: chunked\r\n\r\n'
    for (const [what, bytes] of [
      ['chunks of another type', `${head.replace('json', 'text')}${chunked}1\r\nx\r\n0\r\n\r\n`],
      ['a chunk that is too large', `${head}${chunked}4e20\r\n${'x'.repeat(20_000)}\r\n0\r\n\r\n`],
      ['a body that is too large', `${head}Content-Length: 20000\r\n\r\n${'x'.repeat(20_000)}`],
    ] as const) {
      test(`a request behind ${what} is not carried out`, async t => {
        const { baseUrl, databasePath } = await start(t)
        // Whole, and in two packets, since the refusal may leave between them.
        for (const at of [0, head.length + 10, bytes.length, bytes.length + 1]) {
          const { socket, closed, received } = await open(t, baseUrl)
          socket.write(bytes.slice(0, at))
          if (at > 0) await wait(20)
          socket.end((bytes + signup).slice(at))
          await closed
          assert.equal(statuses(received()).length, 1)
        }
        assert.deepEqual(contactsIn(databasePath), [])
      })
    }

    const tries = isSlow ? 50 : 10
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
