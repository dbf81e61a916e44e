import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { connectionClient, type TrustedProxies } from '../../src/http/client-address.ts'
import { boundConnections } from '../../src/http/connections.ts'
import * as limits from '../../src/http/limits.ts'
import { createListener, type Handler } from '../../src/http/listener.ts'
import { contentFields, send } from '../../src/http/response.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, runProgram, until } from '../harness/program.ts'
import { exchange, readAnswer } from '../harness/raw.ts'
import { recordingLog, startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { ca, fixture, json, someone } from '../harness/tls.ts'
import { pipelineUnread, type UnreadClients } from '../harness/unread.ts'

/** Three clients of Linux's loopback, which has a whole /8. */
const [ada, bob, cleo] = ['127.0.0.2', '127.0.0.3', '127.0.0.4'] as const

/** Answers `/slow` when it is told to, and everything else at once. */
async function boundedServer(
  t: TestContext,
  { all = 100, share = 100, proxies = { kind: 'none' } as TrustedProxies, secure = false },
) {
  const { log, logged } = recordingLog()
  const slow: (() => void)[] = []
  const handler: Handler = (request, response) => {
    const answer = () => response.end(request.url)
    if (request.url === '/slow') slow.push(answer)
    else answer()
  }
  const pair = { cert: readFileSync(fixture('first.crt')), key: readFileSync(fixture('first.key')) }
  const server = createListener(handler, secure ? pair : null)
  boundConnections({ all, share, clientOf: connectionClient(proxies), log }).add(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo

  const open = async (from: string = ada) => {
    const accepted = once(server, 'connection')
    const client = new Client(connect({ port, host: '127.0.0.1', localAddress: from }))
    t.after(() => client.socket.destroy())
    await accepted
    return client
  }
  return { port, open, slow, logged, server }
}

/** One connection, as its client sees it. */
class Client {
  received = ''
  closed = false
  readonly socket: Socket
  constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1').on('data', chunk => {
      this.received += chunk
    })
    socket.on('error', () => {})
    socket.once('close', () => {
      this.closed = true
    })
  }
  send(path: string): void {
    this.socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  }
  /** Sends a request and waits for its answer. */
  async ask(path = '/'): Promise<void> {
    const before = this.received.length
    this.send(path)
    await until(() => this.received.length > before || this.closed)
    assert.match(this.received.slice(before), /^HTTP\/1\.1 200 /)
  }
}

/** Which of them were closed by the server; asked when one of them must have been. */
async function closed(clients: readonly Client[], count = 1): Promise<readonly number[]> {
  await until(() => clients.filter(each => each.closed).length >= count)
  return clients.flatMap((each, i) => (each.closed ? [i] : []))
}

describe('C-61: connections', { concurrency: true }, () => {
  test('a client over its share loses the connection that was idle for longest; others lose none', async t => {
    const { open } = await boundedServer(t, { share: 3 })
    const other = await open(bob)
    const own = [await open(), await open(), await open()]
    await own[0]!.ask()
    own.push(await open())
    assert.deepEqual(await closed(own), [1])
    own.push(await open())
    assert.deepEqual(await closed(own, 2), [1, 2])
    for (const each of [own[0]!, own[3]!, own[4]!, other]) await each.ask()
  })

  test('when all are taken, the connection that was idle for longest makes room, whoever opened it', async t => {
    const { open } = await boundedServer(t, { all: 3 })
    const taken = [await open(ada), await open(bob), await open(ada)]
    await taken[0]!.ask()
    taken.push(await open(cleo))
    assert.deepEqual(await closed(taken), [1])
    taken.push(await open(bob))
    assert.deepEqual(await closed(taken, 2), [1, 2])
    for (const each of [taken[0]!, taken[3]!, taken[4]!]) await each.ask()
  })

  for (const bound of ['share', 'all'] as const) {
    test(`a connection in use is never dropped: the new one is refused (${bound})`, async t => {
      const { open, slow } = await boundedServer(t, { [bound]: 2 })
      const busy = [await open(), await open()]
      for (const each of busy) each.send('/slow')
      await until(() => slow.length === 2)
      const late = await open()
      await until(() => late.closed)
      assert.equal(late.received, '')
      for (const answer of slow) answer()
      for (const each of busy) {
        await until(() => each.received !== '')
        assert.match(each.received, /^HTTP\/1\.1 200 .*\/slow$/s)
        await each.ask()
      }
    })
  }

  for (const secure of [false, true]) {
    test(`a connection that was closed gives its place back (${secure ? 'TLS' : 'plain'})`, async t => {
      const { open, server, logged } = await boundedServer(t, { share: 2, all: 2, secure })
      for (let i = 0; i < 10; i++) {
        const client = await open()
        client.socket.destroy()
        await until(() => new Promise<boolean>(resolve => server.getConnections((_, open) => resolve(open === 0))))
      }
      assert.deepEqual(logged, [])
    })
  }

  test('a client that never begins its TLS handshake counts, and makes room', async t => {
    const { open, port } = await boundedServer(t, { share: 2, secure: true })
    const silent = [await open(), await open()]
    const socket = connectTls({ port, host: '127.0.0.1', localAddress: ada, ca } as object)
    t.after(() => socket.destroy())
    await once(socket, 'secureConnect')
    assert.deepEqual(await closed(silent), [0])
    const client = new Client(socket)
    await client.ask()
    // The one that was used is idle for a shorter time than the silent one.
    await open()
    assert.deepEqual(await closed([silent[1]!, client]), [0])
  })

  const proxies: readonly TrustedProxies[] = [
    { kind: 'networks', networks: ['127.0.0.2/32'] },
    { kind: 'hops', hops: 1 },
  ]
  for (const each of proxies) {
    test(`a trusted proxy has no share, but makes room when all are taken (${each.kind})`, async t => {
      const { open } = await boundedServer(t, { share: 1, all: 3, proxies: each })
      const own = [await open(), await open(), await open()]
      for (const each of own) await each.ask()
      const [longest] = own
      await open()
      assert.deepEqual(await closed(own), [0])
      assert.ok(longest!.closed)
    })
  }
})

