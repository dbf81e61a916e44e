import { Resend } from 'resend'
import { contactOf, providerContract } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import {
  OTHER_SEGMENT,
  resendFake,
  resendMore,
  resendSendingKey,
  resendSettings,
  SEGMENT,
  TOPIC,
} from './resend.fake.ts'
import { ada, check, create, createAgain, remove, start, vendorTable, waitAfter } from './table.ts'

const resend = {
  vendor: 'resend',
  settings: resendSettings,
  wrongKey: { RESEND_API_KEY: 're_another-key' },
  wrongSetting: { RESEND_SEGMENT_IDS: '00000000-0000-4000-8000-000000000000' },
  fake: resendFake,
  joining: { settings: resendMore, members: ['segments'] },
  refused: 'refused@example.com',
} as const
providerContract(resend)

const { rows, answers, sameRequests } = vendorTable(resend)
const client = (baseUrl: string) => new Resend(resendSettings('').RESEND_API_KEY, { baseUrl })
const join = { PROVIDER_EXISTING: 'join' }
const { email } = ada
const name = { firstName: 'Ada', lastName: 'King Lovelace' }
const odd = contactOf("a+b/c?d#e%20'f@example.com")
const old = contactOf('old@example.com')
/** Each fake makes ids of its own. */
const withoutIds = (all: readonly Asked[]) =>
  all.map(each => ({ ...each, path: each.path.replace(/^\/contacts\/[0-9a-f-]{36}/, '/contacts/…') }))

