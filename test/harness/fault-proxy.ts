import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { seeded } from './environment.ts'

/** What a link does to the bytes of both ways. */
export type Fault =
  | { readonly is: 'none' }
  /** Every piece comes later by up to so many milliseconds, in order. */
  | { readonly is: 'delay'; readonly most: number }
  /** Nothing passes until there is another fault; then everything does, also what nobody waits for any more. */
  | { readonly is: 'pause' }
  /** Every connection is reset after 0 to so many bytes, in the middle of whatever is under way. */
  | { readonly is: 'reset'; readonly most: number }
  /**
   * Connections are taken and bytes are taken, but those of this way are lost. A connection that has lost some is never
   * used again, since what came later would make no sense.
   */
  | { readonly is: 'black hole'; readonly loses: Way | 'both' }

export type Way = 'requests' | 'answers'

/** Stands before one TCP server, on a port of its own. */
export interface FaultProxy {
  readonly port: number
  /** From now on, on connections that are open and on new ones. */
  set(fault: Fault): void
  /** Nothing passes on any connection that is open now, as when the machine behind them is gone. */
  strand(): void
  close(): Promise<void>
}

interface Link {
  readonly random: () => number
  /** Bytes until it is reset; chosen when it meets that fault. */
  left: number | undefined
  hasLost: boolean
  reset(): void
}

/** A socket whose end was sent already cannot be reset any more. */
const reset = (socket: Socket) => void (socket.writableEnded ? socket.destroy() : socket.resetAndDestroy())

/** The same faults for the same seed and the same bytes. */
export async function startFaultProxy(target: number, seed: number): Promise<FaultProxy> {
  const random = seeded(seed)
  const links = new Set<Link>()
  let fault: Fault = { is: 'none' }
  let changed = Promise.withResolvers<void>()

  /** Resolves when this piece may go on: how much of it, and whether the connection is reset then. */
  async function pass(link: Link, way: Way, piece: Buffer): Promise<{ part: Buffer; isLast: boolean }> {
    const now = fault
    switch (now.is) {
      case 'pause':
        await changed.promise
        return pass(link, way, piece)
      case 'delay':
        await wait(link.random() * now.most)
        break
      case 'reset':
        link.left ??= Math.floor(link.random() * now.most)
        if (link.left <= piece.length) return { part: piece.subarray(0, link.left), isLast: true }
        link.left -= piece.length
        break
      case 'black hole':
        if (now.loses === way || now.loses === 'both') link.hasLost = true
    }
    return { part: piece, isLast: false }
  }

  async function carry(link: Link, way: Way, from: Socket, to: Socket): Promise<void> {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      const { part, isLast } = await pass(link, way, chunk)
      if (!link.hasLost && part.length > 0 && !to.destroyed && !to.write(part)) {
        await Promise.race([once(to, 'drain'), once(to, 'close')])
      }
      if (isLast) return link.reset()
    }
    if (link.hasLost) to.destroy()
    else to.end()
  }

  const server = createServer({ allowHalfOpen: true, noDelay: true }, near => {
    const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    const link: Link = {
      random: seeded(Math.floor(random() * 2 ** 32)),
      left: undefined,
      hasLost: false,
      reset() {
        reset(near)
        reset(far)
      },
    }
    links.add(link)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      // Also when the server behind is not there: its clients are told at once.
      socket.on('error', () => reset(other))
      socket.once('close', () => other.closed && links.delete(link))
    }
    const over = () => {}
    carry(link, 'requests', near, far).catch(over)
    carry(link, 'answers', far, near).catch(over)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    port: (server.address() as AddressInfo).port,
    set(next) {
      fault = next
      changed.resolve()
      changed = Promise.withResolvers()
      for (const link of links) link.left = undefined
    },
    strand() {
      for (const link of links) link.hasLost = true
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      fault = { is: 'none' }
      changed.resolve()
      for (const link of links) link.reset()
      await closed
    },
  }
}
