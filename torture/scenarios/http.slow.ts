import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import * as limits from '../../src/http/limits.ts'
import { gather } from '../crowd.ts'
import type { Figure, Scenario, Scene } from '../scenario.ts'
import { type Found, inTurn, underAttack, withTls } from '../under-attack.ts'

/** Connections of each kind. */
const CONNECTIONS = 500
/** Milliseconds between two bytes. */
const PACE = 500
/** Seconds that a cut may be late: checks are made every two, and the machine may be busy. */
const LATE = 4

interface Slow {
  /** At once. */
  readonly first: string
  /** Then a byte at a time, over and over; nothing: it only waits. */
  readonly drip: string
  /** Seconds until it is cut at the latest. */
  readonly most: number
}

const post = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const headers = limits.HEADERS_TIMEOUT / 1000
const request = limits.REQUEST_TIMEOUT / 1000
const handshake = limits.TLS_HANDSHAKE_TIMEOUT / 1000

const plain: Readonly<Record<string, Slow>> = {
  'nothing at all': { first: '', drip: '', most: headers },
  'half a head': { first: 'GET /api/health HTTP/1.1\r\nHost: x\r\n', drip: '', most: headers },
  'a head, byte by byte': { first: 'GET /api/health HTTP/1.1\r\n', drip: 'X-Slow: yes\r\n', most: headers },
  'empty lines': { first: '', drip: '\r\n', most: headers },
  'half a body': { first: `${post}Content-Length: 1000\r\n\r\n{`, drip: '', most: request },
  'a body, byte by byte': { first: `${post}Content-Length: 1000\r\n\r\n{`, drip: ' ', most: request },
  'chunks, byte by byte': { first: `${post}Transfer-Encoding: chunked\r\n\r\n`, drip: '1\r\n \r\n', most: request },
  'a chunk extension, byte by byte': { first: `${post}Transfer-Encoding: chunked\r\n\r\n1;`, drip: 'a', most: request },
  'a trailer, byte by byte': { first: `${post}Transfer-Encoding: chunked\r\n\r\n0\r\nX: `, drip: 'a', most: request },
  'a body that waits for a 100': {
    first: `${post}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n`,
    drip: '',
    most: request,
  },
}
const tls: Readonly<Record<string, Slow>> = {
  'no handshake': { first: '', drip: '', most: handshake },
  // The head of a record of 16 KB.
  'half a handshake': { first: '\x16\x03\x01\x40\x00\x01', drip: '', most: handshake },
  'a handshake, byte by byte': { first: '\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03', drip: '\x00', most: handshake },
}

export const scenario: Scenario = {
  promise: `Clients that send slowly, by the thousand, are cut within ${headers} s in a head or a handshake and ${request} s in a body (${LATE} s of grace), and cost little.`,
  least: 18,
  weight: 4,
  run(scene) {
    const over = (env: Record<string, string>, kinds: typeof plain) => async () => {
      const program = await scene.service(env)
      const port = Number(new URL(program.baseUrl).port)
      return underAttack(scene, program, { memory: 150 }, () => crawl(scene, port, kinds))
    }
    return inTurn(scene, { http: over({}, plain), https: over(withTls, tls) })
  },
}

async function crawl(scene: Scene, port: number, kinds: typeof plain): Promise<Found> {
  const all = Object.entries(kinds)
  const dripping = new Map<Socket, { readonly text: string; next: number }>()
  const cuts = all.map((): number[] => [])
  const crowd = await gather({
    port,
    count: CONNECTIONS * all.length,
    from: i => `127.0.2.${1 + (i % 250)}`,
    joined(socket, i) {
      const [, { first, drip }] = all[i % all.length]!
      socket.resume().write(first, 'latin1')
      if (drip !== '')
        dripping.set(
          socket.once('close', () => dripping.delete(socket)),
          { text: drip, next: 0 },
        )
    },
    cut: (i, after) => void cuts[i % all.length]!.push(after),
  })
  const last = performance.now()
  const longest = Math.max(...all.map(([, { most }]) => most)) + LATE
  while (crowd.size() > 0 && performance.now() - last < longest * 1000) {
    for (const [socket, drip] of dripping) socket.write(drip.text[drip.next++ % drip.text.length]!, 'latin1')
    await wait(PACE)
  }
  crowd.leave()

  const figures: Figure[] = []
  const broken: string[] = []
  for (const [i, [name, { most }]] of all.entries()) {
    const slowest = Math.max(0, ...cuts[i]!)
    const left = CONNECTIONS - cuts[i]!.length
    figures.push({ name: `${name}: the last is cut after`, value: slowest, unit: 's', most: most + LATE })
    if (left > 0) broken.push(`${name}: ${left} of ${CONNECTIONS} connections were not cut within ${longest} s`)
    else if (slowest > most + LATE) broken.push(`${name}: cut after ${slowest.toFixed(1)} s, ${most} promised`)
  }
  scene.diagnostic(figures.map(({ name, value }) => `${name} ${value.toFixed(1)} s`).join('; '))
  return { figures, broken }
}
