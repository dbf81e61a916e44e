import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { CannotOpen, type Limiter, type Store } from '../waitlist/ports.ts'
import { type CertificateFiles, firstCertificate, watchCertificate } from './certificates.ts'
import type { ClientRule } from './client-address.ts'
import { type CookieSettings, membershipCookie } from './cookie.ts'
import { strictTransportSecurity } from './fields.ts'
import { createListener, type NodeServer, useCertificate } from './listener.ts'
import { type Incoming, isHttp2, type Outgoing } from './protocol.ts'
import { createRouter } from './router.ts'
import { type Connections, trackConnections } from './shutdown.ts'
import { type Site, site } from './site.ts'

export interface DoorSettings {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The public origin; null: made of host and port once they are known. */
  readonly baseUrl: string | null
  readonly tls: CertificateFiles | null
  readonly hstsIncludeSubdomains: boolean
  readonly client: ClientRule
  readonly quota: { readonly limit: number; readonly window: number }
  /** Whether answers say how much of the quota is left. */
  readonly publishQuota: boolean
  readonly corsOrigins: readonly string[]
  readonly cookie: CookieSettings
  readonly service: string
  readonly description: string
  readonly version: string
  /** Milliseconds between the first 503 of health and the end of listening, for a load balancer to notice. */
  readonly shutdownDelay: number
}

export interface DoorParts {
  readonly store: Store
  readonly limiter: Limiter
  readonly log: Logger
}

/** The public door, open. */
export interface Door {
  /** The public origin that all links are made of. */
  readonly baseUrl: string
  /** Reads the certificate files again now; they are also watched. */
  reloadCertificate(): void
  /** Health says 503, then nothing new is taken, then what was accepted is answered. Resolves within 8 s. */
  close(): Promise<void>
}

/**
 * Listens. From here on requests are answered.
 *
 * @throws {CannotOpen} when the address cannot be had or the certificate cannot be used.
 */
export async function openDoor(settings: DoorSettings, { store, limiter, log }: DoorParts): Promise<Door> {
  const { tls, cookie, quota, publishQuota } = settings
  const certificate = tls && firstCertificate(tls)
  const hsts = certificate && strictTransportSecurity(settings.hstsIncludeSubdomains)
  const servers: NodeServer[] = []
  const connections: Connections[] = []
  let pages: Site | undefined
  let isDraining = false

  const router = createRouter(
    { ...settings, cookie: membershipCookie(cookie), publishedQuota: publishQuota ? quota : null },
    {
      store,
      limiter,
      log,
      // Listening and the assignment below happen in one turn of the event loop, so no request comes between.
      pages: () => pages!,
      isDraining: () => isDraining,
      // Called once for each address that the host name has.
      serverFactory(route) {
        const enter = (request: Incoming, response: Outgoing) => {
          if (hsts !== null) response.setHeader('strict-transport-security', hsts)
          if (isDraining && !isHttp2(request)) response.setHeader('connection', 'close')
          route(request as never, response as never)
        }
        const server = createListener(enter, certificate)
        servers.push(server)
        connections.push(trackConnections(server))
        return server as never
      },
    },
  )
  await router.ready()

  const port = await listen(router, settings)
  const baseUrl = settings.baseUrl ?? `${certificate ? 'https' : 'http'}://${urlHost(settings.host)}:${port}`
  pages = site({
    base: baseUrl,
    service: settings.service,
    description: settings.description,
    version: settings.version,
    ...quota,
    publishQuota,
    cookie: membershipCookie(cookie),
  })

  const watch =
    tls &&
    watchCertificate(
      tls,
      pair => {
        for (const server of servers) useCertificate(server, pair)
        log.info('the TLS certificate was reloaded')
      },
      error => log.error({ err: error }, 'the new TLS certificate cannot be used, the old one stays'),
    )

  return {
    baseUrl,
    reloadCertificate: () => watch?.reload(),
    async close() {
      watch?.stop()
      isDraining = true
      await new Promise(resolve => setTimeout(resolve, settings.shutdownDelay))
      await Promise.all(connections.map(each => each.close()))
    },
  }
}

async function listen(router: FastifyInstance, { host, port }: DoorSettings): Promise<number> {
  try {
    await router.listen({ host, port })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new CannotOpen(`PORT ${port} on ${host} is in use. Stop what uses it, or set another PORT.`)
    if (code === 'EACCES') throw new CannotOpen(`PORT ${port} on ${host} needs more rights than this process has.`)
    throw new CannotOpen(`HOST ${host} with PORT ${port} cannot be listened on: ${message}`)
  }
  return (router.server.address() as AddressInfo).port
}

/** All interfaces are reached here by this machine's own name; an IPv6 address stands in brackets (RFC 3986 §3.2.2). */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
