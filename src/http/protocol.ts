import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'

export type Incoming = IncomingMessage | Http2ServerRequest
export type Outgoing = ServerResponse | Http2ServerResponse

/** The version in an HTTP/1 request line is the client's word; the class is ours. */
export const isHttp2 = (request: Incoming): request is Http2ServerRequest => 'stream' in request

/** Says that nothing more is read after the answer: HTTP/1 closes the connection (RFC 9112 §9.6). */
export function closeAfter(response: Outgoing): void {
  if (!isHttp2(response.req) && !response.headersSent) response.setHeader('connection', 'close')
}

/**
 * The same for HTTP/2, which has no Connection field (RFC 9113 §8.2.2): a stream whose request was answered before it
 * ended is closed without an error (§8.1), or it would stay open until the client ends it.
 */
export function endStreamAfter(request: Http2ServerRequest, response: Outgoing): void {
  response.once('finish', () => {
    if (!request.complete) request.stream.close(constants.NGHTTP2_NO_ERROR)
  })
}
