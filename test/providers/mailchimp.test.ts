import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { CallerSettings } from '../../src/outbound/caller.ts'
import { mailchimp as vendor } from '../../src/providers/mailchimp.ts'
import { contactOf, providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, type Routed, vendorApi } from '../harness/vendor-api.ts'
import { check, create, createAgain, never, remove, start, vendorTable } from './table.ts'

const KEY = '0123456789abcdef0123456789abcdef-us21'
const AUDIENCE = 'a1b2c3d4e5'

const mailchimpSettings = (url: string) => ({
  MAILCHIMP_API_KEY: KEY,
  MAILCHIMP_AUDIENCE_ID: AUDIENCE,
  MAILCHIMP_BASE_URL: url,
})
const mailchimpTags = { MAILCHIMP_TAGS: 'Waitlist, Early access' }

interface Member {
  readonly id: string
  readonly contact_id: string
  readonly email_address: string
  readonly status: string
  readonly merge_fields: object
  readonly timestamp_signup: string
  readonly timestamp_opt: string
  readonly last_changed: string
  readonly tags: readonly { readonly name: string }[]
}

/*
 * Facts of Mailchimp's own Swagger document (Marketing API 3.0.55), as far as we send or read it. It allows further members
 * nowhere that we send any, and has one error for all statuses.
 */

/** https://mailchimp.com/developer/marketing/docs/errors */
const problem = (status: number, title: string, detail = '', more: object = {}): Said => ({
  status,
  body: {
    type: 'https://mailchimp.com/developer/marketing/docs/errors/',
    title,
    status,
    detail,
    instance: 'i',
    ...more,
  },
  headers: { 'content-type': 'application/problem+json; charset=utf-8' },
})
const notFound = problem(404, 'Resource Not Found', 'The requested resource could not be found.')
const invalid = (detail: string, errors?: object) => problem(400, 'Invalid Resource', detail, errors && { errors })

const hashOf = (email: string) => createHash('md5').update(email.toLowerCase()).digest('hex')
const timeOf = (date: Date) => `${date.toISOString().slice(0, 19)}+00:00`

/** As documented at https://mailchimp.com/developer/marketing/api. */
function mailchimpFake(): VendorFake {
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
      tags: [],
      ...more,
    }
    contacts.set(email, member)
    return member
  }

  function create(body: Received['json']): Said {
    const { email_address: email, status, timestamp_signup = '', tags = [], ...more } = body
    if (email.startsWith('refused')) {
      return invalid(`${email} looks fake or invalid, please enter a real email address.`)
    }
    if (timestamp_signup !== '' && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/.test(timestamp_signup)) {
      return invalid('This value is not a valid datetime.')
    }
    if (contacts.has(email)) {
      const detail = `${email} is already a list member. Use PUT to insert or update list members.`
      return problem(400, 'Member Exists', detail)
    }
    const opted = status === 'pending' && { timestamp_opt: '' }
    const named = (tags as string[]).map(name => ({ name }))
    return { status: 200, body: add(email, { ...more, status, timestamp_signup, ...opted, tags: named }) }
  }

  function change(member: Member, more: Partial<Member>): void {
    contacts.set(member.email_address, { ...member, ...more, last_changed: timeOf(new Date()) })
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
        [`POST ${one}/tags`]: of(tag),
        [`POST ${one}/events`]: of((member, { json: { name } }) =>
          /^.{2,30}$/.test(name) ? start(member) : invalid('Name must be 2-30 characters.'),
        ),
        [`POST ${one}/actions/delete-permanent`]: of(({ email_address: email }) => ({
          status: contacts.delete(email) ? 204 : 404,
        })),
      },
    }),
    had(email) {
      const at = '2022-02-23T16:25:57+00:00'
      add(email, { status: 'unsubscribed', merge_fields: { FNAME: 'Old' }, timestamp_opt: at, last_changed: at })
    },
    joined(email) {
      const { tags = [] } = contacts.get(email) ?? {}
      return ['Waitlist', 'Early access'].every(each => tags.some(({ name }) => name === each))
    },
  }
}

