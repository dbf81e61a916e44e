import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { summary } from '../config/operator.ts'
import { clientAddresses } from './client-address.ts'
import type { HttpSettings, Parts } from './context.ts'
import {
  expectationFailed,
  headersTooLarge,
  malformedRequest,
  methodUnknown,
  noSingleHost,
  timedOut,
} from './errors.ts'
import * as limits from './limits.ts'
import { listen, originOf, portOf } from './listen.ts'
import { type Answer, send, withHeaders } from './response.ts'
import { createRouter, type RoutesOf } from './router.ts'
import { type Pair, readPair, tlsOptions, watchPair } from './tls.ts'

/** The public server, listening. */
export interface HttpServer {
  /** The public origin, used in all links. */
  readonly baseUrl: string
  /** Where it listens; differs from `baseUrl` behind a proxy. */
  readonly origin: string
  /** Reads the certificate files again now. They are also watched. */
  reloadCertificate(): void
  /** Health turns to 503, then listening ends, then accepted requests are answered. Takes at most 7 s. */
  close(): Promise<void>
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** Milliseconds from the beginning of a stop until connections are cut, so that the whole stop takes less than 10 s. */
const GRACE = 7_000
/** Milliseconds. Connections become idle one after the other. */
const SWEEP_INTERVAL = 50

/**
 * Starts to listen. Requests are answered from then on.
 *
 * @throws {OperatorError} when the address or the certificate cannot be used.
 */
export async function openServer(settings: HttpSettings, parts: Parts, routesOf: RoutesOf): Promise<HttpServer> {
  const { host, port, tls } = settings
  const pair = tls && readPair(tls)
  const servers: Server[] = []
  let isDraining = false
  const origin = () => originOf(host, portOf(servers[0]!), pair !== null)
  const baseUrl = () => settings.baseUrl ?? origin()
  // Made by the first request, or below: the port may be known only once the server listens.
  let router: Handler | undefined
  const routed = () =>
    (router ??= createRouter({ ...parts, settings, baseUrl: baseUrl(), isDraining: () => isDraining }, routesOf))
  const connections = boundConnections(settings, parts)
  const create = () => connections.add(createListener((request, response) => routed()(request, response), pair))
  await listen({ host, port, settings: { host: 'HOST', port: 'PORT' } }, create, servers)
  routed()
  const watch = tls && watchPair(tls, servers as SecureServer[], parts.log)

  return {
    baseUrl: baseUrl(),
    origin: origin(),
    reloadCertificate: () => watch?.reload(),
    async close() {
      watch?.stop()
      isDraining = true
      const deadline = setTimeout(connections.cut, GRACE)
      await wait(settings.shutdownDelay)
      // This closes idle connections, too.
      const closed = servers.map(server => new Promise(resolve => server.close(resolve)))
      const sweep = setInterval(() => {
        for (const server of servers) server.closeIdleConnections()
      }, SWEEP_INTERVAL)
      await Promise.all(closed)
      clearInterval(sweep)
      clearTimeout(deadline)
    },
  }
}

/** Bounds the open connections of several servers, all together and those of each client. Those beyond are refused. */
function boundConnections({ proxies }: HttpSettings, { log }: Parts) {
  const clients = new Map<string, number>()
  const open = new Set<Socket>()
  const clientOf = clientAddresses(proxies).ofConnection
  const logRefused = summary<void>(refused =>
    log.warn({ refused, open: open.size, clients: clients.size }, 'connections are refused: too many are open'),
  )

  function accept(socket: Socket): void {
    const { remoteAddress } = socket
    // It is gone already.
    if (remoteAddress === undefined) return void socket.destroy()
    const client = clientOf(remoteAddress)
    const count = client === null ? 0 : (clients.get(client) ?? 0)
    if (open.size >= limits.CONNECTIONS || count >= limits.CONNECTIONS_OF_CLIENT) return refuse(socket)
    open.add(socket)
    if (client !== null) clients.set(client, count + 1)
    socket.once('close', () => {
      open.delete(socket)
      if (client === null) return
      const left = clients.get(client)! - 1
      if (left === 0) clients.delete(client)
      else clients.set(client, left)
    })
  }

  function refuse(socket: Socket): void {
    socket.destroy()
    logRefused()
  }

  return {
    add: (server: Server): Server => server.on('connection', accept),
    cut() {
      for (const socket of open) socket.destroy()
    },
  }
}

type SecureServer = ReturnType<typeof createSecureServer>

/** A server of HTTP/1.1 with every limit set, and our own answers in place of Node's to what does not reach the router. */
function createListener(route: Handler, pair: Pair | null): Server {
  const options = {
    headersTimeout: limits.HEADERS_TIMEOUT,
    requestTimeout: limits.REQUEST_TIMEOUT,
    connectionsCheckingInterval: limits.TIMEOUT_CHECK,
    keepAliveTimeout: limits.KEEP_ALIVE_TIMEOUT,
    maxHeaderSize: limits.HEADER_BYTES,
    // A request without a body then has no stream that must be read to its end.
    optimizeEmptyRequests: true,
    // Checked below, since Node's own answer to a missing Host is not JSON. Several are joined, and so no valid one.
    requireHostHeader: false,
    joinDuplicateHeaders: true,
  }
  const tls = pair && { ...tlsOptions, cert: pair.cert, key: pair.key, ALPNProtocols: ['http/1.1'] }
  const server =
    tls === null
      ? createServer(options)
      : createSecureServer({ ...options, ...tls, handshakeTimeout: limits.TLS_HANDSHAKE_TIMEOUT })
  // A client that has sent all it wants to send still gets its answer (RFC 9112 §9.6).
  Object.assign(server, { httpAllowHalfOpen: true })
  server.timeout = limits.IDLE_TIMEOUT
  // One more than we accept, so that an excess is noticed: Node silently drops further lines.
  server.maxHeadersCount = limits.HEADER_COUNT + 1

  /** The responses in progress on each connection. Node sends them in order. */
  const inProgress = new WeakMap<Socket, Set<ServerResponse>>()
  /** Connections that end after the answers in progress: what follows is not carried out (RFC 9112 §9.6). */
  const broken = new WeakSet<Socket>()
  const refuseAndClose = (response: ServerResponse, socket: Socket, answer: Answer) => {
    broken.add(socket)
    send(response, withHeaders(answer, { connection: 'close' }))
  }
  const handle: Handler = (request, response) => {
    const { socket } = request
    const responses = inProgress.get(socket) ?? new Set()
    inProgress.set(socket, responses)
    if (broken.has(socket)) return
    // Its client is gone, or never reads.
    if (socket.remoteAddress === undefined || responses.size >= limits.PIPELINED) return void socket.destroy()
    responses.add(response)
    response.once('close', () => responses.delete(response))
    const refusal = unroutable(request)
    if (refusal !== null) refuseAndClose(response, socket, refusal)
    else route(request, response)
  }
  server.on('request', handle)
  // `readJson` sends "100 Continue", after all that can be refused before (RFC 9110 §10.1.1).
  server.on('checkContinue', handle)
  server.on('checkExpectation', ({ socket }, response) => refuseAndClose(response, socket, expectationFailed))
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket: Socket) => {
    // The connection is lost, or its TLS handshake has failed: nobody could read an answer.
    if (!code.startsWith('HPE_') && code !== REQUEST_TIMEOUT) return void socket.destroy()
    // Whole requests that came before are answered first, and none is answered twice.
    const last = [...(inProgress.get(socket) ?? [])].findLast(({ req, headersSent }) => req.complete || headersSent)
    if (last === undefined) return refuseBytes(socket, parserRefusals[code] ?? malformedRequest)
    if (broken.has(socket)) return
    broken.add(socket)
    if (!last.headersSent) last.setHeader('connection', 'close')
    last.once('close', () => socket.destroySoon())
  })
  return server
}

