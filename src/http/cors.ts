import type { IncomingMessage } from 'node:http'
import { fieldList } from './response.ts'

const forAnswers = { vary: 'Origin' }
const forPreflights = { vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers' }

const permission = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-allow-credentials': 'true',
})
const exposure = { 'access-control-expose-headers': 'Retry-After, RateLimit, RateLimit-Policy, Waitlist-Signup' }
const preflightPermission = (fields: readonly string[]) => ({
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': ['Content-Type', ...fields].join(', '),
  'access-control-max-age': '7200', // Chromium's cap; Firefox allows more, WebKit less
})

/**
 * Credentialed CORS for the landing pages (Fetch standard, "CORS protocol and credentials"): the exact origin is
 * repeated, never `*`. Other origins get no CORS fields; refusing them is left to the browser.
 *
 * `origins`: scheme, host and port as browsers send them, without a slash at the end. `fields`: request header fields that
 * a page may send besides Content-Type.
 */
export function cors(origins: readonly string[], fields: readonly string[] = []) {
  const answers = new Map(
    origins.map(origin => [origin, fieldList({ ...forAnswers, ...permission(origin), ...exposure })]),
  )
  const preflights = new Map(
    origins.map(origin => [
      origin,
      fieldList({ ...forPreflights, ...permission(origin), ...preflightPermission(fields) }),
    ]),
  )
  const anyAnswer = fieldList(forAnswers)
  const anyOptions = fieldList(forPreflights)
  return {
    /** Those of every answer to POST. Without them a page would only see a network error. */
    answerFields: ({ headers: { origin = '' } }: IncomingMessage) => answers.get(origin) ?? anyAnswer,
    /** Those of an answer to OPTIONS, with permission if it is a landing page's preflight. */
    preflightFields({ headers: { origin, 'access-control-request-method': method } }: IncomingMessage) {
      return (origin === undefined || method === undefined ? undefined : preflights.get(origin)) ?? anyOptions
    },
  }
}
