import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { issueRoute, proving, SOLUTION_FIELD } from '../challenges/route.ts'
import { linkPage } from '../confirm/page.ts'
import { confirmRoutes, unsubscribeRoutes } from '../confirm/routes.ts'
import { summary } from '../delivery/throttle.ts'
import { type discoveryDocuments, prefersMarkdown } from '../discovery/documents.ts'
import type { formDocuments } from '../form/documents.ts'
import { healthRoute } from '../health/route.ts'
import { signupRoute } from '../signup/route.ts'
import { StoreUnavailable } from '../store/database.ts'
import { type AddressOf, clientAddress, visitorAddress, warnUntrusted } from './client-address.ts'
import { closeAfter } from './closing.ts'
import type { HttpParts, HttpSettings } from './context.ts'
import { cors } from './cors.ts'
import { malformedRequest, methodNotAllowed, notFound, type Refusal, refuse, unavailable } from './errors.ts'
import type { Languages } from './messages/languages.ts'
import { paths } from './paths.ts'
import { type Answer, fieldList, securityFields, send, strictTransportSecurity, withFields } from './response.ts'
import { serve } from './static.ts'

export interface RouterParts extends HttpParts {
  /** The documents. Called for each request, since they may name a port that is known only after listening. */
  documents(): ReturnType<typeof discoveryDocuments>
  readonly form: ReturnType<typeof formDocuments>
  isDraining(): boolean
  readonly languages: Languages
}

/**
 * Answers wait until there are so many, or for the end of the turn of the event loop, and are then sent one after the other. A
 * write between two reads wakes its client by itself, and leaves the processor's caches cold for the next read.
 */
export const TOGETHER = 16

/** `reqId` marks the log lines of one request. */
type Route = (request: IncomingMessage, response: ServerResponse, reqId: number) => Answer | Promise<Answer>

/** One path and its methods. HEAD is routed like GET (RFC 9110 §9.3.2). */
interface Resource {
  readonly GET: Route
  readonly POST?: Route
}

/**
 * Answers every request that can be routed. A table is enough for a few exact paths: with a framework, a request took 1.5 to
 * 1.8 times the processor time of a bare server.
 */
