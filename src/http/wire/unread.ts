import type { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import * as limits from './limits.ts'

/** The event of a server one of whose connections was cut, since it held too much, or held it for too long. */
export const CUT = 'cut'

/** An answer that its client has not taken, or not to its end; or the requests of a connection that came behind one. */
interface Held {
  readonly socket: Socket
  bytes: number
  /** In milliseconds of the monotonic clock. */
  readonly since: number
}

/** Those of the whole process, oldest first. In the clear, the kernel takes most answers at once: they are never here. */
const held = new Map<ServerResponse | Socket, Held>()
let total = 0
let sweep: NodeJS.Timeout | undefined

/**
 * Call it when an answer has been sent. Its client has `UNREAD_TIMEOUT` to take it, which no further request renews. While
 * more than `UNREAD_BYTES` are held in this process, or more than `STALLED_BYTES` with some that are older than
 * `STALLED_AFTER`, the connections of the oldest are cut.
 */
export function awaitReader(response: ServerResponse): void {
  const { socket } = response
  if (socket?.writableLength) hold(response, socket, limits.RESPONSE_BYTES + socket.writableLength)
}

/** Call it for each request that is not carried out. Node keeps it until its connection ends. */
export const holdRequest = (socket: Socket): void => hold(socket, socket, limits.REQUEST_BYTES)

function hold(what: ServerResponse | Socket, socket: Socket, bytes: number): void {
  if (socket.destroyed) return
  const known = held.get(what)
  if (known === undefined) {
    held.set(what, { socket, bytes, since: performance.now() })
    what.once('close', release)
  } else {
    known.bytes += bytes
  }
  total += bytes
  sweep ??= setInterval(cutSlowest, LOOK_EVERY).unref()
  if (total > limits.STALLED_BYTES) cutSlowest()
}

/** Milliseconds. */
const LOOK_EVERY = 1_000

function release(this: ServerResponse | Socket): void {
  total -= held.get(this)?.bytes ?? 0
  held.delete(this)
}

function cutSlowest(): void {
  const now = performance.now()
  for (const [what, { socket, since }] of held) {
    const age = now - since
    const isStalled = total > limits.STALLED_BYTES && age > limits.STALLED_AFTER
    if (!isStalled && total <= limits.UNREAD_BYTES && age <= limits.UNREAD_TIMEOUT) return
    release.call(what)
    if (!socket.destroyed) cut(socket)
  }
  clearInterval(sweep)
  sweep = undefined
}

/** Ends a connection at once, without an answer. */
function cut(socket: Socket): void {
  socket.destroy()
  // Node gives each accepted socket its server.
  ;(socket as { server?: EventEmitter }).server?.emit(CUT)
}
