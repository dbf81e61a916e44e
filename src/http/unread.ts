import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { cut } from './cut.ts'
import * as limits from './limits.ts'

/** An answer that its client has not taken, or not to its end. */
interface Unread {
  readonly socket: Socket
  readonly bytes: number
  /** When it was sent, in milliseconds of the monotonic clock. */
  readonly since: number
}

/** Those of the whole process, oldest first. In the clear, the kernel takes most answers at once: they are never here. */
const unread = new Map<ServerResponse, Unread>()
let total = 0
let sweep: NodeJS.Timeout | undefined

/**
 * Call it when an answer has been sent. Its client has `UNREAD_TIMEOUT` to take it, which no further request renews. While
 * the answers of this process hold more than `UNREAD_BYTES`, or more than `STALLED_BYTES` with some that are older than
 * `STALLED_AFTER`, the oldest are given up, and their connections cut.
 */
export function awaitReader(response: ServerResponse): void {
  const { socket } = response
  if (!socket?.writableLength || socket.destroyed) return
  const bytes = limits.RESPONSE_BYTES + socket.writableLength
  unread.set(response, { socket, bytes, since: performance.now() })
  total += bytes
  response.once('close', settled)
  sweep ??= setInterval(cutSlowest, LOOK_EVERY).unref()
  if (total > limits.STALLED_BYTES) cutSlowest()
}

/** Milliseconds. */
const LOOK_EVERY = 1_000

function settled(this: ServerResponse): void {
  total -= unread.get(this)?.bytes ?? 0
  unread.delete(this)
}

function cutSlowest(): void {
  const now = performance.now()
  for (const [response, { socket, since }] of unread) {
    const age = now - since
    const isStalled = total > limits.STALLED_BYTES && age > limits.STALLED_AFTER
    if (!isStalled && total <= limits.UNREAD_BYTES && age <= limits.UNREAD_TIMEOUT) return
    settled.call(response)
    cut(socket, 'unread')
  }
  clearInterval(sweep)
  sweep = undefined
}
