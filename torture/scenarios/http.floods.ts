import { setTimeout as wait } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { KEEP_ALIVE_TIMEOUT } from '../../src/http/limits.ts'
import {
  ACK,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  either,
  field,
  frame,
  GOAWAY,
  get,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  indexed,
  openHttp2,
  PING,
  PRIORITY,
  post,
  pseudo,
  RST_STREAM,
  SETTINGS,
  settings,
  uint32,
  WINDOW_UPDATE,
} from '../frames.ts'
import { heapOf, inspected } from '../heap.ts'
import type { Figure, Scenario, Scene } from '../scenario.ts'
import { underAttack, withTls } from '../under-attack.ts'
import type { Watch } from '../watch.ts'

/**
 * Millions of bytes. More than other attacks may cost: the collector lets 300,000 requests a second, all of them reset, lie
 * for a while. It does not grow with time: an hour costs what a minute does.
 */
const MEMORY = 350
/** Millions of bytes that may still be in use when all connections are gone, and milliseconds until they are. */
const KEPT = 20
/** Milliseconds between two looks at the heap. */
const CLEARING = 2_000
/** Seconds until the connection of a client that is gone has ended, in the worst case: it reads nothing, and is not read. */
const GONE = KEEP_ALIVE_TIMEOUT / 1_000 + 10
/** Connections of each flood. */
const CONNECTIONS = 20
/** Bytes that are written at once. */
const PACKET = 16_384

/** What is sent again and again; `i` counts from 0, and streams of clients are odd (RFC 9113 §5.1.1). */
interface Flood {
  /** Before all else, in place of settings that change nothing. */
  readonly first?: readonly Buffer[]
  /** Once. */
  readonly before?: Buffer
  again(i: number): Buffer
  /** Nothing of what comes is read. */
  readonly isDeaf?: boolean
}

const stream = (i: number) => (2 * i + 1) & 0x7fffffff
const cancel = uint32(8)

const floods: Readonly<Record<string, Flood>> = {
  // CVE-2023-44487
  'rapid reset': { again: i => Buffer.concat([get(stream(i), '/docs/api'), frame(RST_STREAM, 0, stream(i), cancel)]) },
  'rapid reset of signups': { again: i => Buffer.concat([post(stream(i)), frame(RST_STREAM, 0, stream(i), cancel)]) },
  // CVE-2025-8671: the server is made to reset.
  'made to reset': {
    again: i => Buffer.concat([get(stream(i), '/docs/api'), frame(WINDOW_UPDATE, 0, stream(i), uint32(0))]),
  },
  'requests, deaf': { again: i => get(stream(i), '/docs/api'), isDeaf: true },
  // CVE-2024-27983 and its like
  CONTINUATION: {
    before: frame(HEADERS, 0, 1, pseudo('GET', '/')),
    again: () => frame(CONTINUATION, 0, 1, field('x', 'y'.repeat(1_000))),
  },
  'empty CONTINUATION': { before: frame(HEADERS, 0, 1, pseudo('GET', '/')), again: () => frame(CONTINUATION, 0, 1) },
  'CONTINUATION, then away': {
    again: i =>
      Buffer.concat([frame(HEADERS, 0, stream(i), pseudo('GET', '/')), frame(CONTINUATION, END_HEADERS, stream(i))]),
  },
  // CVE-2019-9512, 9515, 9514
  'PING, deaf': { again: () => frame(PING, 0, 0, Buffer.alloc(8)), isDeaf: true },
  'SETTINGS, deaf': { again: () => settings(), isDeaf: true },
  'SETTINGS, full': {
    again: i => settings(...Array.from({ length: 30 }, () => [1, i & 4_095] as const)),
    isDeaf: true,
  },
  'windows changed': {
    before: Buffer.concat(Array.from({ length: 90 }, (_, i) => get(stream(i), '/docs/api'))),
    again: i => settings([INITIAL_WINDOW_SIZE, i & 1]),
  },
  'acknowledgements that nobody asked for': { again: () => frame(SETTINGS, ACK, 0) },
  // CVE-2019-9518
  'empty DATA': { before: post(1), again: () => frame(DATA, 0, 1) },
  'DATA that is all padding': {
    before: post(1),
    again: () => frame(DATA, 0x8, 1, Buffer.concat([Buffer.from([255]), Buffer.alloc(255)])),
  },
  'DATA for no stream': { before: post(1), again: i => frame(DATA, 0, stream(i + 1), Buffer.alloc(100)) },
  // CVE-2019-9511, 9517, 9513
  'windows of one byte': {
    first: [settings([INITIAL_WINDOW_SIZE, 1])],
    before: Buffer.concat(Array.from({ length: 90 }, (_, i) => get(stream(i), '/docs/api'))),
    again: i => frame(WINDOW_UPDATE, 0, stream(i % 90), uint32(1)),
  },
  'windows of 0, and PING': {
    first: [settings([INITIAL_WINDOW_SIZE, 0])],
    before: Buffer.concat(Array.from({ length: 90 }, (_, i) => get(stream(i), '/docs/api'))),
    again: () => frame(PING, 0, 0, Buffer.alloc(8)),
  },
  PRIORITY: { again: i => frame(PRIORITY, 0, stream(i), Buffer.concat([uint32(stream(i + 1)), Buffer.from([1])])) },
  'PRIORITY in a circle': {
    again: i => frame(PRIORITY, 0, stream(i % 50), Buffer.concat([uint32(stream((i * 7) % 50)), Buffer.from([1])])),
  },
  // CVE-2016-1544, CVE-2019-9516
  'a bomb of fields': {
    again: i =>
      frame(
        HEADERS,
        END_STREAM | END_HEADERS,
        stream(i),
        // The newest entry of the table, 8,000 times.
        Buffer.concat([pseudo('GET', '/'), indexed('x', 'y'.repeat(3_000)), Buffer.alloc(8_000, 0x80 | 62)]),
      ),
  },
  'fields without a name': {
    again: i =>
      frame(HEADERS, END_STREAM | END_HEADERS, stream(i), Buffer.concat([pseudo('GET', '/'), Buffer.alloc(6_000)])),
  },
  'window updates': { again: () => frame(WINDOW_UPDATE, 0, 0, uint32(1)) },
  'unknown frames': { again: i => frame(0x40 + (i % 100), i & 255, stream(i), Buffer.alloc(100)) },
  GOAWAY: { again: () => frame(GOAWAY, 0, 0, uint32(0, 0)) },
  'frames that are too large': {
    again: () => Buffer.concat([Buffer.from([0x7f, 0xff, 0xff, 0, 0, 0, 0, 0, 1]), Buffer.alloc(16_000)]),
  },
  'no frames': { again: i => Buffer.from(Array.from({ length: 100 }, (_, j) => (i * 31 + j * 17) & 255)) },
}

export const scenario: Scenario = {
  promise:
    'Floods of HTTP/2 frames cost little memory and leave nothing behind, and an honest client is served meanwhile.',
  least: 18,
  weight: 4,
  async run(scene) {
    const program = await scene.service({ ...withTls, ...inspected })
    return underAttack(scene, program, { memory: MEMORY, gone: GONE }, async watch => {
      const heap = await heapOf(program)
      const before = await heap.used()
      const figures = await floodAll(scene, program.baseUrl, watch)
      let kept: number
      const end = performance.now() + GONE * 1_000
      do {
        await wait(CLEARING)
        kept = (await heap.used()) - before
      } while (kept > KEPT && performance.now() < end)
      heap.close()
      return {
        figures: [...figures, { name: 'heap that is kept afterwards', value: kept, unit: 'MB', most: KEPT }],
        broken: kept > KEPT ? [`${Math.round(kept)} MB of heap are kept after the floods, more than ${KEPT}`] : [],
      }
    })
  },
}

async function floodAll(scene: Scene, baseUrl: string, { samples }: Watch): Promise<Figure[]> {
  const figures: Figure[] = []
  const each = (scene.seconds * 0.8) / Object.keys(floods).length
  let frames = 0
  for (const [name, flood] of Object.entries(floods)) {
    const first = samples.length
    const until = performance.now() + each * 1000
    const connections = Array.from({ length: CONNECTIONS }, (_, i) =>
      floodOne(baseUrl, `127.0.1.${i + 1}`, flood, until),
    )
    const sent = (await Promise.all(connections)).reduce((sum, count) => sum + count, 0)
    frames += sent
    const memory = Math.max(...samples.slice(first).map(({ memory }) => memory))
    scene.diagnostic(`${name}: ${sent} times, ${Math.round(memory)} MB`)
    figures.push({ name: `memory during ${name}`, value: memory, unit: 'MB' })
  }
  return [{ name: 'floods', value: figures.length }, { name: 'frames, about', value: frames }, ...figures]
}

/** Floods until it is time, on a new connection whenever one is cut. Resolves with the number of repetitions. */
async function floodOne(baseUrl: string, from: string, flood: Flood, until: number): Promise<number> {
  const { first = [], before, again, isDeaf = false } = flood
  let sent = 0
  while (performance.now() < until) {
    const socket = await openHttp2(baseUrl, from, ...first)
    if (isDeaf) socket.pause()
    if (before !== undefined) socket.write(before)
    for (let i = 0; !socket.destroyed && performance.now() < until; ) {
      const packet: Buffer[] = []
      for (let size = 0; size < PACKET; i++) size += packet[packet.push(again(i)) - 1]!.length
      await written(socket, Buffer.concat(packet), until)
      sent += packet.length
    }
    socket.destroy()
  }
  return sent
}

async function written(socket: TLSSocket, bytes: Buffer, until: number): Promise<void> {
  if (socket.destroyed || socket.write(bytes)) return wait(1)
  await either(socket, 'drain', 'close', Math.max(1, until - performance.now()))
}
