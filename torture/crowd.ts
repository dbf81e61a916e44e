import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

export interface CrowdOptions {
  readonly port: number
  readonly count: number
  /** The address that the connection with this number comes from; without it, 127.0.0.1, which is quickest. */
  from?(number: number): string
  /** Told of each connection once it is there, and again when it is there anew. */
  joined(socket: Socket, number: number): void
  /** Told of each that the server ended, with the seconds since it was there. */
  cut?(number: number, after: number): void
  /** Whether one that was ended comes back. */
  readonly comesBack?: boolean
}

/** Connections of attackers. */
export interface Crowd {
  /** Those that are open. */
  size(): number
  leave(): void
}

/** Opened at once, fewer than a server's queue of connections takes. */
const AT_ONCE = 200
/** Milliseconds until a connection that was ended comes back. */
const BACK = 250

/** Opens connections by the thousand. Resolves when each was tried once. */
export async function gather(options: CrowdOptions): Promise<Crowd> {
  const { port, count, from, joined, cut, comesBack = false } = options
  const open = new Set<Socket>()
  let isOver = false

  const enter = (number: number): Promise<void> =>
    new Promise(resolve => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true, ...(from && { localAddress: from(number) }) })
      let since = Number.NaN
      socket.once('connect', () => {
        if (isOver) return void socket.destroy()
        since = performance.now()
        open.add(socket)
        resolve()
        joined(socket, number)
      })
      socket.on('error', () => {}).on('end', () => socket.destroy())
      socket.once('close', async () => {
        resolve()
        if (isOver) return
        if (open.delete(socket)) cut?.(number, (performance.now() - since) / 1000)
        if (!comesBack) return
        await wait(BACK)
        if (!isOver) await enter(number)
      })
    })

  for (let first = 0; first < count; first += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, i) => first + i)
    await Promise.all(numbers.map(enter))
  }
  return {
    size: () => open.size,
    leave() {
      isOver = true
      for (const socket of open) socket.destroy()
    },
  }
}
