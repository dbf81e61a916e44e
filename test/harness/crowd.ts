/** Clients that write to sockets of their own, by the hundred, from several loopback addresses. */
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { ca } from './tls.ts'

/** Connections that are opened at once, fewer than any backlog. */
const AT_ONCE = 100

export interface Gathering {
  readonly count: number
  /** The address of a client. */
  readonly from?: (number: number) => string
  readonly secure?: boolean
  readonly joined: (socket: Socket, number: number) => void
}

/** Opens connections, each of which was accepted or refused when this resolves. @returns those that are open. */
export async function gather(
  baseUrl: string,
  { count, from = () => '127.0.0.1', secure = false, joined }: Gathering,
): Promise<ReadonlySet<Socket>> {
  const open = new Set<Socket>()
  const port = Number(new URL(baseUrl).port)
  const enter = (number: number) =>
    new Promise<void>(resolve => {
      const options = { host: '127.0.0.1', port, localAddress: from(number), noDelay: true }
      const socket = secure ? connectTls({ ...options, ca }) : connect(options)
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        open.add(socket)
        joined(socket, number)
        resolve()
      })
      socket.on('error', () => {}).on('end', () => socket.destroy())
      socket.once('close', () => {
        open.delete(socket)
        resolve()
      })
    })
  for (let first = 0; first < count; first += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, i) => enter(first + i)))
  }
  return open
}

export const leave = (sockets: ReadonlySet<Socket>): void => sockets.forEach(socket => void socket.destroy())

/** Clients that send so many requests for the longest page at once, and an empty line now and then, and read nothing. */
export function pipelineUnread(baseUrl: string, count: number, requests: number): Promise<ReadonlySet<Socket>> {
  const bytes = 'GET /docs/api HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(requests)
  return gather(baseUrl, {
    count,
    secure: baseUrl.startsWith('https:'),
    joined(socket) {
      socket.pause().write(bytes)
      // They notice that they were cut by what they send.
      const timer = setInterval(() => socket.write('\r\n'), 200)
      socket.once('close', () => clearInterval(timer))
    },
  })
}

/** Signups that arrive by schedule, however slow the answers are. */
export interface OpenLoop {
  /** Kept open, with one request at a time on each; they come from `addresses` loopback addresses in turn. */
  readonly connections: number
  readonly addresses: number
  /** Signups a second, each with a new address. */
  readonly rate: number
  readonly seconds: number
}

export interface Outcome {
  readonly due: number
  /** How many were answered with this status. */
  readonly answers: Readonly<Record<number, number>>
  /** Cut before their answers, or without any after a minute. */
  readonly lost: number
}

const PATIENCE = 60_000

export async function openLoop(baseUrl: string, { connections, addresses, rate, seconds }: OpenLoop): Promise<Outcome> {
  const { host } = new URL(baseUrl)
  const run = Math.random().toString(36).slice(2, 8)
  const free = new Set<Socket>()
  const inFlight = new Set<Socket>()
  const answers: Record<number, number> = {}
  const joined = (socket: Socket) => {
    let received = ''
    free.add(socket)
    socket.setEncoding('latin1').on('data', chunk => {
      received += chunk
      const [head, body] = received.split('\r\n\r\n', 2)
      if (body === undefined || body.length < Number(/\r\ncontent-length: (\d+)/i.exec(head!)?.[1])) return
      received = ''
      const status = Number(head!.slice(9, 12))
      answers[status] = (answers[status] ?? 0) + 1
      inFlight.delete(socket)
      if (!/\r\nconnection: close/i.test(head!)) free.add(socket)
    })
    socket.once('close', () => {
      free.delete(socket)
      inFlight.delete(socket)
    })
  }
  const from = (number: number) => `127.0.${number % addresses}.1`
  const open = await gather(baseUrl, { count: connections, from, joined })

  const due = Math.floor(rate * seconds)
  const began = performance.now()
  let sent = 0
  while (performance.now() < began + seconds * 1_000 + PATIENCE && (sent < due || inFlight.size > 0)) {
    for (const socket of free) {
      if (sent === due || performance.now() < began + (sent * 1_000) / rate) break
      free.delete(socket)
      inFlight.add(socket)
      const body = `{"name":"Zebulon Quixote","email":"z.${run}.${sent++}@quixote.example"}`
      const fields = `Host: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
      socket.write(`POST /api/waitlist HTTP/1.1\r\n${fields}\r\n\r\n${body}`, 'latin1')
    }
    await wait(1)
  }
  leave(open)
  const answered = Object.values(answers).reduce((sum, count) => sum + count, 0)
  return { due, answers, lost: due - answered }
}
