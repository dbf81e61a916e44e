import { createHash } from 'node:crypto'
import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { documented } from '../harness/wire.ts'
import { mailchimpContract } from './mailchimp.contract.ts'

const KEY = '0123456789abcdef0123456789abcdef-us21'
const AUDIENCE = 'a1b2c3d4e5'
const JOURNEY = 1234
const STEP = 56
/** Interests by category. */
const CATEGORIES: Readonly<Record<string, readonly string[]>> = { c1: ['i1', 'i2'], c2: ['i3'] }
const INTERESTS = Object.values(CATEGORIES).flat()

export const mailchimpSettings = (url: string) => ({
  MAILCHIMP_API_KEY: KEY,
  MAILCHIMP_AUDIENCE_ID: AUDIENCE,
  MAILCHIMP_BASE_URL: url,
})
export const mailchimpJourney = { MAILCHIMP_JOURNEY_ID: String(JOURNEY), MAILCHIMP_STEP_ID: String(STEP) }
/** Everything of the form that the settings can name. */
export const mailchimpForm = { MAILCHIMP_TAGS: 'Waitlist, Early access', MAILCHIMP_INTEREST_IDS: 'i1, i3' }

interface Member {
  readonly id: string
  readonly contact_id: string
  readonly email_address: string
  readonly status: string
  readonly merge_fields: object
  readonly timestamp_signup: string
  readonly timestamp_opt: string
  readonly last_changed: string
  readonly interests: Readonly<Record<string, boolean>>
  readonly language: string
  readonly tags: readonly { readonly id: number; readonly name: string }[]
}

/** https://mailchimp.com/developer/marketing/docs/errors */
const problem = (status: number, title: string, detail: string): Said => ({
  status,
  body: { type: 'https://mailchimp.com/developer/marketing/docs/errors/', title, status, detail, instance: 'i' },
  headers: { 'content-type': 'application/problem+json; charset=utf-8' },
})
const notFound = problem(404, 'Resource Not Found', 'The requested resource could not be found.')
const invalid = (detail: string) => problem(400, 'Invalid Resource', detail)

