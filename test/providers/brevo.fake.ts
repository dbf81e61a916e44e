import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 'xkeysib-of-the-test'
const LISTS = [2, 5]
const ATTRIBUTES = ['FIRSTNAME', 'LASTNAME', 'VORNAME', 'NACHNAME']

export const brevoSettings = (url: string) => ({ BREVO_API_KEY: KEY, BREVO_LIST_IDS: '2, 5', BREVO_BASE_URL: url })

interface Kept {
  readonly id: number
  readonly email: string
  readonly listIds: readonly number[]
  readonly attributes: Readonly<Record<string, unknown>>
  readonly createdAt: string
  readonly modifiedAt: string
}

const CONTACT_MEMBERS = ['email', 'attributes', 'listIds', 'updateEnabled', 'ext_id', 'emailBlacklisted']
const EVENT_MEMBERS = ['event_name', 'identifiers', 'event_date', 'event_properties', 'contact_properties', 'object']

const error = (status: number, code: string, message: string, metadata?: object): Said => ({
  status,
  body: { code, message, ...(metadata && { metadata }) },
})

/** The vendor's times are in the zone of the account. */
const timeOf = (date: Date) => new Date(date.getTime() + 7_200_000).toISOString().replace('Z', '+02:00')

/** As documented at https://developers.brevo.com/reference. */
export function brevoFake(): VendorFake {
  const contacts = new Map<string, Kept>()
  const starts = new Map<string, number>()
  let ids = 0

  function add(email: string, attributes: object, listIds: readonly number[], at: string): Kept {
    const known = Object.entries(attributes).filter(([name]) => ATTRIBUTES.includes(name))
    const kept = { id: ++ids, email, listIds, attributes: Object.fromEntries(known), createdAt: at, modifiedAt: at }
    contacts.set(email, kept)
    return kept
  }

  function create(body: Record<string, unknown>): Said {
    const { email, attributes = {}, listIds = [], updateEnabled = false } = body
    if (Object.keys(body).some(name => !CONTACT_MEMBERS.includes(name))) {
      return error(400, 'invalid_parameter', 'Unknown parameter')
    }
    if (typeof email !== 'string') return error(400, 'missing_parameter', 'email or SMS is missing')
    if (!/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return error(400, 'invalid_parameter', 'Invalid email address')
    }
    const lists = listIds as readonly number[]
    if (lists.some(id => !LISTS.includes(id))) return error(400, 'document_not_found', 'List ID does not exist')
    if (updateEnabled !== false) return { status: 204 }
    if (contacts.has(email)) {
      const message = 'Unable to create contact, email is already associated with another Contact'
      return error(400, 'duplicate_parameter', message, { duplicate_identifiers: ['email'] })
    }
    return { status: 201, body: { id: add(email, attributes as object, lists, timeOf(new Date())).id } }
  }

  function send(body: Record<string, unknown>): Said {
    const { event_name: name, identifiers = {} } = body
    if (Object.keys(body).some(each => !EVENT_MEMBERS.includes(each))) {
      return error(400, 'invalid_parameter', 'Unknown parameter')
    }
    if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,255}$/.test(name)) {
      return error(400, 'invalid_parameter', 'event_name is invalid')
    }
    const { email_id, contact_id } = identifiers as { email_id?: string; contact_id?: number }
    const kept = [...contacts.values()].find(({ id, email }) => id === contact_id || email === email_id)
    if (kept === undefined && email_id === undefined) return error(400, 'invalid_parameter', 'identifiers are invalid')
    // An address that is not there becomes a contact.
    const { email } = kept ?? add(email_id!, {}, [], timeOf(new Date()))
    starts.set(email, (starts.get(email) ?? 0) + 1)
    return { status: 204 }
  }

  return {
    answer({ method, path, headers, json }: Asked) {
      if (headers['api-key'] !== KEY) return error(401, 'unauthorized', 'Key not found')
      if (method === 'POST' && path === '/v3/contacts') return create(json ?? {})
      if (method === 'POST' && path === '/v3/events') return send(json ?? {})
      const [, identifier] = /^\/v3\/contacts\/(.+)$/.exec(path) ?? []
      if (method !== 'GET' || identifier === undefined) return error(404, 'document_not_found', 'Not found')
      const kept = contacts.get(identifier)
      if (kept === undefined) return error(404, 'document_not_found', 'Contact does not exist')
      return { status: 200, body: { ...kept, emailBlacklisted: false, smsBlacklisted: false, statistics: {} } }
    },
    had: email => void add(email, { FIRSTNAME: 'Old' }, [], '2017-05-02T16:40:31.000+02:00'),
    kept: email => contacts.get(email),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
