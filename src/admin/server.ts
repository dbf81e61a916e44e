import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Telemetry } from '../app/telemetry.ts'
import type { Outage } from '../delivery/breaker.ts'
import { listen, originOf, portOf } from '../http/listen.ts'
import type { Counts } from '../store/counts.ts'
import type { Store } from '../store/store.ts'
import { snapshotMetrics } from './metrics.ts'
import { headers, page } from './page.ts'

export interface AdminParts {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  readonly service: string
  readonly version: string
  readonly telemetry: Pick<Telemetry, 'registry'>
  readonly store: Pick<Store, 'check' | 'counts'>
  readonly destinations: readonly { readonly name: string; outage(): Outage | null }[]
  isDraining(): boolean
  /** Answers the owner's app (`invitationRoute`). */
  invitation(request: IncomingMessage, code: string, isLocal: boolean): Promise<JsonAnswer>
  readonly log: Logger
}

interface JsonAnswer {
  readonly status: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

/** All that the page and the metrics show of the store and the destinations, at one moment: counts, never a person. */
export interface Snapshot {
  readonly takesSignups: boolean
  /** Null: the contacts could not be counted, for this reason. */
  readonly counts: Counts | null
  readonly countsError: string | null
  readonly destinations: readonly { readonly name: string; readonly outage: Outage | null }[]
  readonly isDraining: boolean
}

/** Milliseconds. To count a million contacts takes a second, and Prometheus waits ten for an answer. */
const FRESH = 5_000
const TIMEOUT = 8_000
/** Seconds after which a browser asks for the page again. */
const REFRESH = 10

/**
 * Listens for the operator: a page at `/`, `/metrics` for Prometheus, and `/invitations/{code}` for the owner's app. The first
 * two need no login, so they show counts only.
 *
 * @throws {OperatorError} when the address cannot be used.
 */
export async function openAdmin(parts: AdminParts) {
  const { host, port, service, version, telemetry, invitation, log } = parts
  const update = snapshotMetrics(telemetry.registry, version)
  let latest: Promise<Snapshot> | null = null
  const expire = () => {
    latest = null
  }
  const snapshot = () => {
    latest ??= readSnapshot(parts).finally(() => void setTimeout(expire, FRESH).unref())
    return latest
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '/'] = (request.url ?? '/').split('?', 1)
    const send = (status: number, type: string, body: string, more = {}) => {
      const length = Buffer.byteLength(body)
      response
        .writeHead(status, {
          ...headers,
          'cache-control': 'no-store',
          'content-type': type,
          'content-length': length,
          ...more,
        })
        .end(body)
    }
    const refuse = (status: number, sentence: string, more = {}) => send(status, 'text/plain', `${sentence}\n`, more)

    if (!isTrustedName(request, host)) return refuse(421, 'On this machine, use localhost or an IP address.')
    if (path.startsWith('/invitations/')) {
      const { status, body, headers } = await invitation(request, path.slice('/invitations/'.length), isLocal(request))
      return send(status, 'application/json', JSON.stringify(body), headers)
    }
    if (path !== '/' && path !== '/metrics') return refuse(404, 'Not found. There are / and /metrics.')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return refuse(405, 'Only GET and HEAD are allowed.', { allow: 'GET, HEAD' })
    }
    if (path === '/') {
      const html = page(await snapshot(), { service, version })
      return send(200, 'text/html; charset=utf-8', html, { refresh: REFRESH })
    }
    update(await snapshot())
    send(200, telemetry.registry.contentType, await telemetry.registry.metrics())
  }

  const servers: Server[] = []
  const create = () => {
    const server = createServer({ headersTimeout: 5_000, requestTimeout: 5_000 }, (request, response) => {
      answer(request, response).catch(error => {
        log.error({ err: error }, 'the admin listener failed')
        response.writeHead(500, { 'content-type': 'text/plain' }).end('The log says why. Signups are unaffected.\n')
      })
    })
    server.maxConnections = 64
    server.timeout = 75_000
    return server
  }
  await listen({ host, port, settings: { host: 'ADMIN_LISTEN', port: 'ADMIN_LISTEN' } }, create, servers)
  return {
    origin: originOf(host, portOf(servers[0]!), false),
    /** At once, connections included. */
    close(): void {
      for (const server of servers) {
        server.close()
        server.closeAllConnections()
      }
    },
  }
}

async function readSnapshot({ store, destinations, isDraining }: AdminParts): Promise<Snapshot> {
  const [counts, check] = await Promise.allSettled([withTimeout(store.counts()), withTimeout(store.check())])
  return {
    takesSignups: check.status === 'fulfilled',
    counts: counts.status === 'fulfilled' ? counts.value : null,
    countsError: counts.status === 'fulfilled' ? null : counts.reason.message,
    destinations: destinations.map(({ name, outage }) => ({ name, outage: outage() })),
    isDraining: isDraining(),
  }
}

async function withTimeout<Value>(promise: Promise<Value>): Promise<Value> {
  const late = wait(TIMEOUT, null, { ref: false }).then(() => Promise.reject(new Error('the database does not answer')))
  return Promise.race([promise, late])
}

/** Refuses web pages whose own name points to this machine (DNS rebinding): their requests carry that name. */
function isTrustedName(request: IncomingMessage, host: string): boolean {
  if (!isLocal(request)) return true
  const name = (request.headers.host ?? '').replace(/:\d*$/, '').toLowerCase()
  return name === 'localhost' || name === host.toLowerCase() || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0
}

const isLocal = ({ socket }: IncomingMessage): boolean => /^(?:::1$|(?:::ffff:)?127\.)/.test(socket.localAddress ?? '')
