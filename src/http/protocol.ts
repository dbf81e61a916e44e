import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { linger } from './linger.ts'

export type Incoming = IncomingMessage | Http2ServerRequest
export type Outgoing = ServerResponse | Http2ServerResponse

/** Not decided by the version, which the client chooses in an HTTP/1 request line. */
export const isHttp2 = (request: Incoming): request is Http2ServerRequest => 'stream' in request

/** The last answer of each HTTP/1 connection that is going to close. */
const lastAnswers = new WeakMap<Socket, Outgoing>()

/** Closes an HTTP/1 connection after the answer (RFC 9112 §9.6). */
export function closeAfter(response: Outgoing): void {
  const { req } = response
  if (isHttp2(req) || response.headersSent) return
  response.setHeader('connection', 'close')
  const { socket } = req
  // What Node calls after the last answer. Its own would not wait for a client that is still sending.
  socket.destroySoon = () => linger(socket)
  // A later one is never sent.
  if (!lastAnswers.has(socket)) lastAnswers.set(socket, response)
}

/** Whether the request came behind the last one of its connection: it must not be carried out (RFC 9112 §9.6). */
export function isBehindLast(response: Outgoing): boolean {
  const last = lastAnswers.get(response.req.socket as Socket)
  return last !== undefined && last !== response
}

/**
 * To be called when the answer has been written. HTTP/2 has no Connection field (RFC 9113 §8.2.2): a stream that is answered
 * before the request has ended is closed without an error (§8.1), or it would stay open until the client ends it.
 */
export function endStream({ stream }: Http2ServerRequest): void {
  if (!stream.endAfterHeaders && !stream.readableEnded) setImmediate(close, stream)
}

/** Waits for content to be taken, but not for the fields, which are sent at the end of the turn. */
const close = (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_NO_ERROR)