const hashOf = (email: string) => createHash('md5').update(email.toLowerCase()).digest('hex')
const idsOf = (ids: readonly string[]) => ids.map(id => ({ id }))
const tagged = (names: readonly string[]) => names.map((name, i) => ({ id: i + 1, name }))
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
      interests: Object.fromEntries(INTERESTS.map(id => [id, false])),
      language: '',
      tags: [],
      ...more,
    }
    members.set(email, member)
    return member
  }

  const find = (name: string) =>
    [...members.values()].find(({ id, contact_id, email_address }) => [id, contact_id, email_address].includes(name))

  /** Whether the interests of a body exist; a vendor's refusal if not. */
  function unknownInterest({ interests = {} }: Record<string, unknown>): Said | undefined {
    const unknown = Object.keys(interests as object).find(id => !INTERESTS.includes(id))
    return unknown === undefined ? undefined : invalid(`Invalid interest ID: '${unknown}'.`)
  }

  function create(body: Record<string, unknown>): Said {
    const { email_address: email, status, merge_fields = {}, timestamp_signup = '', tags = [], language = '' } = body
    if (typeof email !== 'string' || !/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return invalid(`${email} looks fake or invalid, please enter a real email address.`)
    }
    if (!['subscribed', 'pending', 'unsubscribed', 'cleaned', 'transactional'].includes(String(status))) {
      return invalid('The resource submitted could not be validated.')
    }
    if (timestamp_signup !== '' && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/.test(String(timestamp_signup))) {
      return invalid('This value is not a valid datetime.')
    }
    const refusal = unknownInterest(body)
    if (refusal !== undefined) return refusal
    if (members.has(email)) {
      const detail = `${email} is already a list member. Use PUT to insert or update list members.`
      return problem(400, 'Member Exists', detail)
    }
    const more = { status, merge_fields, timestamp_signup, ...(status === 'pending' && { timestamp_opt: '' }) }
    const member = add(email, { ...more, tags: tagged(tags as string[]), language } as Partial<Member>)
    return { status: 200, body: change(member, { interests: body.interests }) }
  }

  function change(member: Member, { interests, ...more }: Record<string, unknown>): Member {
    const merged = { ...member.interests, ...(interests as object | undefined) }
    const changed = { ...member, ...more, interests: merged, last_changed: timeOf(new Date()) }
    members.set(member.email_address, changed)
    return changed
  }

  function update(member: Member, body: Record<string, unknown>, query: Asked['query']): Said {
    // The owner requires merge fields that a waitlist does not know.
    if (query.skip_merge_validation !== 'true') return invalid('Your merge fields were invalid.')
    return unknownInterest(body) ?? { status: 200, body: change(member, body) }
  }

  /** A tag starts what the owner has for it, unless it is only synchronised. */
  function tag(member: Member, body: Asked['json']): Said {
    const given: readonly { name: string; status: string }[] = body.tags
    if (body.is_syncing !== true) start(member)
    const names = new Set([...member.tags, ...given].map(({ name }) => name))
    change(member, { tags: tagged([...names]) })
    return given.every(({ status }) => status === 'active') ? { status: 204 } : invalid('Only added in these tests.')
  }

  function start(member: Member | undefined): Said {
    if (member === undefined) return notFound
    starts.set(member.email_address, (starts.get(member.email_address) ?? 0) + 1)
    return { status: 204 }
  }

  /** Ten at a time, unless more are asked for. */
  function categories(name: string | undefined, { count = '10' }: Asked['query']): Said {
    if (name === undefined) {
      return { status: 200, body: { categories: idsOf(Object.keys(CATEGORIES)).slice(0, Number(count)) } }
    }
    const found = CATEGORIES[name]
    return found === undefined ? notFound : { status: 200, body: { interests: idsOf(found).slice(0, Number(count)) } }
  }

  function answer({ method, path, headers, query, json }: Asked): Said {
    const [, password] = Buffer.from(headers.authorization?.replace('Basic ', '') ?? '', 'base64')
      .toString()
      .split(':')
    if (password !== KEY) return problem(401, 'API Key Invalid', 'Your API key may be invalid.')
    if (method === 'POST' && path === `/3.0/customer-journeys/journeys/${JOURNEY}/steps/${STEP}/actions/trigger`) {
      return start(members.get(json?.email_address))
    }
    const [, audience, rest, name, of] =
      /^\/3\.0\/lists\/(\w+)(?:\/(members|interest-categories)(?:\/([^/]+)(\/events|\/tags|\/interests|\/actions\/delete-permanent)?)?)?$/.exec(
        path,
      ) ?? []
    if (audience !== AUDIENCE) return notFound
    if (rest === 'interest-categories') return method === 'GET' ? categories(name, query) : notFound
    if (method === 'GET' && rest === undefined) {
      return { status: 200, body: query.fields === 'id' ? { id: AUDIENCE } : { id: AUDIENCE, name: 'Waitlist' } }
    }
    if (method === 'POST' && rest !== undefined && name === undefined) return create(json ?? {})
    const member = find(name ?? '')
    if (name === undefined || member === undefined) return notFound
    if (method === 'GET' && of === undefined) return { status: 200, body: member }
    if (method === 'PATCH' && of === undefined) return update(member, json, query)
    if (method !== 'POST') return notFound
    if (of === '/tags') return tag(member, json)
    if (of === '/actions/delete-permanent') {
      members.delete(member.email_address)
      return { status: 204 }
    }
    return /^.{2,30}$/.test(json?.name ?? '') ? start(member) : invalid('Name must be 2-30 characters.')
  }

  return {
    answer: documented(mailchimpContract, answer),
    had(email) {
      const at = '2022-02-23T16:25:57+00:00'
      add(email, { status: 'unsubscribed', merge_fields: { FNAME: 'Old' }, timestamp_opt: at, last_changed: at })
    },
    kept: email => members.get(email),
    joined(email) {
      const { tags = [], interests = {} } = members.get(email) ?? {}
      return (
        ['Waitlist', 'Early access'].every(each => tags.some(({ name }) => name === each)) &&
        ['i1', 'i3'].every(id => interests[id])
      )
    },
    count: email => (members.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
