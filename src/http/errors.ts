import { sentences } from '../messages/sentences.ts'
import { BODY_LIMIT } from './limits.ts'
import { type Answer, type Headers, jsonAnswer, securityHeaders } from './response.ts'

/** An answer with the body `{"error": "…"}`. The sentences can be shown to a visitor and never repeat what was sent. */
export interface Refusal extends Answer {
  readonly error: string
}

/** Errors must not be cached: 404, 405 and 501 could be by default (RFC 9110 §15.1). */
function refusal(status: number, error: string, headers: Headers = {}): Refusal {
  const all = { ...securityHeaders, 'cache-control': 'no-store', ...headers }
  return { ...jsonAnswer(status, all, { error }), error }
}

// Why a signup can be refused, in the order of the checks.

/** RFC 9110 §10.2.3, RFC 6585 §4. `seconds` is a whole number of at least 1. */
export const tooManyAttempts = (seconds: number): Refusal => tooMany(sentences.tooManyAttempts, seconds)

const tooMany = (sentence: string, seconds: number): Refusal =>
  refusal(429, sentence.replace('{wait}', `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`), {
    'retry-after': String(seconds),
  })

/** RFC 9110 §15.5.16: the headers say what would be accepted. `Accept-Post` is W3C LDP §7.1. */
export const notJson = refusal(415, 'the Content-Type must be application/json', {
  accept: 'application/json',
  'accept-post': 'application/json',
})
export const encoded = refusal(415, 'the request body must not be compressed', { 'accept-encoding': 'identity' })
/** RFC 9110 §15.5.14. */
export const tooLarge = refusal(413, `the request body must be at most ${BODY_LIMIT} bytes`)
export const emptyBody = refusal(400, 'a JSON body with name and email is required')
export const cutShort = refusal(400, 'the request body ended early')
export const notUtf8 = refusal(400, 'the request body must be UTF-8 text')
export const malformedJson = refusal(400, 'the request body must be valid JSON')
export const notAnObject = refusal(400, 'the request body must be a JSON object')
/** `problem` is one of the few sentences of `parseSignup`. */
export const invalidSignup = (problem: string): Refusal => refusal(400, problem)
export const domainNotAccepted = refusal(400, sentences.domainNotAccepted)
export const challengeMissing = refusal(400, sentences.challengeMissing)
export const challengeFailed = refusal(400, sentences.challengeFailed)
export const challengeExpired = refusal(400, sentences.challengeExpired)
/** The proof of a challenge is good for one address. */
export const challengeSpent = refusal(400, sentences.challengeSpent)

/** HTTP would suggest 503; the API's contract says 500, for which RFC 9110 defines no Retry-After. */
export const unavailable = refusal(500, sentences.unavailable)

/** Tells an error after which the signup is stored from all others: a Token (RFC 9651 §3.3.4). */
const saved = { 'waitlist-signup': 'saved' }

/** Also if the provider's answer is late (not 504) or makes no sense. The signup is stored, and its hand-over retried. */
export const providerUnreachable = refusal(502, sentences.providerSaved, saved)
/** The provider refuses our key or settings, which visitors need not know. */
export const savedForLater = refusal(500, sentences.unavailableSaved, saved)
/** `reason` is one of the few in `providers/`, never made of what a visitor sent. */
export const addressRefused = (reason: string): Refusal => refusal(400, `${sentences.addressNotAccepted}: ${reason}`)

export const tooManyChallenges = (seconds: number): Refusal =>
  tooMany('too many challenges, please try again in {wait}', seconds)

// Why any request can be refused.

export const malformedRequest = refusal(400, 'the request is malformed')
export const noSingleHost = refusal(400, 'the request must have exactly one valid Host field')
export const notFound = refusal(404, 'there is nothing at this address')
export const methodNotAllowed = (allow: string): Refusal => refusal(405, 'this method is not allowed here', { allow })
export const timedOut = refusal(408, 'the request took too long to arrive')
export const expectationFailed = refusal(417, 'this expectation cannot be met')
export const headersTooLarge = refusal(431, 'the request header fields are too large')
export const methodUnknown = refusal(501, 'this method is not known here')

/** Only the health report uses 503, which load balancers expect; a failed signup is a 500. */
export const unhealthy = refusal(503, 'the service is not able to take signups at the moment')
export const draining = refusal(503, 'the service is shutting down')
