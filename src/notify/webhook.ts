import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { type OwnDestination, resultOf } from '../delivery/destination.ts'
import { call, deadline, failureOf, type Reply } from '../http-client/call.ts'
import { publicEvents } from '../signup/contact.ts'

interface WebhookSettings {
  /** The receiver: http or https, with path and query. */
  readonly url: string
  /** One, or two while it is changed: each of them signs. */
  readonly secrets: readonly string[]
}

/** Milliseconds for one attempt. */
const TIMEOUT = 15_000

/** What of a webhook's address may be a secret. */
export const secretsIn = (url: string): readonly string[] => {
  const { pathname, searchParams } = new URL(url)
  return [...pathname.split('/'), ...searchParams.values()]
}

/** Sends events to the operator's own receiver: https://github.com/standard-webhooks/standard-webhooks */
export function webhook({ url, secrets }: WebhookSettings): OwnDestination {
  const signers = secrets.map(secret => new Webhook(secret))

  function send(action: string, id: string, payload: object, stop: AbortSignal): Promise<Reply> {
    // The signature covers exactly these bytes.
    const body = JSON.stringify(payload)
    const now = new Date()
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      'webhook-signature': signers.map(signer => signer.sign(id, now, body)).join(' '),
    }
    const signal = deadline(TIMEOUT, stop)
    return call({ action, method: 'POST', url, headers, body, secrets: secretsIn(url), signal })
  }

  return {
    name: 'webhook',
    events: publicEvents,
    repeatable: Number.POSITIVE_INFINITY,
    concurrency: 16,
    async deliver({ id, name: type, at: timestamp, contact, code }, signal) {
      const { id: contactId, name, email, createdAt, source } = contact
      const data = { id: contactId, name, email, createdAt, source, code }
      return resultOf(await send('call the webhook', id, { type, timestamp, data }, signal))
    },
    /** Sends a message of a type that receivers do not know, and therefore ignore. */
    async check(signal) {
      const message = { type: 'waitlist.check', timestamp: new Date(), data: {} }
      const reply = await send('try the webhook', `check_${randomUUID()}`, message, signal)
      return reply.is === 'ok' ? null : failureOf(reply)
    },
  }
}
