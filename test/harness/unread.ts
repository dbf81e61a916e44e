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
