import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LINGER } from './limits.ts'

/** The connections that close after the answer under way. */
const closing = new WeakSet<Socket>()

/** Closes the connection after the answer (RFC 9112 §9.6), even if its head has been sent. */
export function closeAfter(response: ServerResponse): void {
  const { socket } = response.req
  if (closing.has(socket)) return
  closing.add(socket)
  // What Node calls after the last answer. Its own would not wait for a client that is still sending.
  socket.destroySoon = () => linger(socket)
  if (response.headersSent) response.once('finish', () => socket.writable && linger(socket))
  else response.setHeader('connection', 'close')
}

/**
 * Closes the connection after the answer under way. What came behind its request is not carried out: the client may repeat
 * it on another connection (RFC 9112 §9.3.2).
 */
export function dropBehind(current: ServerResponse): void {
  closeAfter(current)
  discard(current.req.socket)
}

/**
 * Ends a connection whose client may still be sending (RFC 9112 §9.6): closes our side, then reads and drops what arrives
 * until the client closes too, or for `LINGER`. Closed at once it would be reset, and a reset can overtake the answer.
 */
export function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER)
  socket.once('close', () => clearTimeout(timer))
  discard(socket)
  socket.resume()
  socket.end()
}

/** A listener of our own takes the connection away from Node's parser. */
const discard = (socket: Socket): void => void socket.removeAllListeners('data').on('data', () => {})
