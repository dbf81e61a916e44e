import { createHash } from 'node:crypto'
import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, type Routed, vendorApi } from '../harness/vendor-api.ts'

const KEY = '0123456789abcdef0123456789abcdef-us21'
const AUDIENCE = 'a1b2c3d4e5'
const [JOURNEY, STEP] = ['1234', '56']
/** Interests by category. */
const CATEGORIES: Readonly<Record<string, readonly string[]>> = { c1: ['i1', 'i2'], c2: ['i3'] }
const INTERESTS = Object.values(CATEGORIES).flat()

export const mailchimpSettings = (url: string) => ({
  MAILCHIMP_API_KEY: KEY,
  MAILCHIMP_AUDIENCE_ID: AUDIENCE,
  MAILCHIMP_BASE_URL: url,
})
export const mailchimpJourney = { MAILCHIMP_JOURNEY_ID: JOURNEY, MAILCHIMP_STEP_ID: STEP }
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
  readonly tags: readonly { readonly name: string }[]
}

/*
 * Facts of Mailchimp's own Swagger document (Marketing API 3.0.55), as far as we send or read it. It allows further members
 * nowhere that we send any, and has one error for all statuses.
 */

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
  const { contacts, find, start: startFor, facts } = contactBook<Member>()
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
    contacts.set(email, member)
    return member
  }

  /** A vendor's refusal, if one of the interests does not exist. */
  function unknownInterest(interests: object): Said | undefined {
    const unknown = Object.keys(interests).find(id => !INTERESTS.includes(id))
    return unknown === undefined ? undefined : invalid(`Invalid interest ID: '${unknown}'.`)
  }

  function create(body: Received['json']): Said {
    const { email_address: email, status, timestamp_signup = '', tags = [], interests = {}, ...more } = body
    if (email.startsWith('refused')) {
      return invalid(`${email} looks fake or invalid, please enter a real email address.`)
    }
    if (timestamp_signup !== '' && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/.test(timestamp_signup)) {
      return invalid('This value is not a valid datetime.')
    }
    const refusal = unknownInterest(interests)
    if (refusal !== undefined) return refusal
    if (contacts.has(email)) {
      const detail = `${email} is already a list member. Use PUT to insert or update list members.`
      return problem(400, 'Member Exists', detail)
    }
    const opted = status === 'pending' && { timestamp_opt: '' }
    const named = (tags as string[]).map(name => ({ name }))
    const member = add(email, { ...more, status, timestamp_signup, ...opted, tags: named })
    return { status: 200, body: change(member, { interests }) }
  }

  function change(member: Member, { interests, ...more }: Partial<Member>): Member {
    const merged = { ...member.interests, ...interests }
    const changed = { ...member, ...more, interests: merged, last_changed: timeOf(new Date()) }
    contacts.set(member.email_address, changed)
    return changed
  }

  /** The owner requires merge fields that a waitlist does not know. */
  function update(member: Member, { json, query }: Received): Said {
    if (query.skip_merge_validation !== 'true') return invalid('Your merge fields were invalid.')
    return unknownInterest(json.interests ?? {}) ?? { status: 200, body: change(member, json) }
  }

  /** A tag starts what the owner has for it, unless it is only synchronised. */
  function tag(member: Member, { json: { tags, is_syncing } }: Received): Said {
    if (is_syncing !== true) start(member)
    const names = new Set([...member.tags, ...tags].map(({ name }) => name))
    change(member, { tags: [...names].map(name => ({ name })) })
    return { status: 204 }
  }

  function start(member: Member | undefined): Said {
    if (member === undefined) return notFound
    startFor(member.email_address)
    return { status: 204 }
  }

  /** Ten at a time, unless more are asked for. */
  const list = (name: string, ids: readonly string[] | undefined, { count = '10' }: Received['query']): Said =>
    ids === undefined ? notFound : { status: 200, body: { [name]: ids.slice(0, Number(count)).map(id => ({ id })) } }

  /** What is done with the member that the path names. */
  const of = (does: (member: Member, asked: Routed) => Said) => (asked: Routed) => {
    const name = asked.at.member!
    const member = find(({ id, contact_id, email_address }) => [id, contact_id, email_address].includes(name))
    return member === undefined ? notFound : does(member, asked)
  }

  const members = '/3.0/lists/{list}/members'
  const one = `${members}/{member}`
  return {
    ...facts,
    answer: vendorApi({
      refuses({ headers, at }) {
        const [, credentials = ''] = headers.authorization?.split(' ') ?? []
        const [, password] = Buffer.from(credentials, 'base64').toString().split(':')
        if (password !== KEY) return problem(401, 'API Key Invalid', 'Your API key may be invalid.')
        return (at.list ?? AUDIENCE) === AUDIENCE ? undefined : notFound
      },
      routes: {
        'GET /3.0/lists/{list}': () => ({ status: 200, body: { id: AUDIENCE } }),
        [`POST ${members}`]: ({ json }) => create(json),
        [`GET ${one}`]: of(body => ({ status: 200, body })),
        [`PATCH ${one}`]: of(update),
        [`POST ${one}/tags`]: of(tag),
        [`POST ${one}/events`]: of((member, { json: { name } }) =>
          /^.{2,30}$/.test(name) ? start(member) : invalid('Name must be 2-30 characters.'),
        ),
        [`POST ${one}/actions/delete-permanent`]: of(({ email_address: email }) => ({
          status: contacts.delete(email) ? 204 : 404,
        })),
        'GET /3.0/lists/{list}/interest-categories': ({ query }) => list('categories', Object.keys(CATEGORIES), query),
        'GET /3.0/lists/{list}/interest-categories/{category}/interests': ({ at, query }) =>
          list('interests', CATEGORIES[at.category!], query),
        'POST /3.0/customer-journeys/journeys/{journey}/steps/{step}/actions/trigger': ({ at, json }) =>
          at.journey === JOURNEY && at.step === STEP ? start(contacts.get(json.email_address)) : notFound,
      },
    }),
    had(email) {
      const at = '2022-02-23T16:25:57+00:00'
      add(email, { status: 'unsubscribed', merge_fields: { FNAME: 'Old' }, timestamp_opt: at, last_changed: at })
    },
    joined(email) {
      const { tags = [], interests = {} } = contacts.get(email) ?? {}
      const hasTags = ['Waitlist', 'Early access'].every(each => tags.some(({ name }) => name === each))
      return hasTags && ['i1', 'i3'].every(id => interests[id])
    },
  }
}
