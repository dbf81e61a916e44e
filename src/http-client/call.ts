import { Agent } from 'undici'

export interface Call {
  /** What the call does, for the log: "create a contact". Never contains what a visitor sent. */
  readonly action: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; a string is sent as it is. */
  readonly body?: unknown
  /** Whether it changes nothing, however it ends; by default, whether it is a GET. */
  readonly safe?: boolean
  /** Kept out of the log, like the values of the headers. */
  readonly secrets?: readonly string[]
  /** Ends the call; see `deadline`. */
  readonly signal: AbortSignal
}

/**
 * Why a call failed:
 *
 * - `rate limited`: nothing was done. `retryAfter`: the milliseconds that the other side asks us to wait.
 * - `misconfigured`: our key or our settings are refused, and only the operator can mend them.
 * - `unreachable`: the request was certainly not received, or not handled.
 * - `in doubt`: it may have taken effect.
 *
 * `why` is for the log: one line without addresses and secrets.
 */
export type Failure =
  | { readonly is: 'rate limited'; readonly why: string; readonly retryAfter: number }
  | { readonly is: 'misconfigured' | 'unreachable' | 'in doubt'; readonly why: string }

/** `ok`: 2xx, whatever its body. `refused`: any other 4xx, about this request; the caller knows what it means. */
export type Reply = Answer & ({ readonly is: 'ok' | 'refused'; readonly why: string } | Failure)

interface Answer {
  /** 0: there was no answer. */
  readonly status: number
  /** Of the call. */
  readonly safe: boolean
  /** The body; undefined if it is no JSON, longer than `LONGEST`, or did not arrive. */
  // biome-ignore lint/suspicious/noExplicitAny: callers read members as `json?.data?.id`, and check what they find
  readonly json: any
}

/** A signal for all the calls of one attempt, which have so many milliseconds in all. */
export const deadline = (milliseconds: number, stop: AbortSignal): AbortSignal =>
  AbortSignal.any([stop, AbortSignal.timeout(milliseconds)])

/** Bytes of a body. */
const LONGEST = 65_536
/** Milliseconds to wait if the other side asks to, but does not say how long. */
const DEFAULT_WAIT = 5_000

/** A host that drops packets is given up before any deadline, so that its calls do not end in doubt. */
const agent = new Agent({ connect: { timeout: 2_000 }, maxResponseSize: LONGEST, headersTimeout: 0, bodyTimeout: 0 })

/** Errors that arise before the request is sent, those of certificates among them. */
const NOT_SENT =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|E(?:HOST|NET)UNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_\w+|ERR_TLS_\w+|CERT_\w+|\w+_CERT(?:_\w+)?|UNABLE_TO_\w+)$/

/**
 * Makes one call to an address that the operator chose. Never rejects. Redirects are not followed: a key or a signature is
 * for the configured address alone.
 */
export async function call(request: Call): Promise<Reply> {
  const { action, method, safe = method === 'GET', headers = {}, signal } = request
  const secrets = [...(request.secrets ?? []), ...Object.values(headers).flatMap(value => value.split(' '))]
  const unanswered = (is: 'unreachable' | 'in doubt', reason: string): Reply => ({
    ...{ status: 0, safe, json: undefined, is, why: `${action}: ${reason}` },
  })
  if (signal.aborted) return unanswered('unreachable', reasonOf(signal))
  try {
    const { origin, pathname, search } = new URL(request.url)
    const answer = await agent.request({
      ...{ origin, path: pathname + search, method, signal },
      headers: {
        accept: 'application/json',
        'user-agent': 'waitlist',
        ...(request.body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: typeof request.body === 'string' ? request.body : (JSON.stringify(request.body) ?? null),
    })
    const { statusCode: status } = answer
    // The status stands, even if the body never arrives.
    const text = await answer.body.text().catch(() => '')
    const said = status < 300 ? '' : excerpt(text, secrets)
    const why = `${action}: answered with ${status}${said && ` (${said})`}`
    return { status, safe, json: parsed(text), ...meaning(status, safe, why, answer.headers) }
  } catch (error) {
    const { message, code = '' } = error as Error & { readonly code?: string }
    const reason = signal.aborted ? reasonOf(signal) : excerpt(message || code, secrets)
    return unanswered(safe || NOT_SENT.test(code) ? 'unreachable' : 'in doubt', reason)
  }
}

/** What a reply means to a caller that can do nothing with it. */
export function failureOf(reply: Reply): Failure {
  const { safe, why } = reply
  if (reply.is === 'refused') return { is: 'misconfigured', why }
  if (reply.is === 'ok') return { is: safe ? 'unreachable' : 'in doubt', why: `${why}: unexpected response body` }
  return reply.is === 'rate limited' ? { is: reply.is, why, retryAfter: reply.retryAfter } : { is: reply.is, why }
}

/** RFC 9110 §15. */
function meaning(status: number, safe: boolean, why: string, headers: Headers) {
  const wait = waitOf(headers)
  if (status < 300) return { is: 'ok', why } as const
  if (status < 400)
    return { is: 'misconfigured', why: `${why}: set the final address, redirects are not followed` } as const
  if (status === 429 || (status === 503 && wait !== undefined)) {
    return { is: 'rate limited', why, retryAfter: wait ?? DEFAULT_WAIT } as const
  }
  if (status === 401 || status === 403) return { is: 'misconfigured', why } as const
  if (status === 503) return { is: 'unreachable', why } as const
  if (status < 500) return { is: 'refused', why } as const
  return { is: safe ? 'unreachable' : 'in doubt', why } as const
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The milliseconds that an answer asks us to wait: it says seconds, or a date (RFC 9110 §10.2.3). */
function waitOf(headers: Headers): number | undefined {
  for (const name of ['retry-after', 'ratelimit-reset', 'x-sib-ratelimit-reset']) {
    const text = String(headers[name] ?? '')
    const wait = Number(text) * 1_000 || Date.parse(text) - Date.now()
    if (Number.isFinite(wait)) return Math.max(0, wait)
  }
  return undefined
}

const reasonOf = ({ reason }: AbortSignal): string =>
  reason?.name === 'TimeoutError' ? 'no answer in time' : 'aborted by shutdown'

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A text for the log: one line of at most 200 characters without email addresses, and without `secrets`. */
export function excerpt(text: string, secrets: readonly string[]): string {
  let line = text.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()
  // Shorter words, such as "Bearer", are no secrets.
  for (const secret of secrets.filter(({ length }) => length >= 8)) line = line.replaceAll(secret, '…')
  return line.replaceAll(/[^\s"<>()[\],:;\\]+/g, word => (/@|%40/.test(word) ? '…' : word)).slice(0, 200)
}
