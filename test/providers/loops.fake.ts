import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 'loops-key-of-the-test'

export const loopsSettings = (url: string) => ({ LOOPS_API_KEY: KEY, LOOPS_BASE_URL: `${url}/api` })

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
    had: email => void contacts.set(email, { id: `cll${++ids}`, email, firstName: 'Old', source: 'API' }),
    kept: email => contacts.get(email),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
