import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { ca } from './tls.ts'

export interface UnreadOptions {
  readonly connections: number
  /** Requests for the longest page, sent at once on each connection. */
  readonly requests: number
  /** Milliseconds between two signs of life, which are empty lines; null: none. */
  readonly signs: number | null
  /** How many addresses they come from, in turn, since each has a share. Without it, 127.0.0.1. */
  readonly addresses?: number
}

/** Clients that ask, and never take the answers. */
export interface UnreadClients {
  /** How many connections the server has accepted and not cut, as far as these clients have noticed. */
  open(): number
  close(): void
}

/** This many handshakes are under way at a time. */
const AT_ONCE = 50

/** In the clear or over TLS: requests are pipelined, and nothing is read from the socket. */
export async function pipelineUnread(
  baseUrl: string,
  { connections, requests, signs, addresses }: UnreadOptions,
): Promise<UnreadClients> {
  const bytes = Buffer.from('GET /docs/api HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(requests))
  const open = new Set<Socket>()
  const { protocol, hostname, port } = new URL(baseUrl)
  const begin = (_: unknown, i: number) =>
    new Promise<void>(resolve => {
      const from = addresses && { localAddress: `127.2.0.${1 + (i % addresses)}` }
      const place = { host: hostname, port: Number(port), ...from }
      const isSecure = protocol === 'https:'
      const socket = isSecure ? connectTls({ ...place, ca }) : connect(place)
      socket.once(isSecure ? 'secureConnect' : 'connect', () => {
        open.add(socket)
        socket.pause().write(bytes)
        resolve()
      })
      socket.on('error', () => {})
      socket.once('close', () => {
        open.delete(socket)
        resolve()
      })
    })
  const timer = signs === null ? undefined : setInterval(() => open.forEach(socket => void socket.write('\r\n')), signs)
  for (let left = connections; left > 0; left -= AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, begin))
    await wait(1)
  }
  return {
    open: () => open.size,
    close() {
      clearInterval(timer)
      for (const socket of open) socket.destroy()
    },
  }
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
/** Connections that are opened at once, fewer than any backlog. */
const OPENING = 100

export async function openLoop(baseUrl: string, { connections, addresses, rate, seconds }: OpenLoop): Promise<Outcome> {
  const { hostname, port, host } = new URL(baseUrl)
  const run = Math.random().toString(36).slice(2, 8)
  const free = new Set<Socket>()
  const open = new Set<Socket>()
  const inFlight = new Set<Socket>()
  const answers: Record<number, number> = {}

  const connected = (number: number) =>
    new Promise<void>(resolve => {
      const localAddress = `127.0.${number % addresses}.1`
      const socket = connect({ host: hostname, port: Number(port), localAddress, noDelay: true })
      let received = ''
      open.add(socket)
      socket
        .setEncoding('latin1')
        .once('connect', () => resolve(void free.add(socket)))
        .on('data', chunk => {
          received += chunk
          const [head, body] = received.split('\r\n\r\n', 2)
          if (body === undefined || body.length < Number(/\r\ncontent-length: (\d+)/i.exec(head!)?.[1])) return
          received = ''
          const status = Number(head!.slice(9, 12))
          answers[status] = (answers[status] ?? 0) + 1
          inFlight.delete(socket)
          if (!/\r\nconnection: close/i.test(head!)) free.add(socket)
        })
        .on('error', () => {})
        .once('close', () => {
          for (const each of [free, open, inFlight]) each.delete(socket)
          resolve()
        })
    })
  for (let i = 0; i < connections; i += OPENING)
    await Promise.all(Array.from({ length: OPENING }, (_, j) => connected(i + j)))

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
    if (sent < due && open.size === 0) await connected(sent)
    await wait(1)
  }
  for (const socket of open) socket.destroy()
  const answered = Object.values(answers).reduce((sum, count) => sum + count, 0)
  return { due, answers, lost: due - answered }
}
