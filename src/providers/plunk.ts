import { optional, required, type ValuesOf, word, yesOrNo } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import type { Contact } from '../waitlist/rules/contact.ts'
import { type Answer, idAt, judge, judgeDelivery, memberAt, textAt } from './answer.ts'
import { base, DAY, SECOND, type Vendor } from './vendor.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

const settings = {
  PLUNK_SECRET_KEY: required(word, 'Secret key (sk_…), for contacts.', 'Plunk: Project settings, API keys.'),
  PLUNK_PUBLIC_KEY: required(word, 'Public key (pk_…), for events.', 'Plunk: Project settings, API keys.'),
  PLUNK_SUBSCRIBED: optional(
    yesOrNo,
    'Whether a new contact is subscribed to marketing mails; Plunk subscribes it unless this is false.',
    'Your choice.',
  ),
  PLUNK_BASE_URL: base('https://next-api.useplunk.com'),
}
type Settings = ValuesOf<typeof settings>

export const plunk: Vendor<typeof settings> = {
  title: 'Plunk',
  settings,
  // 1,000 a minute, and 50 that change contacts a second: the slower one, evenly.
  rate: { calls: 16, per: SECOND, connections: 10 },
  promises: { newness: 'best effort', scope: 'account', recognisesOwn: true, repeatable: DAY, removal: 'at once' },
  joins: [],
  contradiction: (_, eventName) =>
    /^(?:email\.|contact\.(?:un)?subscribed$|segment\..*\.(?:entry|exit)$)/.test(eventName)
      ? 'EVENT_NAME must not be one of Plunk itself: email.…, contact.subscribed, contact.unsubscribed, segment.…'
      : null,
  client,
}

interface Found {
  readonly is: 'found'
  /** Undefined: too many others were found before it. */
  readonly id: string | undefined
  readonly createdAt: string | undefined
}

/**
 * https://docs.useplunk.com/api-reference and the source, https://github.com/useplunk/plunk. A creation is an upsert that
 * would change an existing contact, so the address is looked up first. Events need the public key.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.PLUNK_BASE_URL,
    headers: { authorization: `Bearer ${settings.PLUNK_SECRET_KEY}` },
  })

  /** Whether the project has the address. */
  async function knows(email: string, attempt: Attempt): Promise<boolean | Failure> {
    const body = { emails: [email] }
    const reply = await call(
      { to: 'look an address up', method: 'POST', safe: true, path: '/contacts/lookup', body },
      attempt,
    )
    const isIn = (list: string) => memberAt(reply.json, list, 0) === email
    return reply.status !== 200 || isIn('found') === isIn('notFound') ? failed(reply) : isIn('found')
  }

  /** The contact, if it is among the newest that have the address or contain it: nothing finds just the one. */
  async function find(email: string, attempt: Attempt): Promise<Found | Failure> {
    const query = { search: email, limit: '20' }
    const reply = await call({ to: 'find a contact', method: 'GET', path: '/contacts', query }, attempt)
    const found = memberAt(reply.json, 'data')
    if (reply.status !== 200 || !Array.isArray(found)) return failed(reply)
    const match: unknown = found.find(each => textAt(each, 'email') === email)
    return { is: 'found', id: idAt(match, 'id'), createdAt: textAt(match, 'createdAt') }
  }

  /** For an existing contact: in doubt, checks whether it is ours. */
  async function existing(contact: Contact, attempt: Attempt): Promise<Creation> {
    const found = await find(contact.email, attempt)
    if (found.is !== 'found') return found
    return { is: 'existing', providerId: found.id, ours: isYoungerThanSignup(found.createdAt, contact) }
  }

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email, source } = contact
      const isKnown = await knows(email, attempt)
      if (typeof isKnown !== 'boolean') return isKnown
      if (isKnown) return doubt ? existing(contact, attempt) : { is: 'existing' }

      const { first, last } = splitName(name)
      const body = {
        email,
        data: { firstName: first, lastName: last, ...source },
        subscribed: settings.PLUNK_SUBSCRIBED,
      }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/contacts', body }, attempt)
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
      if (reply.status === 200 && idAt(reply.json, 'data', 'event') !== undefined) return { is: 'delivered' }
      if (reply.status === 409 && textAt(reply.json, 'error', 'code') === 'IDEMPOTENCY_KEY_REUSED') {
        const status = memberAt(reply.json, 'error', 'details', 'originalStatusCode')
        // Without a status the first request is still under way. A 4xx frees the key.
        if (typeof status !== 'number') return { is: 'unclear', why: reply.summary }
        if (status < 400) return { is: 'delivered' }
        // The event may or may not exist, and the key is taken.
        return { is: 'refused', why: `${reply.summary}: its first answer was ${status}, so replay it after 24 hours` }
      }
      return failed(reply, judgeDelivery)
    },

    async remove(email, attempt) {
      const isKnown = await knows(email, attempt)
      if (isKnown === false) return { is: 'absent' }
      const found = isKnown === true ? await find(email, attempt) : isKnown
      if (found.is !== 'found') return found
      if (found.id === undefined) return { is: 'by hand', how: 'delete the contact in Plunk, under Contacts' }
      const path = `/contacts/${encodeURIComponent(found.id)}`
      const reply = await call({ to: 'delete a contact', method: 'DELETE', path, statusAlone: true }, attempt)
      return reply.status === 204 ? { is: 'removed' } : failed(reply)
    },

    async check(attempt) {
      const query = { limit: '1' }
      const reply = await call({ to: 'check the secret key', method: 'GET', path: '/contacts', query }, attempt)
      return reply.status === 200 && Array.isArray(memberAt(reply.json, 'data')) ? null : failed(reply)
    },
  }
}

/** A 422 names the invalid members. The address is the only value from the visitor that Plunk checks. */
function refusesAddress({ status, json }: Answer): boolean {
  const errors = memberAt(json, 'error', 'errors')
  return status === 422 && Array.isArray(errors) && errors.some(each => textAt(each, 'field') === 'email')
}

/** 402: the project has used up its plan, which is temporary. */
const failed = <Other = Failure>(
  reply: Answer,
  otherwise: (reply: Answer) => Failure | Other = judge,
): Failure | Other => (reply.status === 402 ? { is: 'unreached', why: reply.summary } : otherwise(reply))
