import { randomUUID } from 'node:crypto'
import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 're_key-of-the-test'
const SENDING_KEY = 're_may-only-send'
const SEGMENT = '78261eea-8f8b-4381-83c6-79fa7120f1cf'

export const resendSettings = (url: string) => ({
  RESEND_API_KEY: KEY,
  RESEND_SEGMENT_ID: SEGMENT,
  RESEND_BASE_URL: url,
})
export const resendSendingKey = { RESEND_API_KEY: SENDING_KEY }

interface Kept {
  readonly id: string
  readonly email: string
  readonly first_name: string | null
  readonly last_name: string | null
  readonly created_at: string
  readonly unsubscribed: boolean
  readonly properties: object
  readonly segments: readonly string[]
}

const MEMBERS = ['email', 'first_name', 'last_name', 'unsubscribed', 'properties', 'segments', 'topics']

/** https://resend.com/docs/api-reference/errors */
const error = (statusCode: number, name: string, message: string): Said => ({
  status: statusCode,
  body: { statusCode, name, message },
})
const notFound = (message: string) => error(404, 'not_found', message)

/** The vendor writes a time so: with a blank, and a zone of two digits. */
const timeOf = (date: Date) => date.toISOString().replace('T', ' ').replace('Z', '+00')

/** As documented at https://resend.com/docs/api-reference; a second creation answers with the contact that is there. */
export function resendFake(): VendorFake {
  const contacts = new Map<string, Kept>()
  const starts = new Map<string, number>()

  const find = (idOrEmail: string) =>
    contacts.get(idOrEmail) ?? [...contacts.values()].find(({ id }) => id === idOrEmail)

  function create(body: Record<string, unknown>): Said {
    const unknown = Object.keys(body).filter(name => !MEMBERS.includes(name))
    if (unknown.length > 0) return error(422, 'validation_error', `Unrecognized key: ${unknown[0]}`)
    const { email, first_name = null, last_name = null, segments = [] } = body
    if (typeof email !== 'string' || !/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return error(422, 'validation_error', 'Invalid `email` field. The email address needs to be valid.')
    }
    const ids = (segments as readonly { id?: string }[]).map(({ id }) => id)
    if (ids.some(id => id !== SEGMENT)) return notFound('Segment not found')
    const kept = contacts.get(email) ?? {
      id: randomUUID(),
      email,
      first_name: first_name as string | null,
      last_name: last_name as string | null,
      created_at: timeOf(new Date()),
      unsubscribed: false,
      properties: {},
      segments: ids as string[],
    }
    contacts.set(email, kept)
    return { status: 201, body: { object: 'contact', id: kept.id } }
  }

  function send({ event, contact_id, email, ...more }: Record<string, string>): Said {
    if (
      !event ||
      (contact_id === undefined) === (email === undefined) ||
      Object.keys(more).some(m => m !== 'payload')
    ) {
      return error(422, 'validation_error', 'Exactly one of `contact_id` and `email` is required.')
    }
    const address = email ?? find(contact_id!)?.email
    if (address === undefined) return notFound('Contact not found')
    starts.set(address, (starts.get(address) ?? 0) + 1)
    return { status: 202, body: { object: 'event', event } }
  }

  function refused({ headers }: Asked): Said | undefined {
    const { authorization } = headers
    if (authorization === undefined) return error(401, 'missing_api_key', 'Missing API key in the authorization header')
    if (authorization === `Bearer ${SENDING_KEY}`)
      return error(401, 'restricted_api_key', 'This API key is restricted to only send emails')
    return authorization === `Bearer ${KEY}` ? undefined : error(403, 'invalid_api_key', 'API key is invalid')
  }

  return {
    answer(asked) {
      const no = refused(asked)
      if (no !== undefined) return no
      const { method, path, query, json } = asked
      const [, collection, name] = /^\/(\w+)(?:\/(.+))?$/.exec(path) ?? []
      switch (`${method} /${collection}${name === undefined ? '' : '/…'}`) {
        case 'GET /contacts': {
          const data = [...contacts.values()].slice(0, Number(query.limit ?? 20)).map(({ segments, ...more }) => more)
          return { status: 200, body: { object: 'list', has_more: false, data } }
        }
        case 'GET /contacts/…': {
          const kept = find(name!)
          if (kept === undefined) return notFound('Contact not found')
          const { segments, ...more } = kept
          return { status: 200, body: { object: 'contact', ...more } }
        }
        case 'GET /segments/…':
          if (name !== SEGMENT) return notFound('Segment not found')
          return {
            status: 200,
            body: { object: 'segment', id: SEGMENT, name: 'Waitlist', created_at: timeOf(new Date(0)) },
          }
        case 'POST /contacts':
          return create(json ?? {})
        case 'POST /events/…':
          return send(json ?? {})
        default:
          return notFound('The requested endpoint does not exist')
      }
    },
    had: email =>
      void contacts.set(email, {
        id: randomUUID(),
        email,
        first_name: 'Old',
        last_name: null,
        created_at: '2023-10-06 23:47:56.678+00',
        unsubscribed: true,
        properties: { plan: 'free' },
        segments: [],
      }),
    kept: email => contacts.get(email),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
