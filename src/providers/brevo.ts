import { numbers, optional, required, type ValuesOf, word } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import { memberAt, textAt } from '../outbound/reply.ts'
import type { Contact } from '../signup/contact.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import { base, type Connect, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, INVALID, isYoungerThanSignup, splitName } from './vendor-client.ts'

const settings = {
  BREVO_API_KEY: required(word, 'API key.', 'Brevo: Settings, SMTP & API, API keys.'),
  BREVO_LIST_IDS: optional(numbers, 'Lists to add the contact to.', 'Brevo: Contacts, Lists; the number after #.'),
  BREVO_BASE_URL: base('https://api.brevo.com'),
}
type Settings = ValuesOf<typeof settings>

export const brevo: Vendor<typeof settings> = {
  title: 'Brevo',
  settings,
  rate: { calls: 10, per: 1_000, connections: 10 },
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: 0,
    namesEvents: true,
    removal: 'at once',
  },
  client,
}

/**
 * https://developers.brevo.com/reference: without `updateEnabled` a known address is refused, and nothing about it
 * changes, not even its lists. Attributes that the account does not have are ignored.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { call, get, post } = connect({
    base: settings.BREVO_BASE_URL,
    headers: { 'api-key': settings.BREVO_API_KEY },
    waitFields: ['x-sib-ratelimit-reset', 'retry-after'],
  })
  const { BREVO_LIST_IDS: lists } = settings

  const find = ({ email }: Contact, attempt: Attempt) =>
    get('find a contact', `/v3/contacts/${encodeURIComponent(email)}`, attempt)

  /** Only the lists that are missing cost a call, so an attempt goes on where the last one ended. */
  async function join(contact: Contact, attempt: Attempt): Promise<Failure | null> {
    const found = await find(contact, attempt)
    // It is only blocked there, or deleted meanwhile.
    if (found.status === 404) return null
    const listIds = found.list('listIds')
    if (listIds === undefined) return found.failure
    const missing = lists?.filter(list => !listIds.includes(list)) ?? []
    // An update of the contact could name all of them at once, but is reported to take it off its other lists.
    for (const list of missing) {
      const path = `/v3/contacts/lists/${list}/contacts/add`
      const reply = await post(`add to the list ${list}`, path, { emails: [contact.email] }, attempt)
      if (reply.status !== 201 && !isOnList(reply)) return reply.failure
    }
    return null
  }

  return {
    async createContact(contact, doubt, attempt) {
      const { first, last } = splitName(contact.name)
      const attributes = { FIRSTNAME: first, LASTNAME: last }
      const body = { email: contact.email, attributes, listIds: lists, updateEnabled: false }
      const reply = await post('create a contact', '/v3/contacts', body, attempt)
      const id = reply.id('id')
      if (reply.status === 201 && id !== undefined) return { is: 'created', providerId: id }
      if (!isKnown(reply)) return refusedOr(reply)
      if (!doubt) return { is: 'existing' }
      const found = await find(contact, attempt)
      // One of ours would be found.
      if (found.status === 404) return { is: 'existing', ours: false }
      const providerId = found.id('id')
      if (found.status !== 200 || providerId === undefined) return found.failure
      return { is: 'existing', providerId, ours: isYoungerThanSignup(found.text('createdAt'), contact) }
    },

    join: lists === undefined ? undefined : join,

    async automation({ name, contact: { email, providerId, source }, code }, attempt) {
      const body = {
        // Letters, digits, - and _ are allowed.
        event_name: name.replaceAll(/[^A-Za-z0-9_-]/g, '_'),
        // By its address, a contact that was deleted meanwhile would be created anew; not so by its id.
        identifiers: providerId === undefined ? { email_id: email } : { contact_id: Number(providerId) },
        event_properties: code === undefined ? source : { ...source, code },
      }
      const reply = await post('send an event', '/v3/events', body, attempt)
      return reply.deliveredIf(reply.ok)
    },

    async remove(email, attempt) {
      const path = `/v3/contacts/${encodeURIComponent(email)}`
      const query = { identifierType: 'email_id' }
      const to = 'delete a contact'
      const reply = await call({ to, method: 'DELETE', path, query, statusAlone: true }, attempt)
      if (reply.status === 204) return { is: 'removed' }
      const isAbsent = reply.status === 404 && reply.at('code') === 'document_not_found'
      return isAbsent ? { is: 'absent' } : reply.failure
    },

    /** What is under /v3/contacts may be asked often. */
    async check(attempt) {
      const attributes = await get('check the key', '/v3/contacts/attributes', attempt)
      if (attributes.list('attributes') === undefined) return attributes.failure
      for (const list of lists ?? []) {
        const reply = await get(`check the list ${list}`, `/v3/contacts/lists/${list}`, attempt)
        if (reply.status !== 200 || reply.id('id') !== String(list)) return reply.failure
      }
      return null
    },
  }
}

/** The metadata is newer than the code, and has been seen with a different one. */
const isKnown = ({ status, json }: Answer): boolean =>
  status === 400 &&
  (memberAt(json, 'code') === 'duplicate_parameter' ||
    memberAt(json, 'metadata', 'duplicate_identifiers') !== undefined)

/** Another tool was faster. */
const isOnList = ({ status, json }: Answer): boolean =>
  status === 400 && /^contact already in list/i.test(textAt(json, 'message') ?? '')

/** The code is that of every wrong parameter, such as our lists; only these words mean the address. */
function refusedOr(reply: Answer): Creation {
  const isAddress =
    reply.status === 400 &&
    reply.at('code') === 'invalid_parameter' &&
    /^invalid email address\.?$/i.test(reply.text('message') ?? '')
  return isAddress ? INVALID : reply.failure
}
