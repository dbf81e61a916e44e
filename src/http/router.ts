import type { Server } from 'node:http'
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactory,
} from 'fastify'
import type { Logger } from 'pino'
import { type Limiter, type Store, StoreUnavailable } from '../waitlist/ports.ts'
import { type ClientRule, clientAddress } from './client-address.ts'
import { cors } from './cors.ts'
import { serve } from './document.ts'
import { securityFields } from './fields.ts'
import { healthRoute } from './health.ts'
import { outageLog } from './outage-log.ts'
import { paths } from './paths.ts'
import { malformedRequest, methodNotAllowed, notFound, type Refusal, refuse, unavailable } from './refusals.ts'
import type { Site } from './site.ts'
import { signupRoute } from './waitlist.ts'

export interface RouterSettings {
  readonly service: string
  readonly description: string
  readonly client: ClientRule
  readonly corsOrigins: readonly string[]
  /** The value of Set-Cookie. */
  readonly cookie: string
  readonly publishedQuota: { readonly limit: number; readonly window: number } | null
}

export interface RouterParts {
  readonly store: Store
  readonly limiter: Limiter
  readonly log: Logger
  readonly serverFactory: FastifyServerFactory<Server>
  /** The documents; asked for with each request, because they may name a port that is known only after listening. */
  pages(): Site
  isDraining(): boolean
}

/** Every resource of the public door. */
export function createRouter(settings: RouterSettings, parts: RouterParts): FastifyInstance {
  const { store, limiter, log, pages, isDraining } = parts
  const router = Fastify<Server>({
    exposeHeadRoutes: false, // they would add a Content-Length to a 304
    logger: false, // what is worth a line is logged below, without a logger for each request
    serverFactory: parts.serverFactory,
    rewriteUrl: ({ url = '/' }) => originForm(url),
    frameworkErrors: (_error, _request, reply) => void refuse(reply, malformedRequest),
    clientErrorHandler: () => {}, // listener.ts answers
    // Nothing is validated or serialised by schema: without these, Fastify would load two compilers.
    schemaController: {
      compilersFactory: {
        buildValidator: (() => () => () => true) as never,
        buildSerializer: () => () => JSON.stringify,
      },
    },
  })
  // Bodies are read by the one route that takes them (body.ts), so that refusals come in the order of the contract.
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY']) {
    router.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  }

  const landingPages = cors(settings.corsOrigins)
  const addressOf = clientAddress(settings.client)

  // OPTIONS, and 405 with `Allow`, are added below to all alike.
  const get = (path: string, handler: (request: FastifyRequest, reply: FastifyReply) => unknown) =>
    router.route({ method: ['GET', 'HEAD'], url: path, handler })
  get(paths.root, (_, reply) => reply.headers(pages().redirect).code(302).send())
  get(paths.waitlist, (request, reply) => serve(request, reply, pages().description))
  get(paths.health, healthRoute({ store, isDraining, ...settings }))
  get(paths.catalog, (request, reply) => serve(request, reply, pages().catalog))
  get(paths.openapi, (request, reply) => serve(request, reply, pages().openapi))
  get(paths.docs, (request, reply) => serve(request, reply, pages().docs(request.headers.accept)))
  router.post(paths.waitlist, {
    onRequest: (request, reply, next) => {
      landingPages.answer(request, reply)
      next()
    },
    handler: signupRoute({
      ...settings,
      store,
      limiter,
      clientOf: ({ raw }) => addressOf(raw.socket.remoteAddress, raw.headers['x-forwarded-for'] as string | undefined),
    }),
  })

  const allowed = (path: string): string =>
    path === paths.waitlist ? 'GET, HEAD, POST, OPTIONS' : 'GET, HEAD, OPTIONS'
  for (const path of Object.values(paths)) {
    router.options(path, (request, reply) => {
      landingPages.preflight(request, reply)
      return reply
        .code(204)
        .headers({ ...securityFields, 'cache-control': 'no-store', allow: allowed(path) })
        .send()
    })
  }

  const known = new Set<string>(Object.values(paths))
  const whyNotRouted = ({ url }: FastifyRequest): Refusal => {
    const path = pathOf(url)
    return known.has(path) ? methodNotAllowed(allowed(path)) : notFound
  }
  router.setNotFoundHandler((request, reply) => refuse(reply, whyNotRouted(request)))
  const logOutage = outageLog(log)
  router.setErrorHandler((error: Error, request, reply: FastifyReply) => {
    if (error instanceof StoreUnavailable) logOutage(error)
    else log.error({ reqId: request.id, err: error }, 'a bug: a request failed')
    return refuse(reply, unavailable)
  })
  if (log.isLevelEnabled('debug')) {
    router.addHook('onResponse', (request, reply, next) => {
      const { method, routeOptions } = request
      const milliseconds = Math.round(reply.elapsedTime * 1000) / 1000
      log.debug(
        { reqId: request.id, method, path: routeOptions.url, status: reply.statusCode, milliseconds },
        'request',
      )
      next()
    })
  }
  return router
}

/** RFC 9112 §3.2.2: a server must accept the absolute form. The authority in it is not looked at. */
function originForm(url: string): string {
  if (url.startsWith('/')) return url
  const rest = url.replace(/^https?:\/\/[^/?#]*/i, '')
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** The decoded path, as the router reads it: an encoded slash stays encoded. Empty when it cannot be decoded. */
function pathOf(url: string): string {
  try {
    return decodeURI(url.split(/[?#]/, 1)[0]!)
  } catch {
    return ''
  }
}
