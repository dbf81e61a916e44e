import { numbers, optional, required, type ValuesOf, word } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import { memberAt, type Refused } from '../outbound/reply.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import { base, type Connect, type Fields, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, forAll, INVALID, isYoungerThanSignup, misconfigured, splitName } from './vendor-client.ts'

const settings = {
  HUBSPOT_TOKEN: required(
    word,
    'Service key with the scopes crm.objects.contacts.read and .write; for lists crm.lists.read and .write, too.',
    'HubSpot: Development, Keys, Service keys, Create service key.',
  ),
  HUBSPOT_LIST_IDS: optional(
    numbers,
    'Static lists (segments) to add the contact to.',
    'HubSpot: CRM, Segments, Details of the segment; the ILS id.',
  ),
  HUBSPOT_BASE_URL: base('https://api.hubapi.com'),
}
type Settings = ValuesOf<typeof settings>

export const hubspot: Vendor<typeof settings> = {
  title: 'HubSpot',
  settings,
  rate: { calls: 100, per: 10_000, connections: 10 },
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: null,
    namesEvents: false,
    removal: 'later',
  },
  takesFields: true,
  client,
}

/** Every path names the API version that it was written for. */
const VERSION = '2026-09'
const CONTACTS = `/crm/objects/${VERSION}/contacts`
const LISTS = `/crm/lists/${VERSION}`
/** What to do about an address that the contact of another one has, too. */
const SECONDARY =
  'look for the address in HubSpot, under Contacts: it is a secondary one of a contact with another address'
/** The object type of contacts. */
const CONTACT = '0-1'

/**
 * https://developers.hubspot.com/docs/api-reference: contacts and lists. A 409 means a known address; its message contains
 * the id. Fields are set on creation, so that a workflow can enrol on them.
 */
function client(settings: Settings, connect: Connect, fields: Fields): VendorClient {
  const { HUBSPOT_LIST_IDS: lists = [] } = settings
  const { call, get, post } = connect({
    base: settings.HUBSPOT_BASE_URL,
    headers: { authorization: `Bearer ${settings.HUBSPOT_TOKEN}` },
  })

  function find(email: string, id: string | undefined, attempt: Attempt): Promise<Answer> {
    const query = { properties: 'createdate', ...(id === undefined && { idProperty: 'email' }) }
    return get('get a contact', `${CONTACTS}/${encodeURIComponent(id ?? email)}`, attempt, query)
  }

  /** Harmless when repeated. */
  const addToLists = (id: string, attempt: Attempt) =>
    forAll(lists, async (list): Promise<Failure | Refused | null> => {
      const path = `${LISTS}/${list}/memberships/add`
      const reply = await call({ to: `add to list ${list}`, method: 'PUT', path, body: [id] }, attempt)
      const missing = reply.at('recordIdsMissing')
      if (reply.status !== 200 || !Array.isArray(missing)) return reply.refusal
      if (missing.length === 0) return null
      return { is: 'unreached', why: `${reply.summary}: the contact is not known there yet` }
    })

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email } = contact
      const { first, last } = splitName(name)
      const create = (properties: Readonly<Record<string, string | undefined>>) =>
        post('create a contact', CONTACTS, { properties }, attempt)
      const properties = { ...fields, email, firstname: first, lastname: last }
      let reply = await create(properties)
      // What one visitor typed as a name must not count as a wrong setting.
      const refused = refusedNames(reply)
      if (refused !== null) reply = await create({ ...properties, ...refused })
      const id = reply.id('id')
      if (reply.status === 201 && id !== undefined) return { is: 'created', providerId: id }
      if (refusesAddress(reply)) return INVALID
      if (reply.status !== 409 || reply.text('category') !== 'CONFLICT') return reply.failure
      const known = /Existing ID:\s*(\d+)/i.exec(reply.text('message') ?? '')?.[1]
      if (!doubt) return { is: 'existing', providerId: known }

      const found = await find(email, known, attempt)
      const providerId = found.id('id')
      const ours = isYoungerThanSignup(found.text('createdAt'), contact)
      if (found.status !== 200 || providerId === undefined || ours === undefined) return found.failure
      return { is: 'existing', providerId, ours }
    },

    join:
      lists.length === 0
        ? undefined
        : async ({ email, providerId }, attempt) => {
            if (providerId !== undefined) return addToLists(providerId, attempt)
            const found = await find(email, undefined, attempt)
            const id = found.id('id')
            return found.status === 200 && id !== undefined ? addToLists(id, attempt) : found.failure
          },
    joinsLast: true,

    automation: null,

    async remove(email, attempt) {
      const query = { properties: 'email', idProperty: 'email' }
      const found = await get('find a contact', `${CONTACTS}/${encodeURIComponent(email)}`, attempt, query)
      // Every answer of HubSpot has one; a 404 of a wrong address has not.
      if (found.status === 404 && found.text('correlationId') !== undefined) return { is: 'absent' }
      const objectId = found.id('id')
      const primary = found.text('properties', 'email')
      if (found.status !== 200 || objectId === undefined || primary === undefined) return found.failure
      if (primary.toLowerCase() !== email) return { is: 'by hand', how: SECONDARY }
      // By its address, one who is gone meanwhile would be blocked for good.
      const path = `${CONTACTS}/gdpr-delete`
      const to = 'delete a contact permanently'
      const reply = await call({ to, method: 'POST', path, body: { objectId }, statusAlone: true }, attempt)
      return reply.removedIf(reply.status === 204)
    },

    async check(attempt) {
      const reply = await get('check the token', CONTACTS, attempt, { limit: '1', properties: 'createdate' })
      if (reply.list('results') === undefined) return reply.failure
      for (const list of lists) {
        const reply = await get(`check the list ${list}`, `${LISTS}/${list}`, attempt)
        if (reply.status !== 200) return reply.failure
        const { processingType, objectTypeId } = Object(reply.at('list'))
        if (processingType === 'DYNAMIC' || objectTypeId !== CONTACT) {
          return misconfigured(`check the list ${list}: it is no static list of contacts`)
        }
      }
      return null
    },
  }
}

interface InvalidProperty {
  readonly name: unknown
  readonly error: unknown
}

/**
 * The message has a JSON array of the invalid properties: `Property values were not valid: [{…}]`. The list of errors, where
 * HubSpot documents that they stand, is read too.
 */
function invalidProperties(reply: Answer): readonly InvalidProperty[] {
  if (reply.status !== 400) return []
  const errors = reply.at('errors')
  const listed = (Array.isArray(errors) ? errors : []).map(each => ({
    name: memberAt(each, 'context', 'propertyName', 0),
    error: memberAt(each, 'code'),
  }))
  const message = reply.text('message') ?? ''
  try {
    const said: unknown = JSON.parse(message.slice(message.indexOf('[')))
    if (!Array.isArray(said)) return listed
    return said.map(each => ({ name: memberAt(each, 'name'), error: memberAt(each, 'error') }))
  } catch {
    return listed
  }
}

const refusesAddress = (reply: Answer): boolean =>
  invalidProperties(reply).some(({ name, error }) => name === 'email' && error === 'INVALID_EMAIL')

/** The names to leave out, if nothing else is wrong: an account may have rules for them, such as letters only. */
function refusedNames(reply: Answer): Readonly<Record<string, undefined>> | null {
  const names = invalidProperties(reply).map(({ name }) => name)
  const areNames = names.length > 0 && names.every(name => name === 'firstname' || name === 'lastname')
  return areNames ? Object.fromEntries(names.map(name => [name, undefined])) : null
}
