import type { DeliveryResult, Failure } from '../waitlist/ports/destination.ts'

/** One event or contact is refused; the next may be accepted. */
export type Refused = Extract<DeliveryResult, { is: 'refused' }>

/** An answer to judge. Server errors, 429 and redirects never become one. */
export interface Reply {
  readonly is: 'answered'
  /** 2xx or 4xx. */
  readonly status: number
  /** Whether the call changes nothing, however it ends. */
  readonly safe: boolean
  /** Lower-case names; the values of a repeated field are joined. */
  readonly fields: Readonly<Record<string, string>>
  /** The body, parsed; undefined when it is not JSON. */
  readonly json: unknown
  /** For the log: "create a contact: answered with 422 (…)". */
  readonly summary: string
}

/** A text as JSON; undefined when it is none. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The member at a path of names and positions, if the whole path exists. */
export function memberAt(json: unknown, ...path: readonly (string | number)[]): unknown {
  let value = json
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string | number, unknown>)[name]
  }
  return value
}

/** The text at a path; undefined when it is missing, empty or not text. */
export function textAt(json: unknown, ...path: readonly (string | number)[]): string | undefined {
  const value = memberAt(json, ...path)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** An identifier at a path: a word of at most 200 visible ASCII characters, or a whole number. */
export function idAt(json: unknown, ...path: readonly (string | number)[]): string | undefined {
  const value = memberAt(json, ...path)
  if (Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && /^[\x21-\x7E]{1,200}$/.test(value) ? value : undefined
}

/** What a status means unless something more specific is known (RFC 9110 §15). */
export function judge({ status, safe, summary }: Reply): Failure {
  // A success in an undocumented shape: it is unknown what was done.
  if (status < 300) return { is: safe ? 'unreached' : 'unclear', why: `${summary}, which makes no sense here` }
  // Nothing was done yet; a later attempt may succeed.
  if (status === 408 || status === 425) return { is: 'unreached', why: summary }
  return { is: 'misconfigured', why: summary }
}

/** A failure of a later step: what the earlier steps did has taken effect. */
export function inDoubt(failure: Failure | Refused): Failure {
  const { is, why } = failure
  if (is === 'misconfigured' || is === 'refused') return { is: 'misconfigured', why, tookEffect: true }
  const { retryAfter, notSent } = failure
  return { is: 'unclear', why, retryAfter, notSent }
}

/** Like `judge`, for an answer about one event or one known contact, which may be refused by itself. */
export function judgeDelivery(reply: Reply): Failure | Refused {
  const { status, summary } = reply
  return status === 400 || status === 413 || status === 422 ? { is: 'refused', why: summary } : judge(reply)
}

/**
 * The milliseconds that the first usable one of `fields` asks us to wait: seconds or a date (RFC 9110 §10.2.3), or, as some
 * send it, a time in seconds since 1970. `now`: milliseconds since 1970.
 */
export function retryAfter(
  answer: Readonly<Record<string, string>>,
  fields: readonly string[],
  now: number = Date.now(),
): number | undefined {
  for (const field of fields) {
    const text = answer[field]?.trim() ?? ''
    const seconds = /^\d{1,10}(?:\.\d+)?$/.test(text) ? Number(text) : undefined
    const until = seconds === undefined ? Date.parse(text) : seconds * 1_000 + (seconds > 1e9 ? 0 : now)
    if (!Number.isNaN(until)) return Math.max(0, Math.ceil(until - now))
  }
  return undefined
}
