import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const TOKEN = 'hubspot-token-of-the-test'
const EVENT = 'pe1234_joined'

export const hubspotSettings = (url: string) => ({
  HUBSPOT_TOKEN: TOKEN,
  HUBSPOT_PROPERTY: 'waitlist=early access',
  HUBSPOT_EVENT: EVENT,
  HUBSPOT_BASE_URL: url,
})

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

/** Which properties are wrong stands in the text alone. */
export const notValid = (...wrong: readonly { name: string; error: string }[]): Said => {
  const results = wrong.map(each => ({ isValid: false, message: `${each.name} x@example.com is invalid`, ...each }))
  return hubspotError(400, 'VALIDATION_ERROR', `Property values were not valid: ${JSON.stringify(results)}`)
}

/**
 * As in HubSpot's reference of contacts and of custom events (v3): properties must exist, an address is unique, and of
 * events of one type with one UUID within a year the first counts.
 */
export function hubspotFake(): VendorFake {
  const contacts = new Map<string, HubspotContact>()
  const properties = new Set(['email', 'firstname', 'lastname', 'waitlist', 'createdate'])
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
    const email = values.email.toLowerCase()
    if (email.startsWith('refused')) return notValid({ name: 'email', error: 'INVALID_EMAIL' })
    const known = contacts.get(email)
    if (known !== undefined) {
      return hubspotError(409, 'CONFLICT', `Contact already exists. Existing ID: ${known.id}`)
    }
    return { status: 201, body: make(values) }
  }

  function get(id: string, { idProperty, properties: _, ...more }: Asked['query']): Said {
    if (Object.keys(more).length > 0) return malformed
    const found = [...contacts.values()].find(each => (idProperty === 'email' ? each.properties.email : each.id) === id)
    return found === undefined
      ? hubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found')
      : { status: 200, body: { ...found, properties: { createdate: found.createdAt } } }
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

  return {
    answer({ method, path, query, headers, json }) {
      if (headers.authorization !== `Bearer ${TOKEN}`) {
        return hubspotError(401, 'INVALID_AUTHENTICATION', 'Authentication credentials not found.')
      }
      switch (`${method} ${path}`) {
        case 'POST /crm/v3/objects/contacts':
          return create(json)
        case 'GET /crm/v3/objects/contacts':
          return { status: 200, body: { results: [...contacts.values()].slice(0, Number(query.limit)) } }
        case 'POST /events/v3/send':
          return send(json)
        default:
          return get(path.slice('/crm/v3/objects/contacts/'.length), query)
      }
    },
    had: email => void make({ email, firstname: 'Old' }, '2020-01-01T00:00:00.000Z'),
    kept: email => contacts.get(email),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
