import type { Attempt } from '../outbound/attempt.ts'
import { idAt, judge, judgeDelivery, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Creation, Failure } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

/**
 * https://docs.useplunk.com/api-reference and the source, https://github.com/useplunk/plunk. A creation is an upsert that
 * would change an existing contact, so the address is looked up first. Events need the public key.
 */
export function plunk(settings: SettingsOf<'plunk'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.PLUNK_BASE_URL,
    headers: { authorization: `Bearer ${settings.PLUNK_SECRET_KEY}` },
  })

  /** For an existing contact: in doubt, checks whether it is ours. */
  async function existing(contact: Contact, attempt: Attempt): Promise<Creation> {
    const query = { search: contact.email, limit: '20' }
    const reply = await call({ to: 'find a contact', method: 'GET', path: '/contacts', query }, attempt)
    if (reply.is !== 'answered') return reply
    const found = memberAt(reply.json, 'data')
    if (reply.status !== 200 || !Array.isArray(found)) return failed(reply)
    // The search also finds addresses that contain this one, the newest first.
    const match: unknown = found.find(each => textAt(each, 'email') === contact.email)
    const providerId = idAt(match, 'id')
    const ours = isYoungerThanSignup(textAt(match, 'createdAt'), contact)
    return { is: 'existing', providerId, ours }
  }

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email } = contact
      const emails = [email]
      const looked = await call(
        { to: 'look an address up', method: 'POST', safe: true, path: '/contacts/lookup', body: { emails } },
        attempt,
      )
      if (looked.is !== 'answered') return looked
      const isIn = (list: string) => memberAt(looked.json, list, 0) === email
      if (looked.status !== 200 || isIn('found') === isIn('notFound')) return failed(looked)
      if (isIn('found')) return doubt ? existing(contact, attempt) : { is: 'existing' }

      const { first, last } = splitName(name)
      const body = { email, data: { firstName: first, lastName: last }, subscribed: settings.PLUNK_SUBSCRIBED }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/contacts', body }, attempt)
      if (reply.is !== 'answered') return reply
      const providerId = idAt(reply.json, 'id')
      const isNew = memberAt(reply.json, '_meta', 'isNew')
      if (reply.status === 201 && isNew === true && providerId !== undefined) return { is: 'created', providerId }
      // Somebody else added it after the lookup.
      if (reply.status === 200 && isNew === false && providerId !== undefined) {
        return doubt ? existing(contact, attempt) : { is: 'existing', providerId }
      }
      return refusesAddress(reply) ? { is: 'refused', reason: 'it is not valid there' } : failed(reply)
    },

    async automation({ id, name, contact: { email } }, attempt) {
      const headers = { authorization: `Bearer ${settings.PLUNK_PUBLIC_KEY}`, 'idempotency-key': id }
      const body = { event: name, email }
      const reply = await call({ to: 'track an event', method: 'POST', path: '/v1/track', headers, body }, attempt)
      if (reply.is !== 'answered') return reply
      if (reply.status === 200 && idAt(reply.json, 'data', 'event') !== undefined) return { is: 'delivered' }
      if (reply.status === 409 && textAt(reply.json, 'error', 'code') === 'IDEMPOTENCY_KEY_REUSED') {
        // With a status the first request has ended, and Plunk retries its own 5xx. Without one it is still under way.
        const status = memberAt(reply.json, 'error', 'details', 'originalStatusCode')
        return typeof status === 'number' ? { is: 'delivered' } : { is: 'unclear', why: reply.summary }
      }
      return failed(reply, judgeDelivery)
    },

    async check(attempt) {
      const query = { limit: '1' }
      const reply = await call({ to: 'check the secret key', method: 'GET', path: '/contacts', query }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && Array.isArray(memberAt(reply.json, 'data')) ? null : failed(reply)
    },
  }
}

/** A 422 names the invalid members. The address is the only value from the visitor that Plunk checks. */
function refusesAddress({ status, json }: Reply): boolean {
  const errors = memberAt(json, 'error', 'errors')
  return status === 422 && Array.isArray(errors) && errors.some(each => textAt(each, 'field') === 'email')
}

/** 402: the project has used up its plan, which is temporary. */
const failed = <Other = Failure>(
  reply: Reply,
  otherwise: (reply: Reply) => Failure | Other = judge,
): Failure | Other => (reply.status === 402 ? { is: 'unreached', why: reply.summary } : otherwise(reply))
