import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { temporaryFolder } from '../harness/folder.ts'
import { heapOf, inspected } from '../harness/heap.ts'
import { runProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { ca, pairIn } from '../harness/tls.ts'

const CONNECTIONS = 3_000
const AT_ONCE = 50
/** Connections before them. */
const WARM_UP = 1_000
/** Milliseconds until nothing may be left of them. */
const BACK = 10_000
/** Millions of bytes by which the heap may have grown, for what is compiled later. Half a kilobyte of each are more. */
const GROWN = 1.5

const get = 'GET /api/waitlist HTTP/1.1\r\nHost: x\r\n\r\n'
const head = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
/** The beginning of a ClientHello (RFC 8446 §5.1). */
const hello = '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'

interface Client {
  /** Whether it speaks TLS; without it, as the server does. */
  readonly isSecure?: boolean
  /** Once it is connected. `below` is the socket of TCP, where `socket` may be that of TLS. */
  begin(socket: Socket, below: Socket): void | Promise<void>
}

const clientsOf = (isServerSecure: boolean): Readonly<Record<string, Client>> => ({
  clean: { begin: socket => void socket.write(get.replace('Host', 'Connection: close\r\nHost')) },
  'half-closed': { begin: socket => void socket.end(get) },
  'reset once it is answered': {
    begin: (socket, below) => void socket.once('data', () => below.resetAndDestroy()).write(get),
  },
  'reset within a body': {
    begin: (socket, below) =>
      void socket.write(`${head}Content-Length: 40\r\n\r\n{"name":`, () => below.resetAndDestroy()),
  },
  'sends too much': {
    begin: socket => {
      socket.once('data', () => socket.end())
      socket.write(`${head}Content-Length: 20000\r\n\r\n${'x'.repeat(10_000)}`)
    },
  },
  garbage: { begin: socket => void socket.write('\0GARBAGE\r\n\r\n') },
  'leaves within a handshake, or a head': {
    isSecure: false,
    begin: socket => void socket.write(isServerSecure ? hello : head, 'latin1', () => socket.destroy()),
  },
  // One without TLS, or with it where there is none.
  'refused a handshake': { isSecure: !isServerSecure, begin: socket => void socket.end(get) },
  slow: {
    async begin(socket) {
      for (const piece of ['GET /api/', 'waitlist HTTP/1.1\r\nHo', 'st: x\r\n', '\r\n']) {
        socket.write(piece)
        await wait(20)
      }
      socket.end()
    },
  },
  'reads nothing': {
    begin: socket =>
      void socket.pause().write(get.replace('api/waitlist', 'docs/api').repeat(50), () => socket.destroy()),
  },
})

/** Resolves with the status that it was answered with, if any, when the connection is gone. */
function connectOnce(baseUrl: URL, localAddress: string, { isSecure, begin }: Client): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const below = connect({ port: Number(baseUrl.port), host: '127.0.0.1', localAddress, allowHalfOpen: true })
  const isTls = isSecure ?? baseUrl.protocol === 'https:'
  const socket = isTls ? connectTls({ socket: below, ca }) : below
  let received = ''
  socket.setEncoding('latin1').on('data', text => {
    received += text
  })
  for (const each of [socket, below]) each.on('error', () => {})
  socket.once('end', () => socket.end()).once('close', () => below.destroy())
  below.once('close', () => resolve(/^HTTP\/1\.1 (\d+)/.exec(received)?.[1]))
  socket.once(isTls ? 'secureConnect' : 'connect', () => void begin(socket, below))
  return promise
}

/** Resolves with all statuses that each kind of clients was answered with, when all connections are gone. */
async function connectMany(url: string, count: number): Promise<Record<string, unknown>> {
  const baseUrl = new URL(url)
  const clients = Object.entries(clientsOf(baseUrl.protocol === 'https:'))
  const statuses = clients.map(() => new Set<string | undefined>())
  let next = 0
  const work = async () => {
    for (let i = next++; i < count; i = next++) {
      const kind = i % clients.length
      statuses[kind]!.add(await connectOnce(baseUrl, `127.3.0.${1 + (i % 100)}`, clients[kind]![1]))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return Object.fromEntries(clients.map(([name], kind) => [name, [...statuses[kind]!]]))
}

/** Statuses of the answers, or none. */
const expected = {
  clean: ['200'],
  'half-closed': ['200'],
  'reset once it is answered': ['200'],
  'reset within a body': [undefined],
  'sends too much': ['413'],
  garbage: ['501'],
  'leaves within a handshake, or a head': [undefined],
  'refused a handshake': [undefined],
  slow: ['200'],
  'reads nothing': [undefined],
}

/** What stands for a connection and for what it asks; a record of ours that outlives one keeps one of these. */
const classes = ['node:net Socket', 'node:http IncomingMessage', 'node:http ServerResponse'] as const

describe('C-41, C-100: connections that end', {
  concurrency: true,
  skip: !isSlow && 'it runs in .ci/run',
}, () => {
  for (const scheme of ['http', 'https']) {
    test(`ten seconds after ${CONNECTIONS} connections of ten kinds over ${scheme}, none of their sockets, requests and answers is left, and the heap is back`, async t => {
      const env = {
        HOST: '127.0.0.1',
        PORT: '0',
        RATE_LIMIT: '1000000',
        ...(scheme === 'https' && pairIn(t).env),
        ...inspected,
      }
      const program = await runProgram(t, env, { cwd: temporaryFolder(t) })
      const heap = await heapOf(program)
      t.after(() => heap.close())
      const look = async () => ({ ...(await heap.objects(classes)), MB: await heap.used() })
      const atFirst = await look()
      /** What is in memory once it is no more than that, or after ten seconds. */
      const settled = async (most: typeof atFirst) => {
        const end = performance.now() + BACK
        for (;;) {
          const now = await look()
          const isBack = Object.entries(most).every(([what, count]) => now[what as keyof typeof now] <= count)
          if (isBack || performance.now() > end) return now
          await wait(250)
        }
      }
      // Makes and compiles what is made and compiled once.
      await connectMany(program.baseUrl, WARM_UP)
      const { MB } = await settled({ ...atFirst, MB: Number.POSITIVE_INFINITY })

      assert.deepEqual(await connectMany(program.baseUrl, CONNECTIONS), expected)
      const most = { ...atFirst, MB: MB + GROWN }
      const left = await settled(most)
      for (const [what, count] of Object.entries(most)) {
        assert.ok(left[what as keyof typeof left] <= count, `${what}: ${JSON.stringify({ left, most })}`)
      }
    })
  }
})
