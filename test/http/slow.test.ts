import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { startService } from '../harness/service.ts'
import { handshake, startTls } from '../harness/tls.ts'
import { within } from '../harness/within.ts'

/** Everything that arrives until the other side closes, and what is sent meanwhile: one byte of `drip` each second. */
async function drip(socket: Socket, start: string, drops = ''): Promise<string> {
  let received = ''
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
  })
  socket.on('error', () => {})
  socket.write(start)
  let next = 0
  const timer = setInterval(() => {
    if (next < drops.length && socket.writable) socket.write(drops[next++]!)
  }, 1_000)
  // Not `once`, which rejects where the cut comes as a reset.
  if (!socket.closed) await new Promise(resolve => socket.once('close', resolve))
  clearInterval(timer)
  return received
}

const connectTo = (t: TestContext, baseUrl: string): Socket => {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname)
  t.after(() => socket.destroy())
  return socket
}

const connectSecurely = async (t: TestContext, baseUrl: string): Promise<Socket> => {
  const socket = await handshake({ baseUrl }, {})
  assert.ok(!(socket instanceof Error), String(socket))
  t.after(() => socket.destroy())
  return socket
}

const cut = (received: string) =>
  assert.ok(received === '' || /^HTTP\/1\.1 408 [\s\S]*\r\n\r\n\{"error":"[^"]+"\}$/.test(received), received)

const halfAHead = 'POST /api/waitlist HTTP/1.1\r\nHost: localhost\r\n'
const wholeHead = `${halfAHead}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n`
const slowField = `X-Slow: ${'x'.repeat(100)}`
const slowBody = JSON.stringify({ name: 'x'.repeat(100) })

// The limits are 10 seconds for the head and 15 for the whole request, looked at every 2 seconds: all wait together.
describe('slow clients', { concurrency: true }, () => {
  const protocols = {
    'in the clear': { start: startService, open: connectTo },
    'over TLS': { start: startTls, open: connectSecurely },
  }
  for (const [how, { start, open }] of Object.entries(protocols)) {
    test(`C-104: a head that drips ${how} is cut`, async t => {
      const { baseUrl } = await start(t)
      cut(await drip(await open(t, baseUrl), halfAHead, slowField))
    })

    test(`C-104: a body that drips ${how} is cut`, async t => {
      const service = await start(t)
      cut(await drip(await open(t, service.baseUrl), wholeHead, slowBody))
      assert.equal(contactsIn(service.databasePath).length, 0)
    })

    test(`C-104: a body that is chunked and drips ${how} is cut`, async t => {
      const { baseUrl } = await start(t)
      const head = wholeHead.replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked')
      cut(await drip(await open(t, baseUrl), `${head}fff\r\n`, slowBody))
    })

    test(`C-104: a second request that drips on a connection kept alive ${how} is cut`, async t => {
      const { baseUrl } = await start(t)
      const first = 'GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n'
      const received = await drip(await open(t, baseUrl), `${first}${halfAHead}`, slowField)
      assert.match(received, /^HTTP\/1\.1 200 OK\r\n/)
      cut(received.slice(received.indexOf('}') + 1))
    })

    test(`C-104: a connection ${how} on which nothing is ever sent is closed`, async t => {
      const { baseUrl } = await start(t)
      cut(await drip(await open(t, baseUrl), ''))
    })
  }

  for (const [what, start, drops] of [
    ['never begun', '', ''],
    ['dripping', '\x16', '\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'.padEnd(60, '\0')],
  ] as const) {
    test(`a handshake that is ${what} is cut after 10 s`, async t => {
      const { baseUrl } = await startTls(t)
      // Without the two seconds in which others may read a refusal.
      await within(11_900, async () => {
        const socket = connectTo(t, baseUrl)
        await once(socket, 'connect')
        assert.equal(await drip(socket.setDefaultEncoding('latin1'), start, drops), '')
      })
    })
  }
})
