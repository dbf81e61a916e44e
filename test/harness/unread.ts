import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { ca } from './tls.ts'

export interface UnreadOptions {
  readonly connections: number
  /** Requests for the longest page, sent at once on each connection. */
  readonly requests: number
  /** Milliseconds between two signs of life (empty lines, PING frames); null: none. */
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

/** HTTP/1.1, in the clear or over TLS: requests are pipelined, and nothing is read from the socket. */
export function pipelineUnread(baseUrl: string, { requests, ...options }: UnreadOptions): Promise<UnreadClients> {
  const bytes = Buffer.from('GET /docs/api HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(requests))
  return openAll(baseUrl, 'http/1.1', options, bytes, Buffer.from('\r\n'))
}

/** HTTP/2: the window of each stream is 0 (RFC 9113 §6.9.2), so that no body can be sent. What is no body is dropped. */
export function streamUnread(baseUrl: string, { requests, ...options }: UnreadOptions): Promise<UnreadClients> {
  const windowOfNothing = Buffer.from([0, 4, 0, 0, 0, 0])
  const streams = Array.from({ length: requests }, (_, i) =>
    frame(HEADERS, 2 * i + 1, END_STREAM | END_HEADERS, fields),
  )
  const bytes = Buffer.concat([preface, frame(SETTINGS, 0, 0, windowOfNothing), ...streams])
  return openAll(baseUrl, 'h2', options, bytes, frame(PING, 0, 0, Buffer.alloc(8)))
}

/** This many handshakes are under way at a time. */
const AT_ONCE = 50

async function openAll(
  baseUrl: string,
  protocol: 'h2' | 'http/1.1',
  { connections, signs, addresses }: Omit<UnreadOptions, 'requests'>,
  bytes: Buffer,
  sign: Buffer,
): Promise<UnreadClients> {
  const open = new Set<Socket>()
  const { protocol: scheme, hostname, port } = new URL(baseUrl)
  const begin = (_: unknown, i: number) =>
    new Promise<void>(resolve => {
      const from = addresses && { localAddress: `127.2.0.${1 + (i % addresses)}` }
      const place = { host: hostname, port: Number(port), ...from }
      const isSecure = scheme === 'https:'
      const socket = isSecure ? connectTls({ ...place, ca, ALPNProtocols: [protocol] }) : connect(place)
      socket.once(isSecure ? 'secureConnect' : 'connect', () => {
        open.add(socket)
        socket.write(bytes)
        if (protocol === 'h2') socket.resume()
        else socket.pause()
        resolve()
      })
      socket.on('error', () => {})
      socket.once('close', () => {
        open.delete(socket)
        resolve()
      })
    })
  const timer = signs === null ? undefined : setInterval(() => open.forEach(socket => void socket.write(sign)), signs)
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

// RFC 9113 §3.4, §4.1, §6. No client library can be told to send so little, or to open so many connections so cheaply.
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const [HEADERS, SETTINGS, PING] = [1, 4, 6]
const [END_STREAM, END_HEADERS] = [1, 4]

function frame(type: number, stream: number, flags: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** RFC 7541 §6, Appendix A: method GET and scheme https are in the static table, path and authority are literals. */
const literal = (index: number, value: string) =>
  Buffer.concat([Buffer.from([index, value.length]), Buffer.from(value)])
const fields = Buffer.concat([Buffer.from([0x82, 0x87]), literal(0x44, '/docs/api'), literal(0x41, 'x')])
