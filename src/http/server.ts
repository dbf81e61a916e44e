import type { Logger } from 'pino'
import { listen, originOf, portOf } from '../listen.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Joined } from '../waitlist/join.ts'
import type { Challenge } from '../waitlist/ports/challenge.ts'
import type { Limiter } from '../waitlist/ports/limiter.ts'
import type { Store } from '../waitlist/ports/store.ts'
import type { Signup } from '../waitlist/rules/signup.ts'
import { type Site, site } from './discovery/site.ts'
import { createRouter } from './router.ts'
import { connectionClient, type TrustedProxies } from './routes/client-address.ts'
import { type CookieSettings, membershipCookie } from './routes/cookie.ts'
import { type CertificateFiles, firstCertificate, watchCertificate } from './wire/certificates.ts'
import { boundConnections } from './wire/connections.ts'
import { strictTransportSecurity } from './wire/headers.ts'
import * as limits from './wire/limits.ts'
import { createListener, type NodeServer, useCertificate } from './wire/listener.ts'
import { type Connections, trackConnections } from './wire/shutdown.ts'

export interface ServerSettings {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The public origin; null: derived from host and port. */
  readonly baseUrl: string | null
  readonly tls: CertificateFiles | null
  readonly proxies: TrustedProxies
  readonly quota: { readonly limit: number; readonly window: number }
  readonly corsOrigins: readonly string[]
  readonly cookie: CookieSettings
  /** Whether the query of a signup says where it came from. */
  readonly trackSources: boolean
  /** Whether an answer says if the address was on the list before. */
  readonly disclosesMembership: boolean
  /** Whether rules hold some signups. Those whose challenge cannot be verified are held besides. */
  readonly holdsSignups: boolean
  readonly service: string
  readonly description: string
  readonly version: string
  /** Milliseconds between the first 503 of the health report and the end of listening, for load balancers to notice. */
  readonly shutdownDelay: number
}

export interface ServerParts {
  /** For the health report, and to refuse signups that would wait too long. */
  readonly store: Pick<Store, 'check' | 'isBehind' | 'secret'>
  join(signup: Signup): Promise<Joined>
  /** Counts signups. */
  readonly limiter: Limiter
  /** Null: no proof is asked for. */
  readonly challenge: Challenge | null
  /** Whether the domain of an address is accepted; null: every one is. */
  readonly accepts: ((email: string) => boolean) | null
  /** Counts documents that are fetched. */
  readonly documentLimiter: Limiter
  /** Aborted when a stop can no longer wait for what a request asks elsewhere. */
  readonly leave: AbortSignal
  /** Counts challenges that are fetched. */
  readonly challengeLimiter: Limiter
  readonly log: Logger
  /** Null: nothing is counted and measured. */
  readonly telemetry?: Telemetry | null
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

interface Listener {
  readonly server: NodeServer
  readonly connections: Connections
}

/**
 * Starts to listen. Requests are answered from then on.
 *
 * @throws {OperatorError} when the address or the certificate cannot be used.
 */
export async function openServer(
  settings: ServerSettings,
  { telemetry = null, ...parts }: ServerParts,
): Promise<HttpServer> {
  const { tls, quota } = settings
  const { challenge, log } = parts
  const certificate = tls && firstCertificate(tls)
  const cookie = membershipCookie(settings.cookie)
  const listeners: Listener[] = []
  let isDraining = false

  const origin = () => originOf(settings.host, portOf(listeners[0]!), certificate !== null)
  const baseUrl = () => settings.baseUrl ?? origin()
  // Made by the first request, or below: the port may be known only once the server listens.
  let made: Site | undefined
  const facts = {
    solution: challenge?.member ?? null,
    widget: challenge?.widget ?? null,
    issuesChallenges: challenge?.issue != null,
    // Only a verifier elsewhere can be away.
    holdsSignups: settings.holdsSignups || challenge?.issue === null,
    blocksDomains: parts.accepts !== null,
  }
  const pages = () => (made ??= site({ ...settings, ...quota, ...facts, base: baseUrl(), cookie }))

  const route = createRouter(
    {
      ...settings,
      cookie,
      defaultHeaders: certificate === null ? [] : strictTransportSecurity,
    },
    { ...parts, telemetry, pages, isDraining: () => isDraining },
  )

  const bound = boundConnections({
    all: limits.CONNECTIONS,
    share: limits.CONNECTIONS_OF_CLIENT,
    clientOf: connectionClient(settings.proxies),
    log,
    telemetry,
  })
  const create = () => {
    const server = createListener(route, certificate)
    bound(server)
    return { server, connections: trackConnections(server) }
  }
  await listen({ ...settings, settings: { host: 'HOST', port: 'PORT' } }, create, listeners)
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
