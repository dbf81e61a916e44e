import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { listen, originOf, portOf } from '../http/listen.ts'
import { summary } from '../waitlist/quiet-log.ts'
import { type Invitations, invitationRoute } from './invitations.ts'
import { metrics } from './metrics.ts'
import { page, policy, REFRESH } from './page.ts'
import { eventLoop } from './process.ts'
import { type Readable, type Reading, reader } from './reading.ts'
import { ttlCache } from './ttl-cache.ts'

export interface AdminSettings {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** What the owner's app must know to ask for invitations; null: only this machine may ask. */
  readonly token: string | null
}

export interface AdminParts extends Omit<Readable, 'eventLoop'> {
  readonly invitations: Invitations
  readonly log: Logger
}

/** The listener of the operator, apart from the public one. */
export interface AdminServer {
  /** Where it listens. */
  readonly origin: string
  /** At once: a client that is being answered is cut off. */
  close(): void
}

/** More than a browser and a few Prometheus servers need. */
const CONNECTIONS = 64
/** Milliseconds. */
const timeouts = {
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 2_000,
  // Prometheus asks every 15 to 60 seconds, on one connection.
  keepAliveTimeout: 75_000,
}
/** Milliseconds in which nothing moves on a connection that is being answered: its client does not read. Node waits twice. */
const UNREAD_TIMEOUT = 5_000

/** Milliseconds for which a document is not made again, so that somebody who asks again and again delays no signup. */
const FRESH = 250

const fields = {
  'cache-control': 'no-store',
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}
const HTML = 'text/html; charset=utf-8'
const TEXT = 'text/plain; charset=utf-8'
const JSON_TYPE = 'application/json'
/** No path has a space. */
const OPEN_METRICS = '/metrics as OpenMetrics'

interface Document {
  readonly type: string
  readonly body: string
  /** Seconds until a browser asks again; without it, it does not. */
  readonly refresh?: number
}

const instance = `process ${process.pid} on ${hostname()}`

/**
 * Starts to listen for the operator: the page at `/`, and `/metrics`. Nobody has to log in, so they show counts, never a
 * person, and change nothing. What names a person is below `/invitations/`, which has a lock of its own.
 *
 * @throws {OperatorError} when the address cannot be used.
 */
export async function openAdmin(
  { host, port, token }: AdminSettings,
  { log, invitations, ...readable }: AdminParts,
): Promise<AdminServer> {
  const loop = eventLoop()
  const read = reader({ ...readable, eventLoop: loop.delay })
  const document = (make: (reading: Reading) => Document | Promise<Document>) =>
    ttlCache(async () => make(await read()), { fresh: FRESH, patience: UNREAD_TIMEOUT })
  const documents = new Map([
    ['/', document(reading => ({ type: HTML, body: page(reading, { instance, refreshes: true }), refresh: REFRESH }))],
    ['/?refresh=off', document(reading => ({ type: HTML, body: page(reading, { instance, refreshes: false }) }))],
    ['/metrics', document(reading => metrics(reading, 'text'))],
    [OPEN_METRICS, document(reading => metrics(reading, 'OpenMetrics'))],
  ])
  const failed = summary<string>((times, why) => log.error({ why, times }, 'the admin page or the metrics failed'))
  const notAsked = summary<string>((times, why) => log.error({ why, times }, 'invitations could not be asked for'))
  const invitation = invitationRoute(invitations, token, notAsked)

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '/', headers } = request
    const [path] = url.split('?', 1) as [string]
    const send = (status: number, { type, body, refresh }: Document, more = {}) => {
      // What is left of a body is not read.
      if (hasBody(request)) response.setHeader('connection', 'close')
      // https://html.spec.whatwg.org/multipage/document-lifecycle.html#shared-declarative-refresh-steps
      if (refresh !== undefined) response.setHeader('refresh', refresh)
      const length = Buffer.byteLength(body)
      response.writeHead(status, { ...fields, 'content-type': type, 'content-length': length, ...more }).end(body)
    }
    const refuse = (status: number, sentence: string, more = {}) =>
      send(status, { type: TEXT, body: `${sentence}\n` }, more)

    if (!isOurs(request, host)) return refuse(421, 'From this machine, ask for localhost or for an address.')
    const answered = await invitation({ method, path, headers, isLocal: isLocal(request) })
    if (answered !== null) {
      const { status, body, headers: more } = answered
      return send(status, { type: JSON_TYPE, body: JSON.stringify(body) }, more)
    }
    const found = documents.get(documentAt(url, path, headers.accept))
    if (found === undefined) return refuse(404, 'There is nothing at this address. There are / and /metrics.')
    if (method !== 'GET' && method !== 'HEAD') {
      return refuse(405, 'This listener only answers questions.', { allow: 'GET, HEAD' })
    }
    const { value, failed: why } = await found()
    if (value !== null && why === null) return send(200, value)
    failed(why ?? 'no answer in time')
    refuse(500, 'This could not be read. The log says why. Signups are not concerned.')
  }

  const listening: Server[] = []
  const answering = new WeakSet<Socket>()
  const create = () => {
    const server = createServer({ ...timeouts, maxHeaderSize: 8_192 }, (request, response) => {
      const { socket } = request
      // No browser and no Prometheus pipelines, and answers that wait for each other would take memory without bound.
      if (answering.has(socket)) return void socket.destroy()
      answering.add(socket)
      response.once('close', () => answering.delete(socket))
      answer(request, response).catch(error => {
        failed(String(error))
        response.destroy()
      })
    })
    server.maxConnections = CONNECTIONS
    server.timeout = UNREAD_TIMEOUT
    return server
  }
  try {
    await listen({ host, port, settings: { host: 'ADMIN_HOST', port: 'ADMIN_PORT' } }, create, listening)
  } catch (error) {
    loop.stop()
    throw error
  }
  // Without a listener of its own, it would end the process.
  for (const server of listening) server.on('error', error => failed(error.message))

  return {
    origin: originOf(host, portOf(listening[0]!), false),
    close() {
      loop.stop()
      for (const server of listening) {
        server.close()
        server.closeAllConnections()
      }
    },
  }
}

/**
 * Whether the operator asked, and not a page of the web whose name was made to point to this machine (DNS rebinding), which
 * could then read the counts. Such a page has a name, so an address is always good. From other machines a listener is asked
 * by any name.
 */
function isOurs(request: IncomingMessage, host: string): boolean {
  if (!isLocal(request)) return true
  const { headers } = request
  const name = (headers.host ?? '').replace(/:\d*$/, '').toLowerCase()
  return name === 'localhost' || name === host.toLowerCase() || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0
}

/** Whether it came to an address that only this machine has. */
const isLocal = ({ socket }: IncomingMessage): boolean => /^(?:::1$|(?:::ffff:)?127\.)/.test(socket.localAddress ?? '')

function documentAt(url: string, path: string, accept: string | undefined): string {
  if (url === '/?refresh=off') return url
  return path === '/metrics' && wantsOpenMetrics(accept) ? OPEN_METRICS : path
}

const wantsOpenMetrics = (accept = ''): boolean => /\bapplication\/openmetrics-text\b/.test(accept)

const hasBody = ({ headers }: IncomingMessage): boolean =>
  (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined
