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
  | { readonly is: 'black hole'; readonly loses: Way }

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
  readonly near: Socket
  readonly far: Socket
  /** Bytes until it is reset; chosen when it meets that fault. */
  left: number | undefined
  hasLost: boolean
}

export async function startFaultProxy(target: number, seed: number): Promise<FaultProxy> {
  const random = seeded(seed)
  const links = new Set<Link>()
  let fault: Fault = { is: 'none' }
  let changed = Promise.withResolvers<void>()

  /** Carries what comes until it ends, or until it was cut. */
  async function carry(link: Link, way: Way): Promise<void> {
    const [from, to] = way === 'requests' ? [link.near, link.far] : [link.far, link.near]
    for await (const chunk of from as AsyncIterable<Buffer>) {
      while (fault.is === 'pause') await changed.promise
      if (fault.is === 'delay') await wait(random() * fault.most)
      if (fault.is === 'black hole' && fault.loses === way) link.hasLost = true
      if (fault.is === 'reset') link.left ??= Math.floor(random() * fault.most)
      const piece = chunk.subarray(0, link.left)
      if (link.left !== undefined) link.left -= piece.length
      if (!link.hasLost && piece.length > 0 && !to.destroyed && !to.write(piece)) {
        await Promise.race([once(to, 'drain'), once(to, 'close')])
      }
      if (link.left === 0) return cut(link)
    }
    if (link.hasLost) to.destroy()
    else to.end()
  }

  const server = createServer({ allowHalfOpen: true, noDelay: true }, near => {
    const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    const link: Link = { near, far, left: undefined, hasLost: false }
    links.add(link)
    for (const socket of [near, far]) {
      // Also when the server behind is not there: its clients see it at once.
      socket.on('error', () => cut(link))
      socket.once('close', () => near.closed && far.closed && links.delete(link))
    }
    for (const way of ['requests', 'answers'] as const) carry(link, way).catch(() => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    port: (server.address() as AddressInfo).port,
    set(next) {
      fault = next
      for (const link of links) link.left = undefined
      changed.resolve()
      changed = Promise.withResolvers()
    },
    strand() {
      for (const link of links) link.hasLost = true
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      fault = { is: 'none' }
      changed.resolve()
      for (const link of links) cut(link)
      await closed
    },
  }
}

/** A socket whose end was sent already cannot be reset any more. */
function cut({ near, far }: Link): void {
  for (const socket of [near, far]) {
    if (socket.writableEnded) socket.destroy()
    else socket.resetAndDestroy()
  }
}
