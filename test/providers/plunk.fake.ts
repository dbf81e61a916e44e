import assert from 'node:assert/strict'
import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { documented } from '../harness/wire.ts'
import { plunkContract } from './plunk.contract.ts'

const SECRET = 'sk_of-the-test'
const PUBLIC = 'pk_of-the-test'

export const plunkSettings = (url: string) => ({
  PLUNK_SECRET_KEY: SECRET,
  PLUNK_PUBLIC_KEY: PUBLIC,
  PLUNK_BASE_URL: url,
})

interface PlunkContact {
  readonly id: string
  readonly email: string
  subscribed: boolean
  data: Record<string, unknown> | null
  readonly createdAt: string
  updatedAt: string
}

export interface PlunkFake extends VendorFake {
  /** What the project is told from now on, whatever it asks. */
  refuse(status: 402 | 403): void
  /** The next call of this path is answered with 500: its key stays used. */
  breakOnce(path: string): void
  /** From now on the first use of every key is said to be under way. */
  neverFinish(): void
  /** As after a day. */
  forgetKeys(): void
}

export const plunkError = (statusCode: number, code: string, more: object = {}): Said => ({
  status: statusCode,
  body: {
    success: false,
    error: { code, message: `Something about ${code}`, statusCode, requestId: 'a-request', ...more },
    timestamp: new Date().toISOString(),
  },
})

/** As in Plunk's own source: an upsert that merges, keys of events that are kept but for 4xx. */
export function plunkFake(): PlunkFake {
  const contacts = new Map<string, PlunkContact>()
  /** The status of what used the key; null: under way. */
  const keys = new Map<string, number | null>()
  const starts = new Map<string, number>()
  const broken = new Set<string>()
  let refused: Said | undefined
  let ids = 0
  let finishing = true

  function upsert(address: string, data: Record<string, unknown> = {}, subscribed?: boolean): PlunkContact {
    const email = address.trim().toLowerCase()
    const now = new Date().toISOString()
    const times = { createdAt: now, updatedAt: now }
    const contact = contacts.get(email) ?? { id: `contact-${++ids}`, email, subscribed: true, data: null, ...times }
    const merged = { ...contact.data, ...data }
    contact.data = Object.keys(merged).length > 0 ? merged : null
    contact.subscribed = subscribed ?? contact.subscribed
    contact.updatedAt = now
    contacts.set(email, contact)
    return contact
  }

  function create({ email, data, subscribed }: Asked['json']): Said {
    if (!email) return { status: 400, body: { error: 'Email is required' } }
    if (String(email).startsWith('refused')) {
      const errors = [{ field: 'email', message: 'Invalid email', code: 'invalid_string' }]
      return plunkError(422, 'VALIDATION_ERROR', { errors })
    }
    const isUpdate = contacts.has(email)
    const contact = upsert(email, data, subscribed)
    return { status: isUpdate ? 200 : 201, body: { ...contact, _meta: { isNew: !isUpdate, isUpdate } } }
  }

  function track({ headers, json }: Asked): Said {
    const key = headers['idempotency-key']
    if (key !== undefined) {
      assert.match(key, /^[\x20-\x7E]{1,255}$/)
      if (keys.has(key)) {
        const originalRequestAt = new Date().toISOString()
        const original = { originalRequest: 'POST /v1/track', originalRequestAt, originalStatusCode: keys.get(key) }
        return plunkError(409, 'IDEMPOTENCY_KEY_REUSED', { details: { key, ...original } })
      }
      keys.set(key, null)
    }
    const said = tracked(json)
    if (key !== undefined && said.status >= 400 && said.status < 500) keys.delete(key)
    else if (key !== undefined && finishing) keys.set(key, said.status)
    return said
  }

  function tracked({ event, email, data, subscribed }: Asked['json']): Said {
    if (/^(?:email\..*|contact\.(?:un)?subscribed|segment\..*\.(?:entry|exit))$/.test(event)) {
      const errors = [{ field: 'event', message: 'reserved', code: 'reserved_event' }]
      return plunkError(422, 'VALIDATION_ERROR', { errors })
    }
    if (broken.delete('/v1/track')) return plunkError(500, 'INTERNAL_SERVER_ERROR')
    const contact = upsert(email, data, subscribed)
    starts.set(contact.email, (starts.get(contact.email) ?? 0) + 1)
    const body = { success: true, data: { contact: contact.id, event: `event-${++ids}`, timestamp: contact.updatedAt } }
    return { status: 200, body }
  }

  function answer(asked: Asked): Said {
    const { method, path, query, headers, json } = asked
    // Each key is good for its own addresses alone.
    const key = path === '/v1/track' ? PUBLIC : SECRET
    if (headers.authorization !== `Bearer ${key}`) return plunkError(401, 'INVALID_API_KEY')
    if (refused !== undefined) return refused
    if (method === 'DELETE') {
      const found = [...contacts.values()].find(({ id }) => path === `/contacts/${id}`)
      return found !== undefined && contacts.delete(found.email) ? { status: 204 } : plunkError(404, 'NOT_FOUND')
    }
    switch (`${method} ${path}`) {
      case 'GET /contacts': {
        for (const name of Object.keys(query)) assert.ok(['search', 'limit'].includes(name), name)
        const found = [...contacts.values()].reverse().filter(({ email }) => email.includes(query.search ?? ''))
        const data = found.slice(0, Number(query.limit ?? 20))
        return { status: 200, body: { data, total: found.length, hasMore: found.length > data.length } }
      }
      case 'POST /contacts/lookup': {
        const emails: string[] = json.emails
        const isThere = (email: string) => contacts.has(email.trim().toLowerCase())
        return {
          status: 200,
          body: { found: emails.filter(isThere), notFound: emails.filter(email => !isThere(email)) },
        }
      }
      case 'POST /contacts':
        return broken.delete(path) ? plunkError(500, 'INTERNAL_SERVER_ERROR') : create(json)
      default:
        return track(asked)
    }
  }

  return {
    answer: documented(plunkContract, answer),
    refuse(status) {
      refused = plunkError(status, status === 402 ? 'BILLING_LIMIT_EXCEEDED' : 'PROJECT_DISABLED')
    },
    breakOnce: path => void broken.add(path),
    neverFinish() {
      finishing = false
    },
    forgetKeys: () => keys.clear(),
    had(email) {
      const long = '2020-01-01T00:00:00.000Z'
      const data = { firstName: 'Old' }
      contacts.set(email, { id: `old-${++ids}`, email, subscribed: false, data, createdAt: long, updatedAt: long })
    },
    kept: email => contacts.get(email),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
