import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { openTestServer } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { handshake, http1, json, someone, startTls } from '../harness/tls.ts'
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
describe('slow clients', { concurrency: true, timeout: 60_000 }, () => {
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

  test('hundreds of idle connections hinder nobody', async t => {
    const service = await startService(t)
    const tls = await startTls(t)
    const idle = Array.from({ length: 400 }, () => connectTo(t, service.baseUrl))
    const half = Array.from({ length: 400 }, () => connectTo(t, service.baseUrl))
    const silent = Array.from({ length: 100 }, () => connectTo(t, tls.baseUrl))
    await Promise.all([...idle, ...half, ...silent].map(socket => once(socket, 'connect')))
    for (const socket of half) socket.write(wholeHead)
    for (let i = 0; i < 20; i++) {
      const init = { method: 'POST', headers: json, body: someone(`v${i}`) }
      assert.equal((await fetch(`${service.baseUrl}/api/waitlist`, init)).status, 200)
      assert.equal((await http1(tls.baseUrl, '/api/waitlist', 'POST', json, someone(`v${i}`))).status, 200)
    }
    assert.equal((await fetch(`${service.baseUrl}/api/health`)).status, 200)
    for (const socket of [...idle, ...half, ...silent]) socket.on('error', () => {}).destroy()
  })

  test('who does not read the answer is not waited for by others', async t => {
    const { baseUrl } = await startService(t)
    const deaf = connectTo(t, baseUrl).pause()
    deaf.on('error', () => {}).write('GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(300))
    await wait(200)
    assert.equal((await fetch(`${baseUrl}/api/health`)).status, 200)
    deaf.destroy()
  })
})

describe('overload', { concurrency: true, timeout: 60_000 }, () => {
  test('C-20: what the queue does not hold is answered 500 at once; what it holds is stored', async t => {
    const path = `${temporaryFolder(t)}/waitlist.db`
    const server = await openTestServer(t, { path, bounds: { batch: 1, queue: 5, timeout: 5_000 } })
    const other = new DatabaseSync(path)
    t.after(() => other.close())
    other.exec('begin immediate')
    const crowd = Array.from({ length: 20 }, async (_, i) => {
      const init = { method: 'POST', headers: json, body: someone(`v${i}`) }
      const answer = await fetch(`${server.baseUrl}/api/waitlist`, init)
      const body = (await answer.json()) as { error?: string; contactId?: string }
      // The others are only answered when the lock is gone.
      if (answer.status === 500 && ++refused === 13) other.exec('rollback')
      return { status: answer.status, body, headers: answer.headers }
    })
    let refused = 0
    const answers = await Promise.all(crowd)
    const told = answers.filter(({ status }) => status === 200).map(({ body }) => body.contactId)
    for (const { status, body, headers } of answers) {
      if (status === 200) continue
      assert.equal(status, 500)
      assert.deepEqual(Object.keys(body), ['error'])
      assert.equal(headers.get('retry-after'), null)
      assert.equal(headers.get('set-cookie'), null)
    }
    assert.equal(told.length, 7, 'two on their way to their transactions, five in the queue')
    // Ids of one millisecond have no order.
    const stored = contactsIn(path).map(({ id }) => id)
    assert.deepEqual(stored.toSorted(), told.toSorted())
    assert.equal((await fetch(`${server.baseUrl}/api/health`)).status, 200)
  })
})