/** The checks before routing. Null: the request can be routed. */
function unroutable({ method, url, rawHeaders, headers, httpVersion }: IncomingMessage): Answer | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return malformedRequest
  if (rawHeaders.length > 2 * limits.HEADER_COUNT) return headersTooLarge
  if (url === '*' && method !== 'OPTIONS') return malformedRequest
  // RFC 9112 §6.1: the only transfer coding that we know is chunked.
  const { host, 'transfer-encoding': coding = 'chunked' } = headers
  if (coding.toLowerCase() !== 'chunked') return malformedRequest
  // RFC 9112 §3.2: HTTP/1.1 needs exactly one, valid Host. No answer is ever made from it.
  if (host === undefined) return httpVersion === '1.0' ? null : noSingleHost
  return HOST.test(host) ? null : noSingleHost
}

/** RFC 3986 §3.2.2, §3.2.3: a registered name, IPv4 or bracketed IPv6, with or without a port. It may be empty. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/

const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT'

const parserRefusals: Readonly<Record<string, Answer>> = {
  HPE_INVALID_METHOD: methodUnknown,
  HPE_HEADER_OVERFLOW: headersTooLarge,
  [REQUEST_TIMEOUT]: timedOut,
}

/** Answers bytes that are not an HTTP request. There is no response object, so the head is written here (RFC 9112 §4). */
function refuseBytes(socket: Socket, { status, headers, body }: Answer): void {
  if (!socket.writable) return
  const all = {
    date: new Date().toUTCString(),
    ...headers,
    'content-length': Buffer.byteLength(body!),
    connection: 'close',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
  // Closed at once it would be reset while its client still sends, and a reset can overtake the refusal.
  setTimeout(() => socket.destroy(), limits.LINGER).unref()
}
