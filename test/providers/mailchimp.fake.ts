import { createHash } from 'node:crypto'
import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = '0123456789abcdef0123456789abcdef-us21'
const AUDIENCE = 'a1b2c3d4e5'
const JOURNEY = 1234
const STEP = 56

export const mailchimpSettings = (url: string) => ({
  MAILCHIMP_API_KEY: KEY,
  MAILCHIMP_AUDIENCE_ID: AUDIENCE,
  MAILCHIMP_BASE_URL: url,
})
export const mailchimpJourney = { MAILCHIMP_JOURNEY_ID: String(JOURNEY), MAILCHIMP_STEP_ID: String(STEP) }

interface Member {
  readonly id: string
  readonly contact_id: string
  readonly email_address: string
  readonly status: string
  readonly merge_fields: object
  readonly timestamp_signup: string
  readonly timestamp_opt: string
  readonly last_changed: string
}

const MEMBERS = ['email_address', 'status', 'merge_fields', 'timestamp_signup', 'timestamp_opt', 'tags', 'language']

/** https://mailchimp.com/developer/marketing/docs/errors */
const problem = (status: number, title: string, detail: string): Said => ({
  status,
  body: { type: 'https://mailchimp.com/developer/marketing/docs/errors/', title, status, detail, instance: 'i' },
  headers: { 'content-type': 'application/problem+json; charset=utf-8' },
})
const notFound = problem(404, 'Resource Not Found', 'The requested resource could not be found.')
const invalid = (detail: string) => problem(400, 'Invalid Resource', detail)

const hashOf = (email: string) => createHash('md5').update(email.toLowerCase()).digest('hex')
const timeOf = (date: Date) => `${date.toISOString().slice(0, 19)}+00:00`

/** As documented at https://mailchimp.com/developer/marketing/api. */
export function mailchimpFake(): VendorFake {
  const members = new Map<string, Member>()
  const starts = new Map<string, number>()
  let ids = 0

  function add(email: string, more: Partial<Member>): Member {
    const now = timeOf(new Date())
    const member: Member = {
      id: hashOf(email),
      contact_id: (++ids).toString(16).padStart(32, '0'),
      email_address: email,
      status: 'subscribed',
      merge_fields: {},
      timestamp_signup: '',
      timestamp_opt: now,
      last_changed: now,
      ...more,
    }
    members.set(email, member)
    return member
  }

  const find = (name: string) =>
    [...members.values()].find(({ id, contact_id, email_address }) => [id, contact_id, email_address].includes(name))

  function create(body: Record<string, unknown>): Said {
    const { email_address: email, status, merge_fields = {}, timestamp_signup = '' } = body
    if (Object.keys(body).some(name => !MEMBERS.includes(name))) return invalid('Unknown field')
    if (typeof email !== 'string' || !/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return invalid(`${email} looks fake or invalid, please enter a real email address.`)
    }
    if (!['subscribed', 'pending', 'unsubscribed', 'cleaned', 'transactional'].includes(String(status))) {
      return invalid('The resource submitted could not be validated.')
    }
    if (timestamp_signup !== '' && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/.test(String(timestamp_signup))) {
      return invalid('This value is not a valid datetime.')
    }
    if (members.has(email)) {
      const detail = `${email} is already a list member. Use PUT to insert or update list members.`
      return problem(400, 'Member Exists', detail)
    }
    const more = { status, merge_fields, timestamp_signup, ...(status === 'pending' && { timestamp_opt: '' }) }
    return { status: 200, body: add(email, more as Partial<Member>) }
  }

  function start(member: Member | undefined): Said {
    if (member === undefined) return notFound
    starts.set(member.email_address, (starts.get(member.email_address) ?? 0) + 1)
    return { status: 204 }
  }

  return {
    answer({ method, path, headers, query, json }: Asked) {
      const [, password] = Buffer.from(headers.authorization?.replace('Basic ', '') ?? '', 'base64')
        .toString()
        .split(':')
      if (password !== KEY) return problem(401, 'API Key Invalid', 'Your API key may be invalid.')
      if (method === 'POST' && path === `/3.0/customer-journeys/journeys/${JOURNEY}/steps/${STEP}/actions/trigger`) {
        return start(members.get(json?.email_address))
      }
      const [, audience, rest, name, events] =
        /^\/3\.0\/lists\/(\w+)(?:\/(members)(?:\/([^/]+)(\/events)?)?)?$/.exec(path) ?? []
      if (audience !== AUDIENCE) return notFound
      if (method === 'GET' && rest === undefined) {
        return { status: 200, body: query.fields === 'id' ? { id: AUDIENCE } : { id: AUDIENCE, name: 'Waitlist' } }
      }
      if (method === 'POST' && rest !== undefined && name === undefined) return create(json ?? {})
      if (name === undefined) return notFound
      if (method === 'GET' && events === undefined) {
        const member = find(name)
        return member === undefined ? notFound : { status: 200, body: member }
      }
      if (method !== 'POST') return notFound
      return /^.{2,30}$/.test(json?.name ?? '') ? start(find(name)) : invalid('Name must be 2-30 characters.')
    },
    had(email) {
      const at = '2022-02-23T16:25:57+00:00'
      add(email, { status: 'unsubscribed', merge_fields: { FNAME: 'Old' }, timestamp_opt: at, last_changed: at })
    },
    kept: email => members.get(email),
    count: email => (members.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