export function createRouter(
  settings: HttpSettings,
  parts: RouterParts,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { store, challenge, challengeLimiter, links, signal, log, telemetry, documents, form, languages, isDraining } =
    parts
  const { proxies, corsOrigins, tls } = settings
  const landingPages = cors(corsOrigins, challenge === null ? [] : [SOLUTION_FIELD])
  const corsFields = landingPages.answerFields
  const clientOf = requestClient(clientAddress(proxies))
  const defaultHeaders = tls === null ? [] : strictTransportSecurity
  // An outage under load must not fill the disk that may be its cause.
  const logOutage = summary<StoreUnavailable>((refused, { message }) =>
    log.error({ reason: message, refused }, 'signups are refused'),
  )
  const logBug = summary<object>((requests, last) => log.error({ ...last, requests }, 'a bug: a request failed'))
  const logsRequests = log.isLevelEnabled('debug')
  let requests = 0

  /** A throw is an outage of the store or a bug. Neither is explained to the visitor. */
  const failed = (error: unknown, reqId: number): Refusal => {
    if (error instanceof StoreUnavailable) logOutage(error)
    else logBug({ reqId: String(reqId), err: error })
    return unavailable
  }
  const warn = warnUntrusted(proxies, log)
  const signup = signupRoute(settings, {
    ...parts,
    // Documents are also fetched past the proxy, by what watches the service.
    clientOf(request) {
      warn(request)
      return clientOf(request)
    },
    prove: challenge && proving({ challenge, addressOf: requestClient(visitorAddress(proxies)), signal, log }),
    corsFields,
    failed,
  })
  const formSettings = (request: IncomingMessage) =>
    serve(request, form.formSettings.get(languages.of(request.headers['accept-language']))!)

  const resources = new Map<string, Resource>([
    [paths.root, { GET: () => ({ status: 302, fields: fieldList(documents().redirect), body: null }) }],
    [paths.waitlist, { GET: request => serve(request, documents().description), POST: signup }],
    [paths.health, { GET: healthRoute(settings, { store, isDraining }) }],
    [paths.catalog, { GET: request => serve(request, documents().catalog) }],
    [paths.openapi, { GET: request => serve(request, documents().openapi) }],
    [
      paths.docs,
      {
        GET: request =>
          serve(request, prefersMarkdown(request.headers.accept) ? documents().markdown : documents().page),
      },
    ],
    [paths.form, { GET: request => serve(request, form.form) }],
    [paths.formChallenge, { GET: request => serve(request, form.formChallenge) }],
    [paths.formSettings, { GET: formSettings }],
  ])
  if (challenge?.issue != null) {
    const GET = issueRoute({ issue: challenge.issue, limiter: challengeLimiter, clientOf, corsFields })
    resources.set(paths.challenge, { GET })
  }
  // Links in mails that were sent always work, whatever the settings are by now.
  const pageSettings = { service: settings.service, site: corsOrigins[0] ?? paths.root }
  const linkParts = { ...pageSettings, links, languages, failed }
  resources.set(paths.confirm, confirmRoutes(linkParts))
  resources.set(paths.unsubscribe, unsubscribeRoutes(linkParts))
  const notFoundPage = (request: IncomingMessage) =>
    linkPage('notFound', pageSettings, languages.of(request.headers['accept-language']))

  const allowed = ({ POST }: Resource) => (POST === undefined ? 'GET, HEAD, OPTIONS' : 'GET, HEAD, POST, OPTIONS')
  const options = (request: IncomingMessage, resource: Resource): Answer => ({
    status: 204,
    fields: [
      ...landingPages.preflightFields(request),
      ...fieldList({ ...securityFields, 'cache-control': 'no-store', allow: allowed(resource) }),
    ],
    body: null,
  })

  const route = (path: string | null, request: IncomingMessage, response: ServerResponse, reqId: number) => {
    if (path === null) return refuse(malformedRequest)
    const resource = resources.get(path)
    if (resource === undefined) return wantsHtml(request) ? notFoundPage(request) : refuse(notFound)
    const { method } = request
    if (method === 'GET' || method === 'HEAD') return resource.GET(request, response, reqId)
    if (method === 'POST' && resource.POST !== undefined) return resource.POST(request, response, reqId)
    return method === 'OPTIONS' ? options(request, resource) : refuse(methodNotAllowed(allowed(resource)))
  }

  const now = telemetry === null ? () => 0 : () => performance.now()
  const finish = (path: string | null, response: ServerResponse, answer: Answer, began: number) => {
    // The request may have come before the stop.
    if (isDraining()) closeAfter(response)
    send(response, withFields(answer, defaultHeaders))
    if (telemetry === null) return
    const known = path !== null && resources.has(path) ? path : null
    telemetry.countRequest(known, response.req.method ?? '', answer.status, (now() - began) / 1000)
  }
  let finished: (() => void)[] = []
  const finishAll = () => {
    const all = finished
    finished = []
    for (const each of all) each()
  }
  const finishSoon = (path: string | null, response: ServerResponse, answer: Answer, began: number) => {
    const waiting = finished.push(() => finish(path, response, answer, began))
    if (waiting === TOGETHER) finishAll()
    else if (waiting === 1) setImmediate(finishAll)
  }

  return (request, response) => {
    const reqId = ++requests
    const began = now()
    const { url = '/' } = request
    const path = resources.has(url) ? url : pathOf(url)
    if (logsRequests) logRequest(log, reqId, request, response)
    let answer: Answer | Promise<Answer>
    try {
      answer = route(path, request, response, reqId)
    } catch (error) {
      answer = refuse(failed(error, reqId))
    }
    if (answer instanceof Promise) {
      answer.then(
        answer => finishSoon(path, response, answer, began),
        error => finishSoon(path, response, refuse(failed(error, reqId)), began),
      )
    } else {
      finishSoon(path, response, answer, began)
    }
  }
}

/** Whether a person looks: a browser that opens an address names this type first (RFC 9110 §12.5.1). */
const wantsHtml = ({ method, headers: { accept = '' } }: IncomingMessage): boolean =>
  method === 'GET' && accept.startsWith('text/html')

/** Several lines of a field are joined by Node. It keeps the address, which the listener has read. */
const requestClient =
  <Address>(addressOf: AddressOf<Address>) =>
  ({ socket, headers }: IncomingMessage): Address =>
    addressOf(socket.remoteAddress!, headers['x-forwarded-for'] as string | undefined)

/** One line for each request, without anything that the visitor sent: only known paths are logged. */
function logRequest(log: Logger, reqId: number, { method, url = '' }: IncomingMessage, response: ServerResponse): void {
  const began = performance.now()
  const path = pathOf(url) ?? ''
  response.once('finish', () => {
    const milliseconds = Math.round((performance.now() - began) * 1000) / 1000
    const known = (Object.values(paths) as string[]).includes(path)
    log.debug(
      { reqId: String(reqId), method, path: known ? path : undefined, status: response.statusCode, milliseconds },
      'request',
    )
  })
}

/**
 * The decoded path; null when it cannot be decoded. A server must accept the absolute form too (RFC 9112 §3.2.2), whose
 * authority is ignored. An encoded slash stays encoded, and nothing is normalised.
 */
function pathOf(url: string): string | null {
  const relative = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')
  const path = relative.split(/[?#]/, 1)[0]!
  try {
    return path === '' ? '/' : decodeURI(path)
  } catch {
    return null
  }
}
