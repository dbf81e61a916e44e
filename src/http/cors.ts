import type { IncomingMessage } from 'node:http'
import type { Headers } from './response.ts'

const VARY: Headers = { vary: 'Origin' }
const VARY_PREFLIGHT: Headers = { vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers' }

/**
 * Credentialed CORS for the landing pages (Fetch standard, "CORS protocol and credentials"): the exact origin is
 * repeated, never `*`. Other origins get no CORS headers; refusing them is left to the browser.
 *
 * `origins`: scheme, host and port as browsers send them, without a slash at the end. `requestHeaders`: what a page may send.
 */
export function cors(origins: readonly string[], requestHeaders: readonly string[] = ['Content-Type']) {
  const allowed = new Set(origins)
  const permission = (origin: string): Headers => ({
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
  })
  return {
    /** Those of every answer to POST. Without them a page would only see a network error. */
    answerHeaders({ headers: { origin } }: IncomingMessage): Headers {
      if (origin === undefined || !allowed.has(origin)) return VARY
      const exposed = 'Retry-After, RateLimit, RateLimit-Policy, Waitlist-Signup'
      return { ...VARY, ...permission(origin), 'access-control-expose-headers': exposed }
    },
    /** Those of an answer to OPTIONS, with permission if it is a landing page's preflight. */
    preflightHeaders({ headers }: IncomingMessage): Headers {
      const { origin, 'access-control-request-method': method } = headers
      if (origin === undefined || method === undefined || !allowed.has(origin)) return VARY_PREFLIGHT
      return {
        ...VARY_PREFLIGHT,
        ...permission(origin),
        'access-control-allow-methods': 'GET, HEAD, POST',
        'access-control-allow-headers': requestHeaders.join(', '),
        'access-control-max-age': '7200', // Chromium's cap; Firefox allows more, WebKit less
      }
    },
  }
}
