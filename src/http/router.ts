import type { IncomingMessage, ServerResponse } from 'node:http'
import { summary } from '../config/operator.ts'
import { StoreUnavailable } from '../store/database.ts'
import { clientAddresses } from './client-address.ts'
import type { Context } from './context.ts'
import { cors } from './cors.ts'
import { malformedRequest, methodNotAllowed, unavailable } from './errors.ts'
import { type Answer, securityHeaders, send, strictTransportSecurity, withHeaders } from './response.ts'

/** `reqId` marks the log lines of one request. */
export type Route = (request: IncomingMessage, response: ServerResponse, reqId: number) => Answer | Promise<Answer>

/** One path and its methods. HEAD is routed like GET (RFC 9110 §9.3.2). */
export interface Resource {
  readonly GET: Route
  readonly POST?: Route
}

export interface Routes {
  /** Every resource by its exact path. */
  readonly byPath: ReadonlyMap<string, Resource>
  notFound(request: IncomingMessage): Answer
}
export type RoutesOf = (context: Context) => Routes

/** Answers that are sent one after the other: a write between two reads wakes its client alone, and costs twice as much. */
const TOGETHER = 16

function sendingTogether() {
  let ready: (() => void)[] = []
  const sendAll = () => {
    const all = ready
    ready = []
    for (const each of all) each()
  }
  /** Sends an answer at the end of the turn of the event loop at the latest. */
  return (response: ServerResponse, answer: Answer): void => {
    ready.push(() => send(response, answer))
    if (ready.length === TOGETHER) sendAll()
    else if (ready.length === 1) setImmediate(sendAll)
  }
}

/** Answers every request that can be routed. */
export function createRouter(parts: Omit<Context, 'addressOf' | 'corsHeaders' | 'failed'>, routesOf: RoutesOf) {
  const { settings, challenge, log, telemetry, isDraining } = parts
  const requestHeaders = challenge === null ? ['Content-Type'] : ['Content-Type', 'X-Captcha-Response']
  const { answerHeaders, preflightHeaders } = cors(settings.corsOrigins, requestHeaders)
  // An outage under load must not fill the disk that may be its cause.
  const logOutage = summary<StoreUnavailable>((refused, { message }) =>
    log.error({ reason: message, refused }, 'signups are refused'),
  )
  const logBug = summary<object>((requests, last) => log.error({ ...last, requests }, 'a bug: a request failed'))
  /** Neither an outage of the store nor a bug is explained to the visitor. */
  const failed = (error: unknown, reqId: number): Answer => {
    if (error instanceof StoreUnavailable) logOutage(error)
    else logBug({ reqId: String(reqId), err: error })
    return unavailable
  }
  const addressOf = clientAddresses(settings.proxies).of
  const { byPath, notFound } = routesOf({ ...parts, addressOf, corsHeaders: answerHeaders, failed })

  function answer(path: string | null, request: IncomingMessage, response: ServerResponse, reqId: number) {
    if (path === null) return malformedRequest
    if (path === '*') return asterisk
    const resource = byPath.get(path)
    if (resource === undefined) return notFound(request)
    const { method } = request
    if (method === 'GET' || method === 'HEAD') return resource.GET(request, response, reqId)
    if (method === 'POST' && resource.POST !== undefined) return resource.POST(request, response, reqId)
    const allow = resource.POST === undefined ? 'GET, HEAD, OPTIONS' : 'GET, HEAD, POST, OPTIONS'
    if (method !== 'OPTIONS') return methodNotAllowed(allow)
    const headers = { ...preflightHeaders(request), ...securityHeaders, 'cache-control': 'no-store', allow }
    return { status: 204, headers, body: null }
  }

  const always = settings.tls === null ? null : strictTransportSecurity
  const sendSoon = sendingTogether()
  const logsRequests = log.isLevelEnabled('debug')
  let requests = 0
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const reqId = ++requests
    const began = performance.now()
    const path = pathOf(request.url!)
    let result: Answer
    try {
      result = await answer(path, request, response, reqId)
    } catch (error) {
      result = failed(error, reqId)
    }
    // The request may have come before the stop.
    const closing = isDraining() ? withHeaders(result, { connection: 'close' }) : result
    sendSoon(response, always === null ? closing : withHeaders(closing, always))
    if (telemetry === null && !logsRequests) return
    const milliseconds = performance.now() - began
    const { method = '' } = request
    const { status } = result
    // Nothing that the visitor sent: only known paths.
    const known = path !== null && byPath.has(path) ? path : null
    if (logsRequests) log.debug({ reqId: String(reqId), method, path: known, status, milliseconds }, 'request')
    telemetry?.countRequest(known, method, status, milliseconds / 1_000)
  }
}

/** `OPTIONS *` asks about the server as a whole (RFC 9110 §9.3.7). */
const asterisk: Answer = {
  status: 204,
  headers: { ...securityHeaders, allow: 'GET, HEAD, POST, OPTIONS', 'cache-control': 'no-store' },
  body: null,
}

/** A path without a query and without anything to decode. */
const PLAIN = /^\/[\w./-]*$/

/**
 * The decoded path; null when it cannot be decoded. A server must accept the absolute form too (RFC 9112 §3.2.2), whose
 * authority is ignored. An encoded slash stays encoded, and nothing is normalised.
 */
function pathOf(url: string): string | null {
  if (PLAIN.test(url)) return url
  const relative = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')
  const path = relative.split(/[?#]/, 1)[0]!
  try {
    return path === '' ? '/' : decodeURI(path)
  } catch {
    return null
  }
}
