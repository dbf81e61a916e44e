import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'

/** The event of a server that says why one of its connections was cut. */
export const CUT = 'cut'

/** What the connection held too much of, or for too long: answers that it does not read, or requests that wait behind them. */
export type Cut = 'unread' | 'waiting'

/** Ends a connection at once, without an answer. */
export function cut(socket: Socket, why: Cut): void {
  socket.destroy()
  // Node gives each accepted socket its server.
  ;(socket as { server?: EventEmitter }).server?.emit(CUT, why)
}
