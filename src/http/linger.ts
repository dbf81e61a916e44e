import type { Socket } from 'node:net'
import { LINGER } from './limits.ts'
import { dropWaiting } from './pipelining.ts'

/**
 * Ends an HTTP/1 connection whose client may still be sending (RFC 9112 §9.6): closes our side, then reads and drops what
 * arrives until the client closes too, or for `LINGER`. Closed at once it would be reset, and a reset can overtake the
 * answer.
 */
export function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER)
  socket.once('close', () => clearTimeout(timer))
  dropWaiting(socket)
  // A listener of our own takes the connection away from Node's parser.
  socket.removeAllListeners('data').on('data', () => {})
  socket.resume()
  socket.end()
}
