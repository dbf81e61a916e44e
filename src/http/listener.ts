import { constants } from 'node:crypto'
import type { RequestListener, Server, ServerResponse } from 'node:http'
import { createSecureServer, type Http2SecureServer, type Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { type Answer, fieldList, send } from './answer.ts'
import type { Certificate } from './certificates.ts'
import { securityFields } from './headers.ts'
import * as limits from './limits.ts'
import { createServer, METHODS } from './node-http.ts'
import { handleInTurn } from './pipelining.ts'
import { type Incoming, isBehindLast, isHttp2, type Outgoing } from './protocol.ts'
import {
  expectationFailed,
  fieldsTooLarge,
  malformedRequest,
  methodUnknown,
  noSingleHost,
  type Refusal,
  refuseBytes,
  refuseUnrouted,
  timedOut,
} from './refusals.ts'
import { rememberSocket } from './unread.ts'

export type NodeServer = Server | Http2SecureServer

export type Handler = (request: Incoming, response: Outgoing) => void

const http1Limits = {
  headersTimeout: limits.HEADERS_TIMEOUT,
  requestTimeout: limits.REQUEST_TIMEOUT,
  connectionsCheckingInterval: limits.TIMEOUT_CHECK,
  keepAliveTimeout: limits.KEEP_ALIVE_TIMEOUT,
  maxHeaderSize: limits.HEADER_BYTES,
  // A request without a body then has no stream that must be read to its end.
  optimizeEmptyRequests: true,
  // Checked below, since Node's own answer to a missing Host is not JSON.
  requireHostHeader: false,
}

/**
 * A Node server with every limit set, and with our own answers in place of Node's: everything below the router. With a
 * certificate it speaks HTTP/2 and HTTP/1.1 over TLS, chosen by ALPN; without one, plain HTTP/1.1.
 */
export function createListener(handler: Handler, certificate: Certificate | null): NodeServer {
  const server = certificate === null ? createServer(http1Limits) : secureServer(certificate)
  // A client may say that it has sent all (a half-closed connection), and still wants its answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  // One more than we accept, so that an excess is noticed: some releases of Node silently drop further lines.
  if ('maxHeadersCount' in server) server.maxHeadersCount = limits.HEADER_COUNT + 1

  const checked = inTurn(checkRequest(handler)) as RequestListener
  server.on('request', checked)
  // `readJson` sends "100 Continue", after all that can be refused before (RFC 9110 §10.1.1).
  server.on('checkContinue', checked)
  server.on('checkExpectation', inTurn((_, response) => refuseUnrouted(response, expectationFailed)) as RequestListener)
  server.on('clientError', answerClientError)
  return server
}

/**
 * TLS 1.2 and 1.3, only with forward secrecy and authenticated encryption (RFC 9325 §3, §4), and without renegotiation
 * (RFC 9113 §9.2.1), which would hang a connection of HTTP/2.
 */
const secureProtocols = {
  minVersion: 'TLSv1.2',
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  ciphers: [
    'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
} as const

function secureServer(certificate: Certificate): Http2SecureServer {
  const server = createSecureServer({
    ...secureProtocols,
    ...certificate,
    ...http1Limits,
    allowHTTP1: true,
    handshakeTimeout: limits.TLS_HANDSHAKE_TIMEOUT,
    maxSessionMemory: limits.SESSION_MEMORY,
    // Node heeds the one only beside the other.
    streamResetBurst: limits.RESETS,
    streamResetRate: limits.RESET_RATE,
    settings: { maxConcurrentStreams: limits.STREAMS, maxHeaderListSize: limits.HEADER_BYTES },
  })
  let newest: TLSSocket
  // Before Node's own listener, which makes the session.
  server.prependListener('secureConnection', socket => {
    newest = socket
    if (socket.alpnProtocol !== 'h2') socket.allowHalfOpen = true
  })
  server.on('session', (session: Http2Session) => {
    const socket = newest
    rememberSocket(session, socket)
    const { destroy } = session
    // Node waits for its last write, which does not end where the client has gone without a word: then for ever.
    session.destroy = (...why) => {
      destroy.apply(session, why)
      if (socket.destroyed) return
      const timer = setTimeout(() => socket.destroy(), limits.LINGER)
      socket.once('close', () => clearTimeout(timer))
    }
    // close() would wait for a client that reads nothing.
    session.setTimeout(limits.KEEP_ALIVE_TIMEOUT, () => session.destroy())
  })
  return server
}

/** New connections use this certificate. Open ones stay, and old sessions can still be resumed. */
export function useCertificate(server: NodeServer, certificate: Certificate): void {
  if (!('setSecureContext' in server)) return
  const ticketKeys = server.getTicketKeys()
  server.setSecureContext({ ...secureProtocols, ...certificate })
  server.setTicketKeys(ticketKeys)
}

/**
 * One request of an HTTP/1 connection is handled at a time, and none after the last. Node gives a response its socket when
 * its turn has come.
 */
function inTurn(handle: Handler): Handler {
  return (request, response) => {
    if (isHttp2(request)) handle(request, response)
    else if (isBehindLast(response)) request.resume()
    else if (response.socket !== null) handle(request, response)
    else handleInTurn(request, response as ServerResponse, () => handle(request, response))
  }
}

/** The checks before routing. HTTP/2 has `:authority` instead of Host, and accepts any token as a method. */
function checkRequest(next: Handler): Handler {
  return (request, response) => {
    const refusal = isHttp2(request) ? whyNotHttp2(request) : whyNotHttp1(request)
    if (refusal !== null) refuseUnrouted(response, refusal)
    else if (request.url === '*') send(response, asterisk)
    else next(request, response)
  }
}

function whyNotHttp2({ method, url }: Incoming): Refusal | null {
  if (!knownMethods.has(method ?? '')) return methodUnknown
  return url === '*' && method !== 'OPTIONS' ? malformedRequest : null
}

/**
 * RFC 9112 §3.2: HTTP/1.1 needs exactly one, valid Host; Node keeps the first of several. No answer is ever made from it.
 * §6.1: the only transfer coding that we know is chunked.
 */
function whyNotHttp1({ method, url, rawHeaders, httpVersion }: Incoming): Refusal | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return malformedRequest
  if (rawHeaders.length > 2 * limits.HEADER_COUNT) return fieldsTooLarge
  if (url === '*' && method !== 'OPTIONS') return malformedRequest

  let hosts = 0
  let host = ''
  for (let i = 0; i < rawHeaders.length; i += 2) {
    // In the raw list, since Node's object of fields has only one Host even if several were sent.
    const { length } = rawHeaders[i]!
    if (length === HOST.length && rawHeaders[i]!.toLowerCase() === HOST) {
      host = rawHeaders[i + 1]!
      hosts++
    } else if (length === CODING.length && rawHeaders[i]!.toLowerCase() === CODING) {
      if (rawHeaders[i + 1]!.toLowerCase() !== 'chunked') return malformedRequest
    }
  }
  if (hosts === 0 && httpVersion === '1.0') return null
  return hosts === 1 && isHost(host) ? null : noSingleHost
}

const HOST = 'host'
const CODING = 'transfer-encoding'

/** The methods that Node's HTTP/1 parser knows. */
const knownMethods: ReadonlySet<string> = new Set(METHODS)

/** RFC 3986 §3.2.2, §3.2.3: a registered name, IPv4 or bracketed IPv6, with or without a port. It may be empty. */
function isHost(host: string): boolean {
  return /^(?:\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/.test(host)
}

/** `OPTIONS *` asks about the server as a whole (RFC 9110 §9.3.7). */
const asterisk: Answer = {
  status: 204,
  fields: fieldList({ ...securityFields, allow: 'GET, HEAD, POST, OPTIONS', 'cache-control': 'no-store' }),
  body: null,
}

/** Gives our own answer to what Node's parser refuses, and ends the connection. */
function answerClientError({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
  // The connection is lost, or its TLS handshake has failed: nobody could read an answer.
  if (!code.startsWith('HPE_') && code !== REQUEST_TIMEOUT) return void socket.destroy()
  // The parser reports the error again with every further packet.
  if (broken.has(socket)) return
  broken.add(socket)
  refuseInTurn(socket, parserRefusals[code] ?? malformedRequest)
}

const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT'

const broken = new WeakSet<Socket>()

/** Earlier requests on the same connection are answered first, in order (RFC 9112 §9.3.2). */
function refuseInTurn(socket: Socket, refusal: Refusal): void {
  // The response whose turn it is. Node checks the same field before it sends its own answer.
  const current = (socket as { _httpMessage?: ServerResponse | null })._httpMessage
  if (current && (current.req.complete || current.headersSent)) {
    current.once('close', () => refuseInTurn(socket, refusal))
  } else if (socket.writable) {
    // No request is left, or only the one that is malformed itself.
    refuseBytes(socket, refusal)
  }
}

const parserRefusals: Readonly<Record<string, Refusal>> = {
  HPE_INVALID_METHOD: methodUnknown,
  HPE_HEADER_OVERFLOW: fieldsTooLarge,
  [REQUEST_TIMEOUT]: timedOut,
}
