import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'

const TOKEN = 'hubspot-token-of-the-test'
const EVENT = 'pe1234_joined'
const BASIS = 'Freely given consent from contact'
const LISTS = ['7', '8']
/** One that HubSpot fills. */
const ACTIVE_LIST = '9'

export const hubspotSettings = (url: string) => ({
  HUBSPOT_TOKEN: TOKEN,
  HUBSPOT_PROPERTY: 'waitlist=early access',
  HUBSPOT_EVENT: EVENT,
  HUBSPOT_BASE_URL: url,
})
/** What the settings add that are not set above. */
export const hubspotMore = {
  HUBSPOT_LIST_IDS: LISTS.join(),
  HUBSPOT_LIFECYCLE_STAGE: 'subscriber',
  HUBSPOT_LEGAL_BASIS: `${BASIS};Not applicable`,
}

interface HubspotContact {
  readonly id: string
  readonly properties: Record<string, unknown>
  readonly createdAt: string
  readonly updatedAt: string
  readonly archived: boolean
}

/*
 * Facts of HubSpot's OpenAPI documents, version 2026-09, of 2026-08-21: contacts, properties, lists and custom events, as far
 * as we send or read them. They name `associations` as required for a creation; the reference and the official client leave
 * it out.
 */

export const hubspotError = (status: number, category: string, message: string, more: object = {}): Said => ({
  status,
  body: { status: 'error', category, message, correlationId: 'aeb5f871-7f07-4993-9211-075dc63e7cbf', ...more },
})
const malformed = hubspotError(400, 'VALIDATION_ERROR', 'Invalid input JSON')
const notFound = hubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found')

/** Which properties are wrong stands in the text alone. */
export const notValid = (...wrong: readonly { name: string; error: string }[]): Said => {
  const results = wrong.map(each => ({ isValid: false, message: `${each.name} x@example.com is invalid`, ...each }))
  return hubspotError(400, 'VALIDATION_ERROR', `Property values were not valid: ${JSON.stringify(results)}`)
}

/**
 * As in HubSpot's reference of contacts, properties, lists and custom events (2026-09): properties must exist, an address
 * is unique, and of events of one type with one UUID within a year the first counts. Its account has a rule for names.
 */
