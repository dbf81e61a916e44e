/** Clients by the hundred, from several loopback addresses. */
import { connect, type Socket } from 'node:net'
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
