import type { Socket } from 'node:net'
import { type Answer, fieldList, jsonAnswer, send } from './answer.ts'
import { securityFields } from './headers.ts'
import { BODY_LIMIT } from './limits.ts'
import { STATUS_CODES } from './node-http.ts'
import { closeAfter, type Outgoing } from './protocol.ts'

/**
 * Every "no" of the server: status, sentence, and the fields that belong to it. The sentences are fit to be shown
 * to a visitor and never repeat what was sent. One refusal becomes one answer `{"error": "…"}` in this file alone.
 */
export interface Refusal {
  readonly status: number
  readonly error: string
  readonly fields?: Readonly<Record<string, string>>
}

const refusal = (status: number, error: string, fields?: Refusal['fields']): Refusal =>
  fields === undefined ? { status, error } : { status, error, fields }

// What a signup can be refused for (in the order in which it is checked).

/** RFC 9110 §10.2.3, RFC 6585 §4. `seconds` is a whole number of at least 1. */
export const tooManyAttempts = (seconds: number): Refusal =>
  refusal(429, `too many signup attempts, please try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`, {
    'retry-after': String(seconds),
  })

/** RFC 9110 §15.5.16 names the fields that tell what would be accepted; `Accept-Post` is W3C LDP §7.1. */
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
const invalidSignups = new Map<string, Refusal>()

/** Our own trouble. HTTP would say 503; the service's contract says 500, and RFC 9110 gives it no Retry-After. */
export const unavailable = refusal(500, 'the waitlist service is temporarily unavailable, please try again')

/** Also for an answer that came too late or made no sense (not 504). The signup is stored and tried again. */
export const providerUnreachable = refusal(
  502,
  'the email provider could not be reached; your signup is saved and will be completed',
)
/** Our key or our settings at the provider are wrong, which is nobody's business outside. */
export const savedForLater = refusal(
  500,
  'the waitlist service is temporarily unavailable; your signup is saved and will be completed',
)
/** `reason` is one of the few sentences of a provider's adapter, never made of what was sent. */
export const addressRefused = (reason: string): Refusal =>
  invalidSignup(`the email provider does not accept this address: ${reason}`)

// What any request can be refused for.

export const malformedRequest = refusal(400, 'the request is malformed')
export const noSingleHost = refusal(400, 'the request must have exactly one valid Host field')
export const notFound = refusal(404, 'there is nothing at this address')
export const methodNotAllowed = (allow: string): Refusal => refusal(405, 'this method is not allowed here', { allow })
export const timedOut = refusal(408, 'the request took too long to arrive')
export const preconditionFailed = refusal(412, 'the document has changed')
export const expectationFailed = refusal(417, 'this expectation cannot be met')
export const fieldsTooLarge = refusal(431, 'the request header fields are too large')
export const methodUnknown = refusal(501, 'this method is not known here')

/** Health alone says 503, because load balancers look for it; a failing signup says 500. */
export const unhealthy = refusal(503, 'the service is not able to take signups at the moment')
export const draining = refusal(503, 'the service is shutting down')

/** Errors are never stored: 404, 405 and 501 otherwise may be (RFC 9110 §15.1). */
const errorFields = fieldList({ ...securityFields, 'cache-control': 'no-store' })

const answers = new WeakMap<Refusal, Answer>()

/** The one place that turns a refusal into an answer. That of a constant refusal is made once. */
export function refuse(refusal: Refusal): Answer {
  const known = answers.get(refusal)
  if (known !== undefined) return known
  const { status, error, fields } = refusal
  const answer = jsonAnswer(status, fields === undefined ? errorFields : errorFields.concat(fieldList(fields)), {
    error,
  })
  answers.set(refusal, answer)
  return answer
}

/** Answers a request that is refused before it is routed; nothing more of it is read. */
export function refuseUnrouted(response: Outgoing, refusal: Refusal): void {
  closeAfter(response)
  send(response, refuse(refusal))
}

/** Answers bytes that are no HTTP request: written by hand, since there is no response object (RFC 9112 §4). */
export function refuseBytes(socket: Socket, refusal: Refusal): void {
  const { status, fields, body } = refuse(refusal)
  const lines = ['date', new Date().toUTCString(), ...fields, 'connection', 'close']
  const head = lines.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
  // What is still on its way is dropped, so that a reset does not overtake the answer; but not for ever.
  setTimeout(() => socket.destroy(), LINGER).unref()
  socket.resume()
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`)
}

const LINGER = 2_000
