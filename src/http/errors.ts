import { problems } from '../signup/parse.ts'
import { BODY_LIMIT } from './limits.ts'
import { filled, type Language, onlyEnglish, say, type Told } from './messages/languages.ts'
import { type Key, sentences } from './messages/sentences.ts'
import { type Answer, fieldList, jsonAnswer, securityFields } from './response.ts'

/**
 * Every refusal of the server: status, sentence and fields. The sentences can be shown to a visitor and never repeat what
 * was sent. Only this file makes the body `{"error": "…"}`.
 */
export interface Refusal {
  readonly status: number
  readonly error: string
  readonly fields: Readonly<Record<string, string>>
  readonly answer: Answer
  /** The same sentence in other languages; null: only the author of a page meets it. */
  readonly told: Told | null
}

/** Errors must not be cached: 404, 405 and 501 could be by default (RFC 9110 §15.1). */
const errorFields = { ...securityFields, 'cache-control': 'no-store' }

function refusal(status: number, error: string, fields: Refusal['fields'] = {}, told: Refusal['told'] = null): Refusal {
  return { status, error, fields, answer: errorAnswer(status, error, fields), told }
}

const errorAnswer = (status: number, error: string, fields: Refusal['fields']): Answer =>
  jsonAnswer(status, fieldList({ ...errorFields, ...fields }), { error })

/** One that a person may meet. */
const telling = (status: number, key: Key, fields: Refusal['fields'] = {}): Refusal =>
  refusal(status, sentences[key], fields, { key })

// Why a signup can be refused, in the order of the checks.

/** RFC 9110 §10.2.3, RFC 6585 §4. `seconds` is a whole number of at least 1. */
export const tooManyAttempts = tooMany(sentences.tooManyAttempts, 'tooManyAttempts')

function tooMany(sentence: string, key?: Key): (seconds: number) => Refusal {
  // In a flood the answer is the same for a second, so it is kept.
  let lastWait: number | undefined
  let last: Refusal
  return seconds => {
    if (seconds !== lastWait) {
      const told = key === undefined ? null : { key, seconds }
      const error = filled(sentence, onlyEnglish, seconds)
      last = refusal(429, error, { 'retry-after': String(seconds) }, told)
      lastWait = seconds
    }
    return last
  }
}

/** RFC 9110 §15.5.16: the fields say what would be accepted. `Accept-Post` is W3C LDP §7.1. */
export const notJson = refusal(415, 'the Content-Type must be application/json', {
  accept: 'application/json',
  'accept-post': 'application/json',
})
export const encoded = refusal(415, 'the request body must not be compressed', { 'accept-encoding': 'identity' })
export const tooLarge = refusal(413, `the request body must be at most ${BODY_LIMIT} bytes`)
export const emptyBody = refusal(400, 'a JSON body with name and email is required')
export const cutShort = refusal(400, 'the request body ended early')
export const notUtf8 = refusal(400, 'the request body must be UTF-8 text')
export const malformedJson = refusal(400, 'the request body must be valid JSON')
export const notAnObject = refusal(400, 'the request body must be a JSON object')
/** `problem` is one of the few sentences of `parseSignup`, never made of what was sent. */
export function invalidSignup(problem: string): Refusal {
  let known = invalidSignups.get(problem)
  if (known === undefined) {
    known = refusal(400, problem)
    invalidSignups.set(problem, known)
  }
  return known
}
const invalidSignups = new Map(
  Object.entries(problems).map(([key, problem]): [string, Refusal] => [problem, telling(400, key as Key)]),
)
/** An operator's list says so. */
export const domainNotAccepted = telling(400, 'domainNotAccepted')
/** Without a solution, or with one that is none. */
export const challengeMissing = telling(400, 'challengeMissing')
export const challengeFailed = telling(400, 'challengeFailed')
export const challengeExpired = telling(400, 'challengeExpired')
/** The proof of a challenge is good for one address. */
export const challengeSpent = telling(400, 'challengeSpent')

/** HTTP would suggest 503; the API's contract says 500, for which RFC 9110 defines no Retry-After. */
export const unavailable = telling(500, 'unavailable')

/**
 * Tells an error after which the signup is stored from all others, without reading its sentence. A Token (RFC 9651 §3.3.4)
 * rather than a Boolean, so that it reads as what it says.
 */
const saved = { 'waitlist-signup': 'saved' }

/** Also if the provider's answer is late (not 504) or makes no sense. The signup is stored, and its hand-over retried. */
export const providerUnreachable = telling(502, 'providerSaved', saved)
/** The provider refuses our key or settings, which visitors need not know. */
export const savedForLater = telling(500, 'unavailableSaved', saved)
/** `reason` is one of the few in `providers/`, never made of what a visitor sent. Only English tells it. */
export const addressRefused = (reason: string): Refusal =>
  refusal(400, `${sentences.addressNotAccepted}: ${reason}`, {}, { key: 'addressNotAccepted' })

/** Of those that a visitor's browser is to solve. */
export const tooManyChallenges = tooMany('too many challenges, please try again in {wait}')

// Why any request can be refused.

export const malformedRequest = refusal(400, 'the request is malformed')
export const noSingleHost = refusal(400, 'the request must have exactly one valid Host field')
export const notFound = refusal(404, 'there is nothing at this address')
export const methodNotAllowed = (allow: string): Refusal => refusal(405, 'this method is not allowed here', { allow })
export const timedOut = refusal(408, 'the request took too long to arrive')
export const expectationFailed = refusal(417, 'this expectation cannot be met')
export const fieldsTooLarge = refusal(431, 'the request header fields are too large')
export const methodUnknown = refusal(501, 'this method is not known here')

/** Only the health report uses 503, which load balancers expect; a failed signup is a 500. */
export const unhealthy = refusal(503, 'the service is not able to take signups at the moment')
export const draining = refusal(503, 'the service is shutting down')

export function refuse({ answer, status, error, fields, told }: Refusal, language: Language = onlyEnglish): Answer {
  if (language === onlyEnglish) return answer
  const { sentence, is } = say(language, told, error)
  return errorAnswer(status, sentence, { ...fields, ...is.fields })
}
