import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Joined } from '../waitlist/join.ts'
import { type Limiter, OperatorError, type Store } from '../waitlist/ports.ts'
import type { Signup } from '../waitlist/signup.ts'
import { type CertificateFiles, firstCertificate, watchCertificate } from './certificates.ts'
import { type ClientRule, connectionClient } from './client-address.ts'
import { boundConnections } from './connections.ts'
import { type CookieSettings, membershipCookie } from './cookie.ts'
import { type Site, site } from './discovery/site.ts'
import { strictTransportSecurity } from './headers.ts'
import * as limits from './limits.ts'
import { createListener, type NodeServer, useCertificate } from './listener.ts'
import { createRouter } from './router.ts'
import { type Connections, trackConnections } from './shutdown.ts'

export interface ServerSettings {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The public origin; null: derived from host and port. */
  readonly baseUrl: string | null
  readonly tls: CertificateFiles | null
  readonly hstsIncludeSubdomains: boolean
  readonly client: ClientRule
  readonly quota: { readonly limit: number; readonly window: number }
  /** Documents that one client may fetch. */
  readonly documentsPerMinute: number
  /** Whether answers say how much of the quota is left. */
  readonly publishQuota: boolean
  readonly corsOrigins: readonly string[]
  readonly cookie: CookieSettings
  readonly service: string
  readonly description: string
  readonly version: string
  /** Milliseconds between the first 503 of the health report and the end of listening, for load balancers to notice. */
  readonly shutdownDelay: number
}

export interface ServerParts {
  /** For the health report, and to refuse signups that would wait too long. */
  readonly store: Pick<Store, 'check' | 'isBehind'>
  join(signup: Signup): Promise<Joined>
  /** Counts signups. */
  readonly limiter: Limiter
  /** Counts documents that are fetched. */
  readonly documentLimiter: Limiter
  readonly log: Logger
}

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

/**
 * Starts to listen. Requests are answered from then on.
 *
 * @throws {OperatorError} when the address or the certificate cannot be used.
 */
export async function openServer(
  settings: ServerSettings,
  { store, join, limiter, documentLimiter, log }: ServerParts,
): Promise<HttpServer> {
  const { tls, quota, publishQuota } = settings
  const certificate = tls && firstCertificate(tls)
  const cookie = membershipCookie(settings.cookie)
  const listeners: Listener[] = []
  let isDraining = false

  const origin = () => originOf(settings.host, portOf(listeners[0]!), certificate !== null)
  const baseUrl = () => settings.baseUrl ?? origin()
  // Made by the first request, or below: the port may be known only once the server listens.
  let made: Site | undefined
  const pages = () => (made ??= site({ ...settings, ...quota, base: baseUrl(), cookie }))

  const route = createRouter(
    {
      ...settings,
      cookie,
      publishedQuota: publishQuota ? quota : null,
      standing: certificate === null ? [] : strictTransportSecurity(settings.hstsIncludeSubdomains),
    },
    { store, join, limiter, documentLimiter, log, pages, isDraining: () => isDraining },
  )

  const bound = boundConnections({
    all: limits.CONNECTIONS,
    share: limits.CONNECTIONS_OF_CLIENT,
    clientOf: connectionClient(settings.client),
    log,
  })
  const create = () => {
    const server = createListener(route, certificate)
    bound(server)
    return server
  }
  await listen(settings, create, listeners)
  pages()

  const watch =
    tls &&
    certificate &&
    watchCertificate(tls, certificate, {
      use(pair) {
        for (const { server } of listeners) useCertificate(server, pair)
        log.info('the TLS certificate was reloaded')
      },
      reject: ({ message: why }) => log.warn({ why }, 'the new TLS certificate cannot be used; the old one stays'),
      warn: sentence => log.warn(sentence),
    })

  return {
    baseUrl: baseUrl(),
    origin: origin(),
    reloadCertificate: () => watch?.reload(),
    async close() {
      watch?.stop()
      isDraining = true
      for (const { connections } of listeners) connections.drain()
      await new Promise(resolve => setTimeout(resolve, settings.shutdownDelay))
      await Promise.all(listeners.map(({ connections }) => connections.close()))
    },
  }
}

interface Listener {
  readonly server: NodeServer
  readonly connections: Connections
}

/** Listens on every address of the host name: `localhost` is both 127.0.0.1 and ::1, and browsers may try either first. */
async function listen({ host, port }: ServerSettings, create: () => NodeServer, listeners: Listener[]): Promise<void> {
  try {
    const addresses = new Set((await lookup(host, { all: true })).map(({ address }) => address))
    let missing: unknown
    for (const address of addresses) {
      const server = create()
      const connections = trackConnections(server)
      // Port 0 is chosen with the first address and reused for the others.
      const [first] = listeners
      server.listen({ host: address, port: first === undefined ? port : portOf(first) })
      await once(server, 'listening').catch(error => {
        // A host name may have an address of a family that the machine lacks.
        if (error.code !== 'EADDRNOTAVAIL' && error.code !== 'EAFNOSUPPORT') throw error
        missing = error
      })
      if (server.listening) listeners.push({ server, connections })
    }
    if (listeners.length === 0) throw missing
  } catch (error) {
    for (const { server } of listeners) server.close()
    throw new OperatorError(whyNotListening(error as NodeJS.ErrnoException, host, port))
  }
}

function whyNotListening({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === 'EADDRINUSE') return `PORT ${port} on ${host} is in use. Stop what uses it, or set another PORT.`
  if (code === 'EACCES') return `PORT ${port} on ${host} needs more rights than this process has.`
  return `HOST ${host} with PORT ${port} cannot be listened on: ${message}`
}

const portOf = ({ server }: Listener): number => (server.address() as AddressInfo).port

const originOf = (host: string, port: number, secure: boolean): string =>
  `${secure ? 'https' : 'http'}://${urlHost(host)}:${port}`

/** A server on all interfaces is reached as localhost. An IPv6 address is bracketed (RFC 3986 §3.2.2). */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
