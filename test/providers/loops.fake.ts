import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 'loops-key-of-the-test'

export const loopsSettings = (url: string) => ({ LOOPS_API_KEY: KEY, LOOPS_BASE_URL: `${url}/api` })
/** Everything that a contact can get. */
export const loopsMore = {
  LOOPS_MAILING_LISTS: 'list-1,list-2',
  LOOPS_USER_GROUP: 'Early adopters',
  LOOPS_CONTACT_PROPERTIES: 'planName=free, heardOf=landing page',
  LOOPS_EVENT_PROPERTIES: 'campaign=launch',
}
const LISTS = ['list-1', 'list-2']
const PROPERTIES = { planName: 'string', heardOf: 'string', seats: 'number' }

/** As documented at https://loops.so/docs/api-reference: what is sent beside the known members changes the contact. */
export function loopsFake(): VendorFake {
  const contacts = new Map<string, Record<string, unknown>>()
  const usedKeys = new Set<string>()
  const starts = new Map<string, number>()
  let ids = 0

  function create({ email, ...more }: { email?: unknown }): Said {
    if (typeof email !== 'string' || !/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return { status: 400, body: { success: false, message: 'Invalid email address.' } }
    }
    if (contacts.has(email)) {
      return { status: 409, body: { success: false, message: 'Email or userId is already on list.' } }
    }
    const id = `cll${++ids}`
    contacts.set(email, { id, email, ...more })
    return { status: 200, body: { success: true, id } }
  }

  /** Makes the contact if there is none. Only `subscribed: true` resubscribes. */
  function update({ email, mailingLists, ...more }: Record<string, unknown>): Said {
    if (typeof email !== 'string') {
      return { status: 400, body: { success: false, message: 'An email or userId is required.' } }
    }
    const kept = contacts.get(email) ?? { id: `cll${++ids}`, email, source: 'API', subscribed: true }
    const lists = { ...(kept.mailingLists as object), ...(mailingLists as object) }
    contacts.set(email, { ...kept, ...more, mailingLists: lists })
    return { status: 200, body: { success: true, id: kept.id } }
  }

  function remove({ email, userId }: { email?: unknown; userId?: unknown }): Said {
    if (typeof email !== 'string' || userId !== undefined) {
      return { status: 400, body: { success: false, message: 'Only one of email or userId.' } }
    }
    return contacts.delete(email)
      ? { status: 200, body: { success: true, message: 'Contact deleted.' } }
      : { status: 404, body: { success: false, message: 'Contact not found.' } }
  }

  function send({ headers, json }: Asked): Said {
    const { email, eventName } = json
    if (typeof email !== 'string' || typeof eventName !== 'string') {
      return { status: 400, body: { success: false, message: 'email and eventName are required.' } }
    }
    const key = headers['idempotency-key']
    if (key !== undefined) {
      if (key.length > 100) return { status: 400, body: { success: false, message: 'The key is too long.' } }
      if (usedKeys.has(key)) return { status: 409, body: { success: false, message: 'Idempotency key was used.' } }
      usedKeys.add(key)
    }
    starts.set(email, (starts.get(email) ?? 0) + 1)
    return { status: 200, body: { success: true } }
  }

  return {
    answer(asked) {
      if (asked.headers.authorization !== `Bearer ${KEY}`) return { status: 401, body: { error: 'Invalid API key' } }
      switch (`${asked.method} ${asked.path}`) {
        case 'GET /api/v1/api-key':
          return { status: 200, body: { success: true, teamName: 'Example' } }
        case 'POST /api/v1/contacts/create':
          return create(asked.json ?? {})
        case 'PUT /api/v1/contacts/update':
          return update(asked.json ?? {})
        case 'POST /api/v1/contacts/delete':
          return remove(asked.json ?? {})
        case 'GET /api/v1/lists':
          return {
            status: 200,
            body: LISTS.map(id => ({ id, name: id, description: '', isPublic: true })),
          }
        case 'GET /api/v1/contacts/properties':
          return {
            status: 200,
            body: Object.entries(PROPERTIES).map(([key, type]) => ({ key, label: key, type })),
          }
        case 'GET /api/v1/contacts/find': {
          const found = contacts.get(asked.query.email ?? '')
          return { status: 200, body: found === undefined ? [] : [found] }
        }
        case 'POST /api/v1/events/send':
          return send(asked)
        default:
          return { status: 404, body: { success: false, message: 'Not found.' } }
      }
    },
    had(email) {
      const more = { firstName: 'Old', source: 'API', subscribed: false, userGroup: 'Customers' }
      contacts.set(email, { id: `cll${++ids}`, email, ...more, mailingLists: { 'list-0': true } })
    },
    joined(email) {
      const lists = Object(contacts.get(email)?.mailingLists)
      return LISTS.every(id => lists[id] === true)
    },
    kept: email => contacts.get(email),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