export function hubspotFake(): VendorFake {
  const { contacts, find, start, facts } = contactBook<HubspotContact>()
  /** With the values that they take; none: any. */
  const properties = new Map<string, readonly string[]>([
    ...['email', 'firstname', 'lastname', 'waitlist', 'createdate'].map(name => [name, []] as const),
    ['lifecyclestage', ['subscriber', 'lead', '12345']],
    ['hs_legal_basis', [BASIS, 'Legitimate interest – prospect/lead', 'Not applicable']],
  ])
  const lists = new Map(LISTS.map(id => [id, new Set<string>()]))
  const events = new Set<string>()
  let ids = 1_000

  function make(values: Record<string, unknown>, createdAt = new Date().toISOString()): HubspotContact {
    const contact = { id: String(++ids), properties: values, createdAt, updatedAt: createdAt, archived: false }
    contacts.set(String(values.email).toLowerCase(), contact)
    return contact
  }

  function create({ properties: values }: Received['json']): Said {
    const all = Object.entries<string>(values)
    const wrong = (error: string, is: (name: string, value: string) => boolean) =>
      all.filter(([name, value]) => is(name, value)).map(([name]) => ({ name, error }))
    const isName = (name: string) => name === 'firstname' || name === 'lastname'
    for (const found of [
      wrong('PROPERTY_DOESNT_EXIST', name => !properties.has(name)),
      wrong('INVALID_OPTION', (name, value) => !takes(name, value)),
      wrong('INVALID_ALPHA', (name, value) => isName(name) && /[^\p{L} ]/u.test(value)),
      wrong('INVALID_EMAIL', (name, value) => name === 'email' && value.startsWith('refused')),
    ]) {
      if (found.length > 0) return notValid(...found)
    }
    const known = contacts.get(values.email.toLowerCase())
    if (known === undefined) return { status: 201, body: make(values) }
    return hubspotError(409, 'CONFLICT', `Contact already exists. Existing ID: ${known.id}`)
  }

  function takes(name: string, value: string): boolean {
    const options = properties.get(name) ?? []
    return options.length === 0 || value.split(';').every(each => options.includes(each))
  }

  function property(name: string): Said {
    const options = properties.get(name)?.map(value => ({ label: `${value}.`, value, hidden: false }))
    return options === undefined ? notFound : { status: 200, body: { name, options } }
  }

  function list(listId: string): Said {
    if (!lists.has(listId) && listId !== ACTIVE_LIST) return notFound
    const processingType = listId === ACTIVE_LIST ? 'DYNAMIC' : 'MANUAL'
    return { status: 200, body: { list: { listId, processingType, objectTypeId: '0-1' } } }
  }

  function add(listId: string, ids: readonly string[]): Said {
    const members = lists.get(listId)
    if (listId === ACTIVE_LIST) return hubspotError(400, 'VALIDATION_ERROR', 'The list is processed by HubSpot.')
    if (members === undefined) return notFound
    const missing = ids.filter(id => find(each => each.id === id) === undefined)
    const added = ids.filter(id => !missing.includes(id) && !members.has(id))
    for (const id of added) members.add(id)
    return { status: 200, body: { recordsIdsAdded: added, recordIdsMissing: missing } }
  }

  function get(id: string, { idProperty, properties: wanted = '', ...more }: Received['query']): Said {
    if (Object.keys(more).length > 0) return malformed
    const found = find(each => (idProperty === 'email' ? each.properties.email : each.id) === id)
    if (found === undefined) return notFound
    const all: Record<string, unknown> = { ...found.properties, createdate: found.createdAt }
    const shown = Object.fromEntries(wanted.split(',').map(name => [name, all[name]]))
    return { status: 200, body: { ...found, properties: shown } }
  }

  /** By an address that is not there, it would be blocked for good. */
  function purge({ objectId }: Received['json']): Said {
    const found = find(({ id }) => id === objectId)
    if (found === undefined) return notFound
    contacts.delete(String(found.properties.email).toLowerCase())
    return { status: 204 }
  }

  function send({ eventName, email, objectId, uuid, occurredAt }: Received['json']): Said {
    if (eventName !== EVENT) return hubspotError(400, 'VALIDATION_ERROR', 'The event does not exist')
    const isUuid = uuid === undefined || /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(uuid)
    const isTime = occurredAt === undefined || !Number.isNaN(Date.parse(occurredAt))
    const isOne = (email === undefined) !== (objectId === undefined)
    if (!isUuid || !isTime || !isOne) return malformed
    const contact = find(each => each.id === objectId || each.properties.email === email)
    const key = uuid ?? `random-${++ids}`
    if (!events.has(key)) start(String(contact?.properties.email ?? email))
    events.add(key)
    return { status: 204 }
  }

  const listsOf = (email: string) => [...lists].filter(([, ids]) => ids.has(contacts.get(email)?.id ?? ''))
  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers.authorization === `Bearer ${TOKEN}`
          ? undefined
          : hubspotError(401, 'INVALID_AUTHENTICATION', 'Authentication credentials not found.'),
      routes: {
        'POST /crm/objects/2026-09/contacts': ({ json }) => create(json),
        'GET /crm/objects/2026-09/contacts': ({ query }) => ({
          status: 200,
          body: { results: [...contacts.values()].slice(0, Number(query.limit)) },
        }),
        'POST /crm/objects/2026-09/contacts/gdpr-delete': ({ json }) => purge(json),
        'GET /crm/objects/2026-09/contacts/{id}': ({ at, query }) => get(at.id!, query),
        'GET /crm/properties/2026-09/contacts/{name}': ({ at }) => property(at.name!),
        'GET /crm/lists/2026-09/{id}': ({ at }) => list(at.id!),
        'PUT /crm/lists/2026-09/{id}/memberships/add': ({ at, json }) => add(at.id!, json),
        'POST /events/custom/2026-09/send': ({ json }) => send(json),
      },
    }),
    had: email => void make({ email, firstname: 'Old' }, '2020-01-01T00:00:00.000Z'),
    kept: email => (contacts.has(email) ? { ...contacts.get(email), lists: listsOf(email).length } : undefined),
    joined: email => listsOf(email).length === lists.size,
  }
}
