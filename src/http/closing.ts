import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LINGER } from './limits.ts'
import { dropWaiting } from './pipelining.ts'

/** The last answer of each connection that is going to close. */
const lastAnswers = new WeakMap<Socket, ServerResponse>()

/** Closes the connection after the answer (RFC 9112 §9.6). */
export function closeAfter(response: ServerResponse): void {
  if (response.headersSent) return
  response.setHeader('connection', 'close')
  const { socket } = response.req
  // What Node calls after the last answer. Its own would not wait for a client that is still sending.
  socket.destroySoon = () => linger(socket)
  // A later one is never sent.
  if (!lastAnswers.has(socket)) lastAnswers.set(socket, response)
}

/** Whether the request came behind the last one of its connection: it must not be carried out (RFC 9112 §9.6). */
export function isBehindLast(response: ServerResponse): boolean {
  const last = lastAnswers.get(response.req.socket)
  return last !== undefined && last !== response
}

/**
 * Ends a connection whose client may still be sending (RFC 9112 §9.6): closes our side, then reads and drops what arrives
 * until the client closes too, or for `LINGER`. Closed at once it would be reset, and a reset can overtake the answer.
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
