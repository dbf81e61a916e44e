import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { documented } from '../harness/wire.ts'
import { hubspotContract } from './hubspot.contract.ts'

const TOKEN = 'hubspot-token-of-the-test'
const EVENT = 'pe1234_joined'
const BASIS = 'Freely given consent from contact'

export const hubspotSettings = (url: string) => ({
  HUBSPOT_TOKEN: TOKEN,
  HUBSPOT_PROPERTY: 'waitlist=early access',
  HUBSPOT_EVENT: EVENT,
  HUBSPOT_BASE_URL: url,
})

/** What the settings add that are not set above. */
export const hubspotMore = {
  HUBSPOT_LIST_IDS: '7, 8',
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

export const hubspotError = (status: number, category: string, message: string, more: object = {}): Said => ({
  status,
  body: { status: 'error', category, message, correlationId: 'aeb5f871-7f07-4993-9211-075dc63e7cbf', ...more },
})

const malformed = hubspotError(400, 'VALIDATION_ERROR', 'Invalid input JSON')

export interface HubspotFake extends VendorFake {
  /** Static lists of contacts, with the ids of their members. */
  readonly lists: Map<string, Set<string>>
}

/** Which properties are wrong stands in the text alone. */
export const notValid = (...wrong: readonly { name: string; error: string }[]): Said => {
  const results = wrong.map(each => ({ isValid: false, message: `${each.name} x@example.com is invalid`, ...each }))
  return hubspotError(400, 'VALIDATION_ERROR', `Property values were not valid: ${JSON.stringify(results)}`)
}

/**
 * As in HubSpot's reference of contacts, properties, lists and custom events (2026-09): properties must exist, an address
 * is unique, and of events of one type with one UUID within a year the first counts. Its account has a rule for names.
 */
export function hubspotFake(): HubspotFake {
  const contacts = new Map<string, HubspotContact>()
  /** With the values that they take; none: any. */
  const properties = new Map<string, readonly string[]>([
    ...['email', 'firstname', 'lastname', 'waitlist', 'createdate'].map(name => [name, []] as const),
    ['lifecyclestage', ['subscriber', 'lead', '12345']],
    ['hs_legal_basis', [BASIS, 'Legitimate interest – prospect/lead', 'Not applicable']],
  ])
  const lists = new Map(['7', '8'].map(id => [id, new Set<string>()]))
  const events = new Set<string>()
  const starts = new Map<string, number>()
  let ids = 1_000

  function make(values: Record<string, unknown>, createdAt = new Date().toISOString()): HubspotContact {
    const contact = { id: String(++ids), properties: values, createdAt, updatedAt: createdAt, archived: false }
    contacts.set(String(values.email).toLowerCase(), contact)
    return contact
  }

  function create({ properties: values, ...more }: Asked['json']): Said {
    if (Object.keys(more).length > 0) return malformed
    const unknown = Object.keys(values).filter(name => !properties.has(name))
    if (unknown.length > 0) return notValid(...unknown.map(name => ({ name, error: 'PROPERTY_DOESNT_EXIST' })))
    if (Object.values(values).some(value => typeof value !== 'string')) return malformed
    const wrong = Object.entries<string>(values).filter(([name, value]) => !takes(name, value))
    if (wrong.length > 0) return notValid(...wrong.map(([name]) => ({ name, error: 'INVALID_OPTION' })))
    const names = ['firstname', 'lastname'].filter(name => /[^\p{L} ]/u.test(values[name] ?? ''))
    if (names.length > 0) return notValid(...names.map(name => ({ name, error: 'INVALID_ALPHA' })))
    const email = values.email.toLowerCase()
    if (email.startsWith('refused')) return notValid({ name: 'email', error: 'INVALID_EMAIL' })
    const known = contacts.get(email)
    if (known !== undefined) {
      return hubspotError(409, 'CONFLICT', `Contact already exists. Existing ID: ${known.id}`)
    }
    return { status: 201, body: make(values) }
  }

  function takes(name: string, value: string): boolean {
    const options = properties.get(name) ?? []
    return options.length === 0 || value.split(';').every(each => options.includes(each))
  }

  function property(name: string): Said {
    const options = properties.get(name)?.map(value => ({ label: `${value}.`, value, hidden: false }))
    if (options === undefined) return hubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found')
    const type = options.length > 0 ? 'enumeration' : 'string'
    const body = {
      name,
      type,
      options,
      label: name,
      description: '',
      fieldType: 'text',
      groupName: 'contactinformation',
    }
    return { status: 200, body }
  }

  /** List 9 is an active one. */
  function list(listId: string): Said {
    if (!lists.has(listId) && listId !== '9') return hubspotError(404, 'OBJECT_NOT_FOUND', 'list not found')
    const processingType = listId === '9' ? 'DYNAMIC' : 'MANUAL'
    const more = { name: 'A list', objectTypeId: '0-1', listVersion: 1, processingStatus: 'COMPLETE' }
    return { status: 200, body: { list: { listId, processingType, ...more } } }
  }

  function add(listId: string, ids: readonly string[]): Said {
    const members = lists.get(listId)
    if (listId === '9') return hubspotError(400, 'VALIDATION_ERROR', 'The list is processed by HubSpot.')
    if (members === undefined) return hubspotError(404, 'OBJECT_NOT_FOUND', 'list not found')
    const missing = ids.filter(id => ![...contacts.values()].some(each => each.id === id))
    const added = ids.filter(id => !missing.includes(id) && !members.has(id))
    for (const id of added) members.add(id)
    return { status: 200, body: { recordsIdsAdded: added, recordIdsMissing: missing, recordIdsRemoved: [] } }
  }

  function get(id: string, { idProperty, properties: wanted, ...more }: Asked['query']): Said {
    if (Object.keys(more).length > 0) return malformed
    const found = [...contacts.values()].find(each => (idProperty === 'email' ? each.properties.email : each.id) === id)
    return found === undefined
      ? hubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found')
      : { status: 200, body: { ...found, properties: shown(found, wanted!) } }
  }

  const shown = (contact: HubspotContact, wanted: string) => {
    const all: Record<string, unknown> = { ...contact.properties, createdate: contact.createdAt }
    return Object.fromEntries(wanted.split(',').map(name => [name, all[name]]))
  }

  /** By an address that is not there, it would be blocked for good. */
  function purge({ objectId, ...more }: Asked['json']): Said {
    if (Object.keys(more).length > 0) return malformed
    const found = [...contacts].find(([, { id }]) => id === objectId)
    if (found === undefined) return hubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found')
    contacts.delete(found[0])
    return { status: 204 }
  }

  function send({ eventName, email, objectId, uuid, occurredAt, properties: values, ...more }: Asked['json']): Said {
    if (eventName !== EVENT) return hubspotError(400, 'VALIDATION_ERROR', 'The event does not exist')
    const isUuid = uuid === undefined || /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(uuid)
    const isTime = occurredAt === undefined || !Number.isNaN(Date.parse(occurredAt))
    const isOne = (email === undefined) !== (objectId === undefined)
    if (!isUuid || !isTime || !isOne || !values || Object.keys(more).length > 0) return malformed
    const contact = [...contacts.values()].find(each => each.id === objectId || each.properties.email === email)
    const whose = String(contact?.properties.email ?? email)
    const key = uuid ?? `random-${++ids}`
    if (!events.has(key)) starts.set(whose, (starts.get(whose) ?? 0) + 1)
    events.add(key)
    return { status: 204 }
  }

  function answer({ method, path, segments, query, headers, json }: Asked): Said {
    if (headers.authorization !== `Bearer ${TOKEN}`) {
      return hubspotError(401, 'INVALID_AUTHENTICATION', 'Authentication credentials not found.')
    }
    const last = segments.at(-1)!
    if (path.startsWith('/crm/properties/')) return property(last)
    if (path.startsWith('/crm/lists/')) return method === 'PUT' ? add(path.split('/')[4]!, json) : list(last)
    switch (`${method} ${path}`) {
      case 'POST /crm/objects/2026-09/contacts':
        return create(json)
      case 'GET /crm/objects/2026-09/contacts':
        return { status: 200, body: { results: [...contacts.values()].slice(0, Number(query.limit)) } }
      case 'POST /crm/objects/2026-09/contacts/gdpr-delete':
        return purge(json)
      case 'POST /events/custom/2026-09/send':
        return send(json)
      default:
        return get(last, query)
    }
  }

  const listsOf = (email: string) => [...lists].filter(([, ids]) => ids.has(contacts.get(email)?.id ?? ''))
  return {
    lists,
    answer: documented(hubspotContract, answer),
    had: email => void make({ email, firstname: 'Old' }, '2020-01-01T00:00:00.000Z'),
    kept: email => (contacts.has(email) ? { ...contacts.get(email), lists: listsOf(email).length } : undefined),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
    joined: email => listsOf(email).length === lists.size,
  }
}
