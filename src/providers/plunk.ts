import { idAt, judge, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Creation, Failure } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

/**
 * https://docs.useplunk.com/api-reference and the source, https://github.com/useplunk/plunk. Creating is an upsert that
 * merges what it is sent into an existing contact, so an address is looked up first. Events take the public key.
 */
export function plunk(settings: SettingsOf<'plunk'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.PLUNK_BASE_URL,
    headers: { authorization: `Bearer ${settings.PLUNK_SECRET_KEY}` },
  })

  /** Of a contact that is there, when there is doubt: whether it is ours. */
  async function existing(contact: Contact, deadline: AbortSignal): Promise<Creation> {
    const query = { search: contact.email, limit: '20' }
    const reply = await call({ to: 'find a contact', method: 'GET', path: '/contacts', query }, deadline)
    if (reply.is !== 'answered') return reply
    const found = memberAt(reply.json, 'data')
    if (reply.status !== 200 || !Array.isArray(found)) return failed(reply)
    // Addresses that contain this one are found too; the newest come first.
    const match: unknown = found.find(each => textAt(each, 'email') === contact.email)
    const providerId = idAt(match, 'id')
    const ours = isYoungerThanSignup(textAt(match, 'createdAt'), contact)
    return { is: 'existing', ...(providerId && { providerId }), ...(ours !== undefined && { ours }) }
  }

  return {
    async createContact(contact, doubt, deadline) {
      const { name, email } = contact
      const emails = [email]
      const looked = await call(
        { to: 'look an address up', method: 'POST', safe: true, path: '/contacts/lookup', body: { emails } },
        deadline,
      )
      if (looked.is !== 'answered') return looked
      const isIn = (list: string) => memberAt(looked.json, list, 0) === email
      if (looked.status !== 200 || isIn('found') === isIn('notFound')) return failed(looked)
      if (isIn('found')) return doubt ? existing(contact, deadline) : { is: 'existing' }

      const { first, last } = splitName(name)
      const body = { email, data: { firstName: first, lastName: last } }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/contacts', body }, deadline)
      if (reply.is !== 'answered') return reply
      const providerId = idAt(reply.json, 'id')
      const isNew = memberAt(reply.json, '_meta', 'isNew')
      if (reply.status === 201 && isNew === true && providerId !== undefined) return { is: 'created', providerId }
      // Somebody else made it after we looked.
      if (reply.status === 200 && isNew === false && providerId !== undefined) {
        return doubt ? existing(contact, deadline) : { is: 'existing', providerId }
      }
      return refusesAddress(reply) ? { is: 'refused', reason: 'it is not valid there' } : failed(reply)
    },

    async automation({ id, name, contact: { email } }, deadline) {
      const headers = { authorization: `Bearer ${settings.PLUNK_PUBLIC_KEY}`, 'idempotency-key': id }
      const body = { event: name, email }
      const reply = await call({ to: 'track an event', method: 'POST', path: '/v1/track', headers, body }, deadline)
      if (reply.is !== 'answered') return reply
      if (reply.status === 200 && idAt(reply.json, 'data', 'event') !== undefined) return { is: 'delivered' }
      if (reply.status === 409 && textAt(reply.json, 'error', 'code') === 'IDEMPOTENCY_KEY_REUSED') {
        // What failed there with 5xx Plunk goes on with by itself, as it says. Without a status the first one still runs.
        const status = memberAt(reply.json, 'error', 'details', 'originalStatusCode')
        return typeof status === 'number' ? { is: 'delivered' } : { is: 'unclear', why: reply.summary }
      }
      return failed(reply)
    },

    async check(deadline) {
      const query = { limit: '1' }
      const reply = await call({ to: 'check the secret key', method: 'GET', path: '/contacts', query }, deadline)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && Array.isArray(memberAt(reply.json, 'data')) ? null : failed(reply)
    },
  }
}

/** 422 names the members that are wrong; the address is the only one of a visitor's that Plunk checks. */
function refusesAddress({ status, json }: Reply): boolean {
  const errors = memberAt(json, 'error', 'errors')
  return status === 422 && Array.isArray(errors) && errors.some(each => textAt(each, 'field') === 'email')
}

/** 402: the project has used up what it pays for, which passes. */
const failed = (reply: Reply): Failure =>
  reply.status === 402 ? { is: 'unreached', why: reply.summary } : judge(reply)
