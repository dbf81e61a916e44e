import { Agent } from 'undici'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Attempt } from './attempt.ts'
import { excerpt } from './excerpt.ts'
import { lookup } from './lookup.ts'
import { pace, type Rate } from './pace.ts'
import { jsonIn, memberAt, type Reply, retryAfter } from './reply.ts'

export interface Call {
  /** Its purpose, for the log: "create a contact". Never contains what a visitor sent. */
  readonly to: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Whether it changes nothing, however it ends (RFC 9110 §9.2.1); by default, whether it is a GET. */
  readonly safe?: boolean
  /** Begins with a slash; follows the path of the base address. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. A string is sent as it is. */
  readonly body?: unknown
  /** Whether a 2xx status is enough, whatever its body is and even if the body never arrives. */
  readonly statusAlone?: boolean
}

/** Calls one address that the operator chose. */
export interface Caller {
  /**
   * Resolves with an answer to judge (2xx, or 4xx except 429), or with why there is none. Never rejects; ends when
   * `attempt` does. It waits for its turn first: the first call of an attempt for at most 5 seconds, later ones for the
   * rest of the timeout. A call whose turn does not come in time is not sent.
   */
  call(call: Call, attempt: Attempt): Promise<Reply | Failure>
  close(): Promise<void>
}

export interface CallerSettings {
  /** Such as `https://api.example.com`, perhaps with a path; no slash at the end. */
  readonly base: string
  /** Sent with every call. */
  readonly headers: Readonly<Record<string, string>>
  readonly rate: Rate
  /** The fields in which the other side says how long to wait after too many calls. */
  readonly waitFields?: readonly string[]
  /** The member of the body that says so in seconds, if no field does. */
  readonly waitMember?: string
  /** Milliseconds to wait after a 429 that does not say how long. */
  readonly wait?: number
  /** Bytes of an answer, where useful ones may have more than 65,536. */
  readonly largest?: number
  /** What must not be in the log, beside what looks like a key in the headers. */
  readonly secrets?: readonly string[]
}

const CONNECT_TIMEOUT = 2_000
/** Bytes of an answer. Useful ones have a few kilobytes at most, almost everywhere. */
const LARGEST_ANSWER = 65_536
/** Milliseconds that the first call of an attempt may wait for its turn. */
export const LONGEST_QUEUE = 5_000
const DEFAULT_WAIT = 5_000

/**
 * Timeouts, size limits, the documented rate and the kinds of failure, for every address that is called. Redirects are
 * not followed: a key or a signature is for the configured address alone.
 */
export function caller(settings: CallerSettings): Caller {
  const { base, headers, rate, waitFields = ['retry-after'], waitMember, wait = DEFAULT_WAIT } = settings
  const { origin, pathname } = new URL(base)
  const prefix = pathname === '/' ? '' : pathname
  // The timeout of an attempt covers all of it, so those of its parts are off.
  const agent = new Agent({
    connections: rate.connections,
    connect: { timeout: CONNECT_TIMEOUT, lookup },
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: settings.largest ?? LARGEST_ANSWER,
    // One call at a time on a connection, so that a broken connection ends only that call.
    allowH2: false,
  })
  const { enter } = pace(rate)

  async function call(call: Call, attempt: Attempt): Promise<Reply | Failure> {
    const continues = attempt.hasBegun()
    const longest = continues ? attempt.left() : LONGEST_QUEUE
    const release = await enter({ longest, rank: continues ? 'continues' : attempt.rank, over: attempt.over })
    if (release === null) return notSent(call)
    try {
      if (attempt.over.aborted) return notSent(call)
      if (!continues && !attempt.mayBegin()) return notSent(call)
      attempt.begin()
      return await send(call, attempt)
    } finally {
      release()
    }
  }

  async function send(call: Call, { over, left }: Attempt) {
    const { to, method, safe = method === 'GET', path, query, headers: more, body, statusAlone = false } = call
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
        over,
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
          signal: over,
        }),
      )
      status = answer.statusCode
      fields = flat(answer.headers)
      text = await answer.body.text().catch(error => {
        if (isTold(status) || (statusAlone && status < 300)) return ''
        throw error
      })
    } catch (error) {
      const why = `${to}: ${!over.aborted ? reasonOf(error as Error) : left() > 0 ? 'cut off by our own stop' : 'no answer in time'}`
      // Until the first byte is sent, nothing can have taken effect; after that, it is unknown.
      return { is: begun && !safe ? 'unclear' : 'unreached', why } as const
    }
    const json = jsonIn(text)
    const keys = [...Object.values(headers), ...Object.values({ ...more })].flatMap(value => value.split(' '))
    const secrets = [...keys.filter(part => part.length >= 8), ...(settings.secrets ?? [])]
    const said = status < 300 ? '' : excerpt(json === undefined ? text : JSON.stringify(json), secrets)
    const summary = `${to}: answered with ${status}${said === '' ? '' : ` (${said})`}`
    if (status === 429 || status === 503) {
      const told = waitMember === undefined ? {} : { [waitMember]: String(memberAt(json, waitMember)) }
      const asked = retryAfter(fields, waitFields) ?? retryAfter(told, Object.keys(told))
      if (asked === undefined)
        return { is: 'unreached', why: summary, retryAfter: status === 429 ? wait : undefined } as const
      const until = new Date(Date.now() + asked).toISOString().replace(/\.\d+/, '')
      return { is: 'unreached', why: `${summary}, asking to wait until ${until}`, retryAfter: asked } as const
    }
    if (status >= 500) return { is: safe ? 'unreached' : 'unclear', why: summary } as const
    if (status >= 300 && status < 400) {
      return { is: 'misconfigured', why: `${summary}, and redirects are not followed: set the final address` } as const
    }
    return { is: 'answered', status, safe, fields, json, summary } as const
  }

  return { call, close: () => agent.destroy() }
}

const notSent = ({ to }: Call): Failure => ({
  is: 'unreached',
  why: `${to}: not sent, its turn did not come in time`,
  notSent: true,
})

/** Whether the status alone says that nothing took effect, even if the body never arrives. */
const isTold = (status: number): boolean => status === 429 || status === 503 || (status >= 300 && status < 400)

/** undici ignores the signal of a request while it connects. */
async function endingWith<T>(over: AbortSignal, answer: Promise<T>): Promise<T> {
  const ended = Promise.withResolvers<never>()
  over.addEventListener('abort', ended.reject, { once: true })
  try {
    return await Promise.race([answer, ended.promise])
  } finally {
    over.removeEventListener('abort', ended.reject)
  }
}

/** An error after trying several addresses has an empty message, and some TLS errors have an unreadable one. */
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
