import { Agent } from 'undici'
import type { Failure } from '../waitlist/ports.ts'
import { breaker } from './breaker.ts'
import { excerpt } from './excerpt.ts'
import { pace, type Rate } from './pace.ts'
import type { Reply } from './reply.ts'
import { retryAfter } from './retry-after.ts'

export interface Call {
  /** What it is for, in words for the log: "create a contact". Never with what a visitor sent. */
  readonly to: string
  readonly method: 'GET' | 'POST' | 'PUT'
  /** Whether it changes nothing, whatever becomes of it (RFC 9110 §9.2.1); absent: a GET does not. */
  readonly safe?: boolean
  /** Begins with a slash; follows the path of the base address. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. A text is sent as it is. */
  readonly body?: unknown
}

/** Calls one address of the operator's choice. */
export interface Caller {
  /**
   * Resolves with an answer that the caller must judge (2xx, or 4xx but 429), or with why there is none. Never rejects;
   * ends when `deadline` does.
   */
  call(call: Call, deadline: AbortSignal): Promise<Reply | Failure>
  close(): Promise<void>
}

export interface CallerSettings {
  /** `https://api.example.com` or with a path; no slash at the end. */
  readonly base: string
  /** Sent with every call. */
  readonly headers: Readonly<Record<string, string>>
  readonly rate: Rate
  /** Where the other side says how long to wait after too many calls. */
  readonly waitFields?: readonly string[]
  /** Milliseconds to wait after a 429 that does not say how long. */
  readonly wait?: number
}

const CONNECT_TIMEOUT = 2_000
/** Bytes of an answer; the largest that is of use is a few kilobytes. */
const LARGEST_ANSWER = 65_536
/** Milliseconds of calls that may queue: who comes later would only wait in vain. */
const ROOM = 5_000
const DEFAULT_WAIT = 5_000
/** No answer holds back all calls for longer than this (milliseconds). */
const LONGEST_HOLD = 60_000

/**
 * Timeouts, size limits, the documented rate, a circuit breaker and the kinds of failure, once for every address that is
 * called. Redirects are not followed: a key or a signature is for the configured address alone.
 */
export function caller(settings: CallerSettings): Caller {
  const { base, headers, rate, waitFields = ['retry-after'], wait = DEFAULT_WAIT } = settings
  const { origin, pathname } = new URL(base)
  const prefix = pathname === '/' ? '' : pathname
  // The deadline of a call bounds the whole of it, so the timeouts of its parts are off.
  const agent = new Agent({
    connections: rate.connections,
    connect: { timeout: CONNECT_TIMEOUT },
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: LARGEST_ANSWER,
    // One call at a time on a connection: whatever breaks it ends that call alone.
    allowH2: false,
  })
  const paced = pace(rate, Math.max(rate.connections, Math.ceil((ROOM / rate.per) * rate.calls)))
  const { isOpen, begin, note } = breaker()
  const secrets = secretsIn(headers)
  let heldUntil = 0

  function refusal(to: string): Failure | null {
    const wait = Math.ceil(heldUntil - performance.now())
    if (wait > 0)
      return { is: 'unreached', why: `${to}: not called, we were asked to wait`, retryAfter: wait, uncalled: true }
    const why = `${to}: not called, the last calls were not answered`
    return isOpen() ? { is: 'unreached', why, uncalled: true } : null
  }

  async function call(call: Call, deadline: AbortSignal): Promise<Reply | Failure> {
    const { to } = call
    const refused = refusal(to)
    if (refused !== null) return refused
    const leave = await paced.enter(deadline)
    if (leave === null || deadline.aborted) {
      leave?.()
      return { is: 'unreached', why: `${to}: not called, too many calls wait`, uncalled: true }
    }
    try {
      // Much may have happened while it waited.
      const refused = refusal(to)
      if (refused !== null) return refused
      begin()
      return await send(call, deadline)
    } finally {
      leave()
    }
  }

  async function send(call: Call, deadline: AbortSignal) {
    const { to, method, safe = method === 'GET', path, query, headers: more, body } = call
    let begun = false
    let status: number
    let fields: Record<string, string>
    let text: string
    try {
      const noticing = agent.compose(dispatch => (options, handler) => {
        const start = handler.onRequestStart?.bind(handler)
        handler.onRequestStart = (...all) => {
          begun = true
          start?.(...all)
        }
        return dispatch(options, handler)
      })
      const answer = await endingWith(
        deadline,
        noticing.request({
          origin,
          path: prefix + path + (query === undefined ? '' : `?${new URLSearchParams(query)}`),
          method,
          headers: {
            accept: 'application/json',
            'user-agent': 'waitlist',
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
            ...more,
          },
          body: body === undefined || typeof body === 'string' ? (body ?? null) : JSON.stringify(body),
          signal: deadline,
        }),
      )
      status = answer.statusCode
      fields = flat(answer.headers)
      text = await answer.body.text().catch(error => {
        if (isTold(status)) return ''
        throw error
      })
    } catch (error) {
      note(false)
      const why = `${to}: ${deadline.aborted ? 'no answer in time' : reasonOf(error as Error)}`
      // Before the first byte was sent it is certainly without effect; anything later may have come too late.
      return { is: begun && !safe ? 'unclear' : 'unreached', why } as const
    }
    note(status < 500)
    const json = parsed(text)
    const said = status < 300 ? '' : excerpt(json, [body, query], [...secrets, ...secretsIn({ ...more })])
    const summary = `${to}: answered with ${status}${said === '' ? '' : ` (${said})`}`
    if (status === 429 || status === 503) {
      const asked = retryAfter(fields, waitFields) ?? (status === 429 ? wait : undefined)
      if (asked !== undefined) heldUntil = Math.max(heldUntil, performance.now() + Math.min(asked, LONGEST_HOLD))
      return { is: 'unreached', why: summary, ...(asked === undefined ? {} : { retryAfter: asked }) } as const
    }
    if (status >= 500) return { is: safe ? 'unreached' : 'unclear', why: summary } as const
    if (status >= 300 && status < 400) {
      return { is: 'misconfigured', why: `${summary}, and redirects are not followed: set the final address` } as const
    }
    return { is: 'answered', status, safe, fields, json, summary } as const
  }

  return { call, close: () => agent.destroy() }
}

/** What could be a key in the fields of a request. */
const secretsIn = (headers: Readonly<Record<string, string>>): string[] =>
  Object.values(headers).flatMap(value => value.split(/\s+/).filter(part => part.length >= 8))

/** A status that says all there is to know of the effect, whether or not its body arrives. */
const isTold = (status: number): boolean => status === 429 || status === 503 || (status >= 300 && status < 400)

/** While undici connects it does not look at the signal of a request, so this does. */
async function endingWith<T>(deadline: AbortSignal, answer: Promise<T>): Promise<T> {
  const over = Promise.withResolvers<never>()
  deadline.addEventListener('abort', over.reject, { once: true })
  try {
    return await Promise.race([answer, over.promise])
  } finally {
    deadline.removeEventListener('abort', over.reject)
  }
}

/** The message of an error that tries several addresses is empty, and of some of TLS unreadable. */
function reasonOf({ message, code }: Error & { readonly code?: string }): string {
  if (message === '' || message.includes(':error:')) return code ?? 'no connection'
  const line = message.replaceAll(/\s+/g, ' ').slice(0, 200)
  return code === undefined || line.includes(code) ? line : `${line} (${code})`
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : value,
  ])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
