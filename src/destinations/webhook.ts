import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { caller } from '../outbound/caller.ts'
import type { Rate } from '../outbound/pace.ts'
import { judge } from '../outbound/reply.ts'
import type { Destination, Failure } from '../waitlist/ports.ts'

export interface WebhookSettings {
  /** Of the receiver: http or https, with path and query; no user, no fragment. */
  readonly url: string
  /** One or, while it is changed, two: each signs. `isSecret` is true of them. */
  readonly secrets: readonly string[]
}

/** One message of Standard Webhooks; the members but `id` are its payload. */
interface Message {
  readonly id: string
  readonly type: string
  readonly timestamp: Date
  readonly data: object
}

/** There is no message that changes nothing, so this is one that receivers do not know; they ignore such types. */
const CHECK = 'waitlist.check'

const CONCURRENCY = 16
/** More than a receiver sees unless a backlog is sent. */
const RATE: Rate = { calls: 1_000, per: 1_000, connections: CONCURRENCY }

/**
 * Tells a receiver of the operator's own, as Standard Webhooks says:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function webhook({ url, secrets }: WebhookSettings): Destination & {
  /** Tries address and secret with a message of the type `waitlist.check`: null when the receiver accepts it. */
  check(deadline: AbortSignal): Promise<Failure | null>
  close(): Promise<void>
} {
  const { origin, pathname, search } = new URL(url)
  const { call, close } = caller({ base: origin, headers: {}, rate: RATE })
  const signers = secrets.map(secret => new Webhook(secret))

  function send({ id, ...payload }: Message, to: string, deadline: AbortSignal) {
    // A signature is of these very bytes, so they are made once.
    const body = JSON.stringify(payload)
    const now = new Date()
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': signers.map(signer => signer.sign(id, now, body)).join(' '),
    }
    return call({ to, method: 'POST', path: pathname + search, headers, body }, deadline)
  }

  return {
    name: 'webhook',
    repeatable: Number.POSITIVE_INFINITY,
    timeout: 15_000,
    concurrency: CONCURRENCY,

    async deliver({ id, name: type, at: timestamp, contact }, deadline) {
      const { id: contactId, name, email, createdAt } = contact
      const data = { id: contactId, name, email, createdAt }
      const reply = await send({ id, type, timestamp, data }, 'call the webhook', deadline)
      if (reply.is !== 'answered') return reply
      if (reply.status < 300) return { is: 'delivered' }
      return reply.status === 410 ? { is: 'gone', why: reply.summary } : judge(reply)
    },

    async check(deadline) {
      const message = { id: `check_${randomUUID()}`, type: CHECK, timestamp: new Date(), data: {} }
      const reply = await send(message, 'try the webhook', deadline)
      if (reply.is !== 'answered') return reply
      return reply.status < 300 ? null : judge(reply)
    },

    close,
  }
}
