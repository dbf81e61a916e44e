import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { linger } from './linger.ts'

export type Incoming = IncomingMessage | Http2ServerRequest
export type Outgoing = ServerResponse | Http2ServerResponse

/** Not decided by the version, which the client chooses in an HTTP/1 request line. */
export const isHttp2 = (request: Incoming): request is Http2ServerRequest => 'stream' in request

/** Closes an HTTP/1 connection after the answer (RFC 9112 §9.6). */
export function closeAfter(response: Outgoing): void {
  const { req } = response
  if (isHttp2(req) || response.headersSent) return
  response.setHeader('connection', 'close')
  // What Node calls after the last answer. Its own would not wait for a client that is still sending.
  req.socket.destroySoon = () => linger(req.socket)
}

/**
 * HTTP/2 has no Connection field (RFC 9113 §8.2.2). A stream that is answered before the request has ended is closed
 * without an error (§8.1), or it would stay open until the client ends it.
 */
export function endStreamAfter(request: Http2ServerRequest, response: Outgoing): void {
  response.once('finish', () => {
    if (!request.complete) request.stream.close(constants.NGHTTP2_NO_ERROR)
  })
}
