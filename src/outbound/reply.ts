import type { Failure } from '../waitlist/ports.ts'

/** An answer that arrived whole. Server errors, 429 and redirects never become one. */
export interface Reply {
  readonly is: 'answered'
  /** 2xx or 4xx. */
  readonly status: number
  /** Whether the call changed nothing in any case. */
  readonly safe: boolean
  /** Lower-case names; of a repeated field the values are joined. */
  readonly fields: Readonly<Record<string, string>>
  /** The body as JSON; undefined when it is none. */
  readonly json: unknown
  /** What was called, in words for the log: "create a contact (POST, answered with 422: …)". */
  readonly summary: string
}

/** The member at a path of names and positions, when all of it is there. */
export function memberAt(json: unknown, ...path: readonly (string | number)[]): unknown {
  let value = json
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string | number, unknown>)[name]
  }
  return value
}

/** The text at a path; undefined when it is missing, empty or no text. */
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

/** What a status means where nothing more is known of it: RFC 9110 §15. */
export function judge({ status, safe, summary }: Reply): Failure {
  // It should have had a certain shape or number, and has not: nobody knows what was done.
  if (status < 300) return { is: safe ? 'unreached' : 'unclear', why: `${summary}, which makes no sense here` }
  // Nothing was done, and may be done later.
  if (status === 408 || status === 425) return { is: 'unreached', why: summary }
  return { is: 'misconfigured', why: summary }
}
