import { optional, required, type ValuesOf, word, yesOrNo } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import { idAt, memberAt, textAt } from '../outbound/reply.ts'
import type { Contact } from '../signup/contact.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import { base, type Connect, DAY, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, INVALID, isYoungerThanSignup, splitName } from './vendor-client.ts'

const settings = {
  PLUNK_SECRET_KEY: required(word, 'Secret key (sk_…), for contacts.', 'Plunk: Project settings, API keys.'),
  PLUNK_PUBLIC_KEY: required(word, 'Public key (pk_…), for events.', 'Plunk: Project settings, API keys.'),
  PLUNK_SUBSCRIBED: optional(
    yesOrNo,
    'Whether a new contact is subscribed to marketing mails; Plunk subscribes it unless this is false.',
  ),
  PLUNK_BASE_URL: base('https://next-api.useplunk.com'),
}
type Settings = ValuesOf<typeof settings>

export const plunk: Vendor<typeof settings> = {
  title: 'Plunk',
  settings,
  // 1,000 a minute, and 50 that change contacts a second: the slower one, evenly.
  rate: { calls: 16, per: 1_000, connections: 10 },
  promises: {
    newness: 'best effort',
    scope: 'account',
    recognisesOwn: true,
    repeatable: DAY,
    namesEvents: true,
    removal: 'at once',
  },
  contradiction(_, events) {
    const own = /^(?:email\.|contact\.(?:un)?subscribed$|segment\..*\.(?:entry|exit)$)/
    const taken = Object.entries(events).find(([, name]) => own.test(name))
    return taken === undefined
      ? null
      : `${taken[0]} must not be one of Plunk itself: email.…, contact.subscribed, contact.unsubscribed, segment.…`
  },
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
  const { call, get, post } = connect({
    base: settings.PLUNK_BASE_URL,
    headers: { authorization: `Bearer ${settings.PLUNK_SECRET_KEY}` },
    // The project has used up its plan, which is temporary.
    means: ({ status, summary }) => status === 402 && { is: 'unreached', why: summary },
  })

  /** Whether the project has the address. */
  async function knows(email: string, attempt: Attempt): Promise<boolean | Failure> {
    const body = { emails: [email] }
    const reply = await call(
      { to: 'look an address up', method: 'POST', safe: true, path: '/contacts/lookup', body },
      attempt,
    )
    const isIn = (list: string) => reply.at(list, 0) === email
    return reply.status !== 200 || isIn('found') === isIn('notFound') ? reply.failure : isIn('found')
  }

  /** The contact, if it is among the newest that have the address or contain it: nothing finds just the one. */
  async function find(email: string, attempt: Attempt): Promise<Found | Failure> {
    const reply = await get('find a contact', '/contacts', attempt, { search: email, limit: '20' })
    const found = reply.list('data')
    if (found === undefined) return reply.failure
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
      const reply = await post('create a contact', '/contacts', body, attempt)
      const providerId = reply.id('id')
      const isNew = reply.at('_meta', 'isNew')
      if (reply.status === 201 && isNew === true && providerId !== undefined) return { is: 'created', providerId }
      // Somebody else added it after the lookup.
      if (reply.status === 200 && isNew === false && providerId !== undefined) {
        return doubt ? existing(contact, attempt) : { is: 'existing', providerId }
      }
      return refusesAddress(reply) ? INVALID : reply.failure
    },

    async automation({ id, name, contact: { email }, code }, attempt) {
      const headers = { authorization: `Bearer ${settings.PLUNK_PUBLIC_KEY}`, 'idempotency-key': id }
      const body = { event: name, email, ...(code !== undefined && { data: { code } }) }
      const reply = await call({ to: 'track an event', method: 'POST', path: '/v1/track', headers, body }, attempt)
      if (reply.status === 200 && reply.id('data', 'event') !== undefined) return { is: 'delivered' }
      if (reply.status === 409 && reply.text('error', 'code') === 'IDEMPOTENCY_KEY_REUSED') {
        const status = reply.at('error', 'details', 'originalStatusCode')
        // Without a status the first request is still under way. A 4xx frees the key.
        if (typeof status !== 'number') return { is: 'unclear', why: reply.summary }
        if (status < 400) return { is: 'delivered' }
        // The event may or may not exist, and the key is taken.
        return { is: 'refused', why: `${reply.summary}: its first answer was ${status}, so replay it after 24 hours` }
      }
      return reply.refusal
    },

    async remove(email, attempt) {
      const isKnown = await knows(email, attempt)
      if (isKnown === false) return { is: 'absent' }
      const found = isKnown === true ? await find(email, attempt) : isKnown
      if (found.is !== 'found') return found
      if (found.id === undefined) return { is: 'by hand', how: 'delete the contact in Plunk, under Contacts' }
      const path = `/contacts/${encodeURIComponent(found.id)}`
      const reply = await call({ to: 'delete a contact', method: 'DELETE', path, statusAlone: true }, attempt)
      return reply.removedIf(reply.status === 204)
    },

    async check(attempt) {
      const reply = await get('check the secret key', '/contacts', attempt, { limit: '1' })
      return reply.status === 200 && Array.isArray(reply.at('data')) ? null : reply.failure
    },
  }
}

/** A 422 names the invalid members. The address is the only value from the visitor that Plunk checks. */
function refusesAddress({ status, json }: Answer): boolean {
  const errors = memberAt(json, 'error', 'errors')
  return status === 422 && Array.isArray(errors) && errors.some(each => textAt(each, 'field') === 'email')
}
