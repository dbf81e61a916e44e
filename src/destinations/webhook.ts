import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { attempting } from '../outbound/attempt.ts'
import { caller } from '../outbound/caller.ts'
import { secretsIn } from '../outbound/excerpt.ts'
import type { Rate } from '../outbound/pace.ts'
import { judge, judgeDelivery } from '../outbound/reply.ts'
import { newsKinds } from '../signup/contact.ts'
import type { OwnDestination } from '../waitlist/ports/destination.ts'

export interface WebhookSettings {
  /** The receiver: http or https, with path and query; no user, no fragment. */
  readonly url: string
  /** One, or two during a change of secrets: each of them signs. `isSecret` is true of each. */
  readonly secrets: readonly string[]
}

/** A Standard Webhooks message; all members but `id` are its payload. */
interface Message {
  readonly id: string
  readonly type: string
  readonly timestamp: Date
  readonly data: object
}

/** A type that receivers do not know and therefore ignore. */
const CHECK = 'waitlist.check'

/** Milliseconds for one attempt. */
const TIMEOUT = 15_000
const CONCURRENCY = 16
/** Only a backlog ever reaches it. */
const RATE: Rate = { calls: 1_000, per: 1_000, connections: CONCURRENCY }

/**
 * Sends events to the operator's own receiver, as Standard Webhooks specifies:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function webhook({ url: address, secrets }: WebhookSettings): OwnDestination {
  const url = new URL(address)
  const { origin, pathname, search } = url
  const { call, close } = caller({ base: origin, headers: {}, rate: RATE, secrets: secretsIn(url) })
  const signers = secrets.map(secret => new Webhook(secret))

  function send({ id, ...payload }: Message, to: string, signal: AbortSignal, mayBegin?: () => boolean) {
    // The signature covers exactly these bytes.
    const body = JSON.stringify(payload)
    const now = new Date()
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': signers.map(signer => signer.sign(id, now, body)).join(' '),
    }
    const post = { to, method: 'POST', path: pathname + search, headers, body, statusAlone: true } as const
    return attempting(TIMEOUT, signal, attempt => call(post, attempt), mayBegin)
  }

  return {
    name: 'webhook',
    events: newsKinds,
    repeatable: Number.POSITIVE_INFINITY,
    timeout: TIMEOUT,
    concurrency: CONCURRENCY,

    async deliver({ id, name: type, at: timestamp, contact, code }, signal, mayBegin) {
      const { id: contactId, name, email, createdAt, source } = contact
      const data = { id: contactId, name, email, createdAt, source, code }
      const reply = await send({ id, type, timestamp, data }, 'call the webhook', signal, mayBegin)
      if (reply.is !== 'answered') return reply
      if (reply.status < 300) return { is: 'delivered' }
      return reply.status === 410 ? { is: 'gone', why: reply.summary } : judgeDelivery(reply)
    },

    /** Sends a message of type `waitlist.check`. */
    async check(signal) {
      const message = { id: `check_${randomUUID()}`, type: CHECK, timestamp: new Date(), data: {} }
      const reply = await send(message, 'try the webhook', signal)
      if (reply.is !== 'answered') return reply
      return reply.status < 300 ? null : judge(reply)
    },

    close,
  }
}