const count = 700
test(`${count} idle connections of one client, then of 64, shut nobody out`, async t => {
  const env = { HOST: '127.0.0.1', PORT: '0', DATABASE_URL: 'sqlite:waitlist.db' }
  const program = await runProgram(t, env, { cwd: temporaryFolder(t) })
  const sockets: Socket[] = []
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  const port = Number(new URL(program.baseUrl).port)
  const crowd = async (clients: number) => {
    for (let i = 0; i < count; i += 50) {
      const some = Array.from({ length: 50 }, (_, j) =>
        connect({ port, host: '127.0.0.1', localAddress: `127.1.0.${1 + ((i + j) % clients)}` }),
      )
      sockets.push(...some)
      for (const socket of some) socket.on('error', () => {})
      await Promise.all(some.map(socket => once(socket, 'connect')))
    }
  }
  const isServed = async () => {
    for (let i = 0; i < 20; i++) {
      const answer = await exchange(program.baseUrl, 'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
      assert.equal(readAnswer(answer).status, 200)
    }
  }
  await crowd(1)
  await isServed()
  await until(() => sockets.filter(socket => !socket.destroyed).length <= limits.CONNECTIONS_OF_CLIENT)
  assert.ok(logOf(program).some(({ overShare }) => Number(overShare) > 0))
  await crowd(64)
  await isServed()
})

const attack = async (t: TestContext, clients: Promise<UnreadClients>) => {
  const started = await clients
  t.after(started.close)
  return started
}

/** Signs up one after the other until told to stop, each on a connection of its own. Returns how many were taken. */
function signUpAndUp(baseUrl: string): () => Promise<number> {
  let isOver = false
  const signups = (async () => {
    let taken = 0
    for (; !isOver || taken === 0; taken++) {
      const init = { method: 'POST', headers: { ...json, connection: 'close' }, body: someone(`honest-${taken}`) }
      const { status } = await fetch(`${baseUrl}/api/waitlist`, init)
      assert.equal(status, 200)
      await wait(20)
    }
    return taken
  })()
  return () => {
    isOver = true
    return signups
  }
}

/** Of each line that says why connections were cut. There is one in ten seconds. */
const cutsIn = (logged: readonly Record<string, unknown>[]) =>
  logged.filter(({ msg }) => /^connections were cut/.test(String(msg))).map(({ unread }) => unread)

const short = { status: 204, fields: [], body: null }

/** A server whose longest page has so many bytes, of which the kernel takes about half. */
async function serverOf(t: TestContext, bytes: number) {
  const page = Buffer.alloc(bytes)
  const long = { status: 200, fields: contentFields('text/html', bytes), body: page }
  const server = createListener(({ url }, response) => send(response, url === '/docs/api' ? long : short), null)
  const { log, logged } = recordingLog()
  boundConnections({ all: 100, share: 100, clientOf: () => null, log }).add(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, logged }
}

describe('C-61: clients that do not read', () => {
  test('requests behind an answer that is not read hold so much memory at most; the oldest connections are cut, which is logged', async t => {
    const { baseUrl, logged } = await startService(t)
    const honest = signUpAndUp(baseUrl)
    const clients = await attack(t, pipelineUnread(baseUrl, { connections: 60, requests: 400, signs: 200 }))
    // The kernel takes some answers for each of them; hundreds of requests are still held on each.
    await until(() => clients.open() <= limits.STALLED_BYTES / (200 * limits.REQUEST_BYTES))
    assert.equal(cutsIn(logged)[0], 1)
    await honest()
  })

  test('answers hold so much memory at most; the connections that do not take theirs are cut, which is logged', async t => {
    const { baseUrl, logged } = await serverOf(t, limits.STALLED_BYTES)
    const clients = await attack(t, pipelineUnread(baseUrl, { connections: 20, requests: 1, signs: 200 }))
    await until(() => clients.open() <= 2)
    assert.equal(cutsIn(logged)[0], 1)
    assert.equal((await fetch(baseUrl)).status, 204)
  })

  test(`an answer is waited for ${limits.UNREAD_TIMEOUT / 1_000} s, whatever else the client sends`, {
    skip: !isSlow && 'it takes a minute, in .ci/run',
  }, async t => {
    const { baseUrl } = await serverOf(t, 0.75 * limits.STALLED_BYTES)
    const started = performance.now()
    const clients = await attack(t, pipelineUnread(baseUrl, { connections: 1, requests: 100, signs: 1_000 }))
    await wait(limits.UNREAD_TIMEOUT - (performance.now() - started) - 2_000)
    assert.equal(clients.open(), 1)
    await wait(6_000)
    assert.equal(clients.open(), 0)
  })
})