sameRequests('with a segment', {
  ours: [
    [check, null],
    [create(), 'created'],
    [create(), 'existing'],
    [start(), 'delivered'],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
  async theirs(url) {
    const { segments, contacts, events } = client(url)
    await segments.get(SEGMENT)
    await contacts.get({ email })
    await contacts.create({ email, ...name, segments: [{ id: SEGMENT }] })
    await contacts.get({ email })
    await events.send({ event: 'waitlist.joined', email })
    await contacts.remove({ email })
    await contacts.remove({ email })
  },
  headers: ['authorization'],
})
sameRequests('with nothing but the key', {
  set: { RESEND_SEGMENT_IDS: '', ...join },
  ours: [
    [check, null],
    [create(contactOf(email, { name: 'Bob' })), 'created'],
    [create(), 'existing'],
  ],
  async theirs(url) {
    const { contacts } = client(url)
    await contacts.list({ limit: 1 })
    await contacts.get({ email })
    await contacts.create({ email, firstName: 'Bob' })
    await contacts.get({ email })
  },
  headers: ['authorization'],
})
sameRequests('with everything that a contact can get, and a known one that joins', {
  set: { ...resendMore, ...join },
  had: old.email,
  ours: [
    [check, null],
    [create(), 'created'],
    [create(old), 'existing'],
  ],
  async theirs(url) {
    const { segments, topics, contactProperties, contacts } = client(url)
    await segments.get(SEGMENT)
    await segments.get(OTHER_SEGMENT)
    await topics.get(TOPIC)
    await contactProperties.list({ limit: 100 })
    await contacts.get({ email })
    await contacts.create({
      email,
      ...name,
      properties: { plan: 'early', email_source: 'landing page' },
      segments: [{ id: SEGMENT }, { id: OTHER_SEGMENT }],
      topics: [{ id: TOPIC, subscription: 'opt_in' }],
    })
    const { data } = await contacts.get({ email: old.email })
    await contacts.segments.list({ contactId: data!.id, limit: 100 })
    await contacts.segments.add({ contactId: data!.id, segmentId: SEGMENT })
  },
  headers: ['authorization'],
  become: (theirs, ours) => {
    const ids = withoutIds(ours)
    return withoutIds(theirs).map((each, i) => ({
      ...each,
      path: ids[i]?.path === each.path ? ours[i]!.path : each.path,
    }))
  },
})

const error = (status: number, name: string, message: string): Said => ({
  status,
  body: { statusCode: status, name, message },
})
const invalid = (message: string, status = 422) => error(status, 'validation_error', message)
const notAnId = invalid('The `id` must be a valid UUID.')
const find = `GET /contacts/${email}`
const contactId = 'e169aa45-1ecf-4183-9955-b1499d5701d3'
const sent: Said = { status: 202, body: { object: 'event', event: 'waitlist.joined' } }

rows({
  'the id of a contact, where it is known, names it to the automation': {
    says: sent,
    calls: [
      [
        start({ ...ada, providerId: contactId }),
        'delivered',
        ['POST /events/send', { event: 'waitlist.joined', contact_id: contactId }],
      ],
    ],
  },
  'an address finds its way through the path': {
    calls: [
      [create(odd), 'created'],
      [create(odd), 'existing'],
      [remove(odd.email), 'removed'],
    ],
  },
  'a key that may only send mail is our mistake': {
    set: resendSendingKey,
    calls: [
      [create(), 'misconfigured'],
      [check, 'misconfigured'],
    ],
  },
  'a property that is not there is no reason to drop a signup, whatever its name': {
    set: { RESEND_PROPERTIES: 'email=1' },
    calls: [[create(), 'misconfigured']],
  },
  'a 404 that is not theirs does not make an address new': {
    says: { status: 404, body: '<html>Not found</html>' },
    calls: [[create(), 'misconfigured', find]],
  },
  'an address that it takes for an id stays, is not created, keeps nobody else waiting, and is removed by hand': {
    says: notAnId,
    calls: [
      [
        create(),
        {
          is: 'unreached',
          why: 'find a contact: answered with 422 (validation_error, The `id` must be a valid UUID.)',
          alone: true,
        },
        find,
      ],
      [remove(), 'by hand'],
    ],
  },
  'what the rate limit asks for is kept, also where only its own field says it': {
    says: { ...error(429, 'rate_limit_exceeded', 'Too many requests'), headers: { 'ratelimit-reset': '2' } },
    calls: [[waitAfter(create()), 2_000]],
  },
})

for (const segment of [SEGMENT, '']) {
  for (const [what, set, why] of [
    ['a segment', { RESEND_SEGMENT_IDS: `${OTHER_SEGMENT},another` }, /the segment another: .*404/],
    ['a topic', { RESEND_TOPIC_IDS: `${TOPIC},another` }, /the topic another: .*404/],
    ['a property', { RESEND_PROPERTIES: 'plan=early,colour=blue' }, /there is no colour of type string/],
    ['a property of another type', { RESEND_PROPERTIES: 'seats=7' }, /there is no seats of type string/],
  ] as const) {
    rows({
      [`with ${segment === '' ? 'no' : 'a'} segment the check names ${what} that is not there`]: {
        set: { RESEND_SEGMENT_IDS: segment, ...set },
        calls: [[check, why]],
      },
    })
  }
}

answers(
  'a creation',
  create(),
  [
    [invalid('The `email` field is invalid.', 400), 'refused'],
    [invalid('Invalid `email` field.'), 'refused'],
    [invalid('The `email` must be a valid email.'), 'refused'],
    [invalid('The following properties do not exist: email, plan'), 'misconfigured'],
    [invalid('Invalid `from` field. It needs to follow the `email@example.com` format.'), 'misconfigured'],
    [invalid('Invalid `segments` field.'), 'misconfigured'],
    [invalid('Only your own email address.', 403), 'misconfigured'],
    [error(429, 'daily_quota_exceeded', 'You have reached your daily quota'), 'unreached'],
    [{ status: 201, body: { object: 'contact' } }, 'unclear'],
  ],
  { to: 'POST' },
)

// The time tells a contact from ours.
answers(
  'in doubt, a look-up',
  createAgain(),
  (
    [
      ['2023-10-06 23:47:56.678+00', false],
      [new Date().toISOString(), true],
      ['yesterday', undefined],
    ] as const
  ).map(([created_at, ours]) => [
    { status: 200, body: { object: 'contact', id: 'c1', email, created_at } },
    { is: 'existing', providerId: 'c1', ours },
  ]),
)

// A 2xx that is not as documented is neither a good key nor a start of the automation.
for (const set of [{}, { RESEND_SEGMENT_IDS: '' }]) {
  const undocumented = [{}, '<html>Welcome</html>'].map(body => ({ status: 200, body }))
  answers(
    `with ${JSON.stringify(set)}, a check`,
    check,
    undocumented.map(said => [said, 'unreached']),
    { set },
  )
}
answers(
  'a start',
  start(),
  [{}, '<html>Welcome</html>'].map(body => [{ status: 200, body }, 'unclear']),
)
