import * as replies from '../outbound/reply.ts'
import type { Failure } from '../waitlist/ports/destination.ts'

export { idAt, inDoubt, memberAt, type Refused, textAt } from '../outbound/reply.ts'

/**
 * What came of a call. Without an answer its status is 0, as in `fetch`: a client treats it like an answer that it does not
 * understand, and the functions that judge it say why there is none.
 */
export interface Answer {
  readonly status: number
  /** 2xx. */
  readonly ok: boolean
  readonly json: unknown
  readonly summary: string
  readonly reply: replies.Reply | Failure
}

export function answerOf(reply: replies.Reply | Failure): Answer {
  if (reply.is !== 'answered') return { status: 0, ok: false, json: undefined, summary: reply.why, reply }
  const { status, json, summary } = reply
  return { status, ok: status < 300, json, summary, reply }
}

/** What it means unless something more specific is known. */
export const judge = ({ reply }: Answer): Failure => (reply.is === 'answered' ? replies.judge(reply) : reply)

/** The same about one event or one known contact, which may be refused by itself. */
export const judgeDelivery = ({ reply }: Answer): Failure | replies.Refused =>
  reply.is === 'answered' ? replies.judgeDelivery(reply) : reply