const mailchimp = {
  vendor: 'mailchimp',
  settings: mailchimpSettings,
  wrongKey: { MAILCHIMP_API_KEY: 'ffffffffffffffffffffffffffffffff-us21' },
  wrongSetting: { MAILCHIMP_AUDIENCE_ID: 'another' },
  fake: mailchimpFake,
  refused: 'refused@example.com',
  joining: { settings: mailchimpTags, members: ['tags', 'last_changed'] },
  start: { path: /\/members\/[0-9a-f]{32}\/events$/, done: { status: 204 } },
} as const
providerContract(mailchimp)

const { started, rows, answers, sameRequests, contradictions } = vendorTable(mailchimp)
const ada = contactOf('ada@example.com', { createdAt: new Date('2026-11-20T10:11:12.345Z') })
const bob = { ...ada, name: 'Bob', email: 'bob@example.com' }
const AT = '2026-11-20T10:11:12+00:00'
const BEFORE = '2022-02-23T16:25:57+00:00'
const ID = '1'.padStart(32, '0')
const join = { PROVIDER_EXISTING: 'join' }
sameRequests('with the least', {
  ours: [
    [check, null],
    [create(ada), { is: 'created', providerId: ID }],
    [create(ada), { is: 'existing' }],
    [createAgain(ada), { is: 'existing', providerId: ID, ours: true }],
    [start({ ...ada, providerId: ID }), { is: 'delivered' }],
    [start(ada), { is: 'delivered' }],
    [remove(), { is: 'removed' }],
    [remove(), { is: 'absent' }],
  ],
  headers: ['authorization'],
})

sameRequests('with double opt-in', {
  set: { MAILCHIMP_DOUBLE_OPT_IN: 'true' },
  ours: [[create(bob), 'created']],
  headers: ['authorization'],
})

sameRequests('the tags of a new member and of a known one', {
  set: { ...mailchimpTags, ...join },
  ours: [
    [check, null],
    [create(ada), 'created'],
    [create(ada), 'existing'],
  ],
  headers: ['authorization'],
})

const exists = problem(400, 'Member Exists', 'ada is a member.')

rows({
  'the check tells of an audience that is not there': {
    set: { MAILCHIMP_AUDIENCE_ID: 'another' },
    calls: [[check, 'misconfigured']],
  },
})

// It was deleted for good, or may only come back by itself.
for (const said of [problem(404, 'Resource Not Found'), problem(400, 'Member In Compliance State')]) {
  rows({
    [`a known member stays known if tags cannot be added: ${JSON.stringify(said.body)}`]: {
      set: { ...mailchimpTags, ...join },
      says: ({ path }) => (path.endsWith('/members') ? exists : said),
      calls: [[create(ada), 'existing']],
    },
  })
}

for (const [given, outcome] of [
  [
    { contact_id: 'c1', timestamp_signup: AT },
    { providerId: 'c1', ours: true },
  ],
  [
    { contact_id: 'c1', timestamp_signup: BEFORE },
    { providerId: 'c1', ours: false },
  ],
  // Confirmed later.
  [
    { contact_id: 'c1', timestamp_signup: BEFORE, timestamp_opt: AT },
    { providerId: 'c1', ours: false },
  ],
  [
    { contact_id: 'c1', timestamp_signup: '', timestamp_opt: BEFORE },
    { providerId: 'c1', ours: false },
  ],
  [
    { contact_id: 'c1', timestamp_signup: '' },
    { providerId: 'c1', ours: undefined },
  ],
  [{ id: 'hash' }, { providerId: 'hash', ours: undefined }],
] as const) {
  rows({
    [`in doubt, a member with ${JSON.stringify(given)} is taken for what it is`]: {
      says: ({ method }) => (method === 'GET' ? { status: 200, body: given } : exists),
      calls: [[createAgain(ada), { is: 'existing', ...outcome }]],
    },
  })
}
answers(
  'in doubt, a look at a member',
  createAgain(ada),
  [
    // It was deleted.
    [problem(404, 'Resource Not Found'), { is: 'existing', ours: false }],
    [{ status: 403 }, 'unreached'],
  ],
  { to: 'GET', had: ada.email },
)

