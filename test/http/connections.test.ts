/** Bounds on connections: slow clients, many of one client, those that read nothing. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { leave, pipelineUnread } from '../harness/crowd.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, runProgram, until } from '../harness/program.ts'
import { exchange, readAnswer } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'
import { handshake, startTls } from '../harness/tls.ts'

/** All that arrives until the other side closes, while a byte of `drops` is sent each second. */
async function drip(t: TestContext, socket: Socket | Error, start: string, drops = ''): Promise<string> {
  assert.ok(!(socket instanceof Error), String(socket))
  t.after(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
  })
  socket.on('error', () => {})
  socket.write(start, 'latin1')
  let next = 0
  const timer = setInterval(() => {
    if (next < drops.length && socket.writable) socket.write(drops[next++]!, 'latin1')
  }, 1_000)
  if (!socket.closed) await new Promise(resolve => socket.once('close', resolve))
  clearInterval(timer)
  return received
}

const plain = (baseUrl: string): Socket => connect(Number(new URL(baseUrl).port), '127.0.0.1')

const head = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const long = 'x'.repeat(100)
const slow: readonly [what: string, start: string, drops: string][] = [
  ['nothing is ever sent', '', ''],
  ['the head drips', head, `X: ${long}`],
  ['the body drips', `${head}Content-Length: 1000\r\n\r\n`, long],
  ['the chunks drip', `${head}Transfer-Encoding: chunked\r\n\r\nfff\r\n`, long],
  ['a second request drips', `GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n${head}`, `X: ${long}`],
]

// The limits are 10 seconds for the head and 15 for the whole request, looked at every 2 seconds: all wait together.
describe('C-104: slow clients are cut', { concurrency: true }, () => {
  for (const [what, first, drops] of slow) {
    test(what, async t => {
      const { baseUrl, databasePath } = await startService(t)
      const received = (await drip(t, plain(baseUrl), first, drops)).replace(/^HTTP\/1\.1 404 .*?}/s, '')
      assert.match(received, /^$|^HTTP\/1\.1 408 [\s\S]*\r\n\r\n\{"error":"[^"]+"\}$/)
      assert.deepEqual(contactsIn(databasePath), [])
    })
  }

  test('the head drips over TLS', async t => {
    const { baseUrl } = await startTls(t)
    assert.match(await drip(t, await handshake({ baseUrl }, {}), head, `X: ${long}`), /^HTTP\/1\.1 408 /)
  })

  test('a TLS handshake drips', async t => {
    const { baseUrl } = await startTls(t)
    assert.equal(await drip(t, plain(baseUrl), '\x16', '\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'.padEnd(60, '\0')), '')
  })
})

const isServed = async (baseUrl: string) => {
  const answer = await exchange(baseUrl, 'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  assert.equal(readAnswer(answer).status, 200)
}

const run = (t: TestContext, env: Record<string, string> = {}) =>
  runProgram(t, { HOST: '127.0.0.1', PORT: '0', ...env }, { cwd: temporaryFolder(t) })

describe('C-61: many connections', { concurrency: true }, () => {
  for (const [what, env, mostOfOne] of [
    ['one client', {}, 625],
    ['a trusted proxy', { TRUST_PROXY: '127.0.0.2/32' }, 700],
  ] as const) {
    test(`of 700 of ${what} ${mostOfOne} are taken, and others are served; each gives its place back`, async t => {
      const program = await run(t, env)
      const port = Number(new URL(program.baseUrl).port)
      for (let crowd = 1; crowd <= 2; crowd++) {
        const sockets: Socket[] = []
        for (let i = 0; i < 700; i += 50) {
          const some = Array.from({ length: 50 }, () => connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }))
          for (const socket of some) t.after(() => socket.destroy())
          for (const socket of some) socket.on('error', () => {}).resume()
          await Promise.all(some.map(socket => once(socket, 'connect')))
          sockets.push(...some)
        }
        const open = () => sockets.filter(({ closed }) => !closed).length
        await until(() => open() <= mostOfOne)
        await isServed(program.baseUrl)
        assert.equal(open(), mostOfOne)
        for (const socket of sockets) socket.destroy()
      }
      const refused = logOf(program).some(({ msg }) => /^connections are refused/.test(String(msg)))
      assert.equal(refused, mostOfOne < 700)
    })
  }

  test('clients that send hundreds of requests at once and read nothing are cut, and others are served', async t => {
    const program = await run(t)
    const clients = await pipelineUnread(program.baseUrl, 60, 400)
    t.after(() => leave(clients))
    await until(() => clients.size === 0)
    await isServed(program.baseUrl)
  })

  test('eight requests in progress on a connection are taken, and a ninth ends it', async t => {
    const { baseUrl } = await startService(t)
    const body = '{"name":"Ada","email":"ada@example.com"}'
    const signup = `${head}Content-Length: ${body.length}\r\n\r\n${body}`
    const eight = await exchange(baseUrl, signup.repeat(7) + signup.replace('\r\n', '\r\nConnection: close\r\n'))
    assert.equal(eight.split('HTTP/1.1 200 OK').length - 1, 8)
    assert.equal(await exchange(baseUrl, signup.repeat(9)).catch(() => ''), '')
  })
})

test('a client that closes its side after the request gets its answer, and the connection ends (RFC 9112 §9.6)', async t => {
  const { baseUrl } = await startService(t)
  const body = JSON.stringify({ name: 'Ada', email: 'ada@example.com' })
  const socket = connect({ port: Number(new URL(baseUrl).port), host: '127.0.0.1', allowHalfOpen: true })
  socket.end(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
  assert.match((await socket.setEncoding('latin1').toArray()).join(''), /^HTTP\/1\.1 200 .*"success":true/s)
})
