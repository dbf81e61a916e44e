import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'

const KEY = 'loops-key-of-the-test'
const LISTS = ['list-1', 'list-2']

export const loopsSettings = (url: string) => ({ LOOPS_API_KEY: KEY, LOOPS_BASE_URL: `${url}/api` })
/** Everything that a contact can get. */
export const loopsMore = {
  LOOPS_MAILING_LISTS: LISTS.join(),
  PROVIDER_FIELDS: 'planName=free, userGroup=Early adopters',
}

const failed = (status: number, message: string): Said => ({ status, body: { success: false, message } })
const ok = (body: unknown): Said => ({ status: 200, body })

/** As documented at https://loops.so/docs/api-reference: what is sent beside the known members changes the contact. */
export function loopsFake(): VendorFake {
  const { contacts, start, facts } = contactBook<Record<string, unknown>>()
  const usedKeys = new Set<string>()
  let ids = 0

  function create({ email, ...more }: Received['json']): Said {
    if (!/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) return failed(400, 'Invalid email address.')
    if (contacts.has(email)) return failed(409, 'Email or userId is already on list.')
    const id = `cll${++ids}`
    contacts.set(email, { id, email, ...more })
    return ok({ success: true, id })
  }

  /** Makes the contact if there is none. Only `subscribed: true` resubscribes. */
  function update({ email, mailingLists, ...more }: Received['json']): Said {
    const kept = contacts.get(email) ?? { id: `cll${++ids}`, email, source: 'API', subscribed: true, mailingLists: {} }
    const lists = { ...(kept.mailingLists as object), ...mailingLists }
    contacts.set(email, { ...kept, ...more, mailingLists: lists })
    return ok({ success: true, id: kept.id })
  }

  function remove({ email, userId }: Received['json']): Said {
    if (typeof email !== 'string' || userId !== undefined) return failed(400, 'Only one of email or userId.')
    return contacts.delete(email)
      ? ok({ success: true, message: 'Contact deleted.' })
      : failed(404, 'Contact not found.')
  }

  function send({ headers, json: { email, eventName } }: Received): Said {
    if (typeof email !== 'string' || typeof eventName !== 'string') {
      return failed(400, 'email and eventName are required.')
    }
    const key = headers['idempotency-key']
    if (key !== undefined) {
      if (key.length > 100) return failed(400, 'The key is too long.')
      if (usedKeys.has(key)) return failed(409, 'Idempotency key was used.')
      usedKeys.add(key)
    }
    start(email)
    return ok({ success: true })
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers.authorization === `Bearer ${KEY}` ? undefined : { status: 401, body: { error: 'Invalid API key' } },
      routes: {
        'GET /api/v1/api-key': () => ok({ success: true, teamName: 'Example' }),
        'POST /api/v1/contacts/create': ({ json }) => create(json),
        'PUT /api/v1/contacts/update': ({ json }) => update(json),
        'POST /api/v1/contacts/delete': ({ json }) => remove(json),
        'GET /api/v1/lists': () => ok(LISTS.map(id => ({ id, name: id, description: '', isPublic: true }))),
        'GET /api/v1/contacts/find': ({ query }) =>
          ok([contacts.get(query.email ?? '')].filter(found => found !== undefined)),
        'POST /api/v1/events/send': send,
      },
    }),
    had(email) {
      const more = { firstName: 'Old', source: 'API', subscribed: false, userGroup: 'Customers' }
      contacts.set(email, { id: `cll${++ids}`, email, ...more, mailingLists: { 'list-0': true } })
    },
    joined(email) {
      const lists = Object(contacts.get(email)?.mailingLists)
      return LISTS.every(id => lists[id] === true)
    },
  }
}