const elsewhere = { field: 'merge_fields.FNAME', message: 'Data did not match any of the schemas.' }
const atAddress = { field: 'email_address', message: 'This value should be a valid email.' }
const SEE_ERRORS = "The resource submitted could not be validated. For field-specific details, see the 'errors' array."
// The same for all: nobody learns what an address did before.
const refused = { is: 'refused', reason: 'it cannot be added there' }
answers('a creation', create(ada), [
  [problem(400, 'Forgotten Email Not Subscribed', 'It was permanently deleted.'), refused],
  [problem(400, 'Member In Compliance State', 'Due to unsubscribe.'), refused],
  [invalid('ada@example.com looks fake or invalid, please enter a real email address.'), refused],
  [invalid('Please provide a valid email address.'), refused],
  [invalid('An email address must contain a single @'), refused],
  [invalid(SEE_ERRORS, [atAddress]), refused],
  [invalid(SEE_ERRORS, [atAddress, elsewhere]), 'misconfigured'],
  [invalid(SEE_ERRORS, []), 'misconfigured'],
  [invalid(SEE_ERRORS, [elsewhere]), 'misconfigured'],
  [invalid('No sender with a valid email address is verified.'), 'misconfigured'],
  [invalid('Your merge fields were invalid.'), 'misconfigured'],
  [problem(400, 'JSONParseError'), 'misconfigured'],
  [problem(403, 'User Does Not Have Access'), 'misconfigured'],
  // Throttling.
  [{ status: 403 }, 'unreached'],
  [{ status: 403, body: '<html>Access Denied</html>' }, 'unreached'],
  [{ status: 503, body: 'Request Blocked.' }, 'unreached'],
  [{ status: 200, body: { email_address: 'ada@example.com' } }, 'unclear'],
])
answers('the check', check, [
  [{ status: 403 }, 'unreached'],
  [{ status: 200, body: {} }, 'unreached'],
])
answers('a start', start(ada), [
  [{ status: 403 }, 'unreached'],
  [{ status: 200, body: {} }, 'unclear'],
])

test('an address that joined too many lists waits, keeps nobody else waiting, and is not named', async t => {
  const detail = "ada@example.com joined a lot; we're not allowing more signups for now"
  const { provider } = await started(t, {}, invalid(detail))
  const creation = await provider.createContact(ada, false, never)
  assert.ok(creation.is === 'unreached' && creation.alone === true, JSON.stringify(creation))
  assert.ok(!creation.why.includes('ada@'))
})

test('the key names the data centre, and the base address can be another', () => {
  const bases: string[] = []
  const connect = ({ base }: Pick<CallerSettings, 'base'>) => {
    bases.push(base)
    const call = () => assert.fail('nothing is called yet')
    return { call, get: call, post: call }
  }
  const settings = { MAILCHIMP_API_KEY: 'a-b-us21', MAILCHIMP_AUDIENCE_ID: 'a', MAILCHIMP_DOUBLE_OPT_IN: false }
  vendor.client(settings, connect, {})
  vendor.client({ ...settings, MAILCHIMP_BASE_URL: 'http://127.0.0.1:9' }, connect, {})
  assert.deepEqual(bases, ['https://us21.api.mailchimp.com', 'http://127.0.0.1:9'])
})

contradictions([
  [{ MAILCHIMP_BASE_URL: '', MAILCHIMP_API_KEY: 'key' }, /^MAILCHIMP_API_KEY must end with its data centre/],
  [{ MAILCHIMP_BASE_URL: '' }, null],
])
