import { constants } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { closeAfter, dropBehind, linger } from './closing.ts'
import { holdRequest, type NodeServer } from './connections.ts'
import {
  expectationFailed,
  fieldsTooLarge,
  malformedRequest,
  methodUnknown,
  noSingleHost,
  type Refusal,
  refuse,
  timedOut,
} from './errors.ts'
import * as limits from './limits.ts'
import { type Answer, fieldList, securityFields, send } from './response.ts'
import type { Certificate } from './tls.ts'

/**
 * Node's HTTP server. An import statement reads every name that `node:http` exports, and reading one of them loads the
 * client behind `fetch`, which costs time at start and memory.
 */
const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http')

export type Handler = (request: IncomingMessage, response: ServerResponse) => void

const httpOptions = {
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
 * A Node server of HTTP/1.1 with every limit set, and with our own answers in place of Node's: everything below the router.
 * With a certificate it speaks TLS.
 */
export function createListener(handler: Handler, certificate: Certificate | null): NodeServer {
  const server = certificate === null ? createServer(httpOptions) : secureServer(certificate)
  // A client may say that it has sent all (a half-closed connection), and still wants its answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  // One more than we accept, so that an excess is noticed: some releases of Node silently drop further lines.
  server.maxHeadersCount = limits.HEADER_COUNT + 1

  const on = (event: string, handle: Handler) =>
    server.on(
      event,
      oneAtATime(handle, (...request) => server.emit(event, ...request)),
    )
  const checked = checkRequest(handler)
  on('request', checked)
  // `readJson` sends "100 Continue", after all that can be refused before (RFC 9110 §10.1.1).
  on('checkContinue', checked)
  on('checkExpectation', (_, response) => refuseUnrouted(response, expectationFailed))
  server.on('clientError', answerClientError)
  return server
}

/**
 * TLS 1.2 and 1.3, only with forward secrecy and authenticated encryption (RFC 9325 §3, §4), and without renegotiation,
 * which costs a client nothing and us a handshake.
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

function secureServer(certificate: Certificate): SecureServer {
  const server = process.getBuiltinModule('node:https').createServer({
    ...secureProtocols,
    ...certificate,
    ...httpOptions,
    // A client that offers only other protocols gets an alert (RFC 7301 §3.2).
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: limits.TLS_HANDSHAKE_TIMEOUT,
  })
  // Not before, since a client that ends within its handshake wants no answer.
  server.on('secureConnection', socket => {
    socket.allowHalfOpen = true
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

/** Those with a request behind them that waits for their end. */
const followed = new WeakSet<ServerResponse>()

/**
 * One request of a connection is handled at a time: none that comes while another one is, or after the last (RFC 9112 §9.6).
 * `again` is called with a request that had to wait.
 */
function oneAtATime(handle: Handler, again: Handler): Handler {
  return (request, response) => {
    const { socket } = request
    const current = responseInProgress(socket)
    if (current === response && socket.writable) return handle(request, response)
    // Over TLS, Node hears that an answer was sent a turn of the event loop later; its client may have asked again by then.
    if (current?.writableEnded === true && !followed.has(current)) {
      followed.add(current)
      current.once('close', () => again(request, response))
      return
    }
    if (current !== null) dropBehind(current)
    holdRequest(socket)
  }
}

/** The response whose turn it is. Node checks the same field before it sends its own answer to an error. */
const responseInProgress = (socket: Socket): ServerResponse | null =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? null

/** The checks before routing. */
function checkRequest(next: Handler): Handler {
  return (request, response) => {
    // Its client is gone. Over TLS Node can miss that, and an answer would be held until `UNREAD_TIMEOUT`.
    if (request.socket.remoteAddress === undefined) return void request.socket.destroy()
    const refusal = whyNotRouted(request)
    if (refusal !== null) refuseUnrouted(response, refusal)
    else if (request.url === '*') send(response, asterisk)
    else next(request, response)
  }
}

/**
 * RFC 9112 §3.2: HTTP/1.1 needs exactly one, valid Host; Node keeps the first of several. No answer is ever made from it.
 * §6.1: the only transfer coding that we know is chunked.
 */
function whyNotRouted({ method, url, rawHeaders, httpVersion }: IncomingMessage): Refusal | null {
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
    } else if (length === TRANSFER_ENCODING.length && rawHeaders[i]!.toLowerCase() === TRANSFER_ENCODING) {
      if (rawHeaders[i + 1]!.toLowerCase() !== 'chunked') return malformedRequest
    }
  }
  if (hosts === 0 && httpVersion === '1.0') return null
  return hosts === 1 && isHost(host) ? null : noSingleHost
}

const HOST = 'host'
const TRANSFER_ENCODING = 'transfer-encoding'

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
  const current = responseInProgress(socket)
  if (current && (current.req.complete || current.headersSent)) dropBehind(current)
  // There is no other request than the one that is malformed itself.
  else if (socket.writable) refuseBytes(socket, parserRefusals[code] ?? malformedRequest)
}

const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT'

const parserRefusals: Readonly<Record<string, Refusal>> = {
  HPE_INVALID_METHOD: methodUnknown,
  HPE_HEADER_OVERFLOW: fieldsTooLarge,
  [REQUEST_TIMEOUT]: timedOut,
}

/** Answers a request that is refused before routing. No more of it is read. */
function refuseUnrouted(response: ServerResponse, refusal: Refusal): void {
  closeAfter(response)
  send(response, refuse(refusal))
}

/** Answers bytes that are not an HTTP request. There is no response object, so the head is written here (RFC 9112 §4). */
function refuseBytes(socket: Socket, refusal: Refusal): void {
  const { status, fields, body } = refuse(refusal)
  const lines = ['date', new Date().toUTCString(), ...fields, 'connection', 'close']
  const head = lines.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`)
  linger(socket)
}
