import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { contactOf, providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, exactly, listOf, object, taking, text, vendorApi } from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, never, vendorTable } from './table.ts'

const KEY_ID = 'a1'.repeat(12)
const SECRET = 'b2'.repeat(32)
const anotherSecret = `${KEY_ID}:${'0'.repeat(64)}`
const ghostSettings = (url: string) => ({ GHOST_BASE_URL: url, GHOST_ADMIN_API_KEY: `${KEY_ID}:${SECRET}` })

const hex = (number: number) => number.toString(16).padStart(24, '0')
const DEFAULT = hex(0xd0)
const EARLY = hex(0xd1)
const ARCHIVED = hex(0xd2)

interface GhostFake extends VendorFake {
  /** Status by id. */
  readonly newsletters: Map<string, string>
  /** Seconds by which the server's clock is ahead of ours. */
  ahead: number
}

interface Named {
  readonly id: string
  readonly name: string
}
interface Member extends Named {
  readonly email: string
  readonly note: string | null
  labels: readonly Named[]
  newsletters: readonly Named[]
}

/*
 * Facts of Ghost 6.65.0 (MIT), as far as we send or read it: what its schemas of the Admin API take, and the shape of what a
 * server of that version answered to them. What it does not know is dropped there, and is a mistake here.
 */
const upTo = (maxLength: number) => ({ type: 'string', maxLength })
/** By name or id; a text is a name. */
const byName = listOf({
  anyOf: [{ ...object({}, { id: upTo(24), name: upTo(191) }), minProperties: 1 }, upTo(191)],
})
const sent = { note: upTo(2_000), labels: byName, newsletters: byName }
const one = (item: object) => exactly({ members: { ...listOf(item), minItems: 1, maxItems: 1 } })
const name = { ...upTo(191), pattern: '^([^,]|$)' }

const notSaved = (context: string, more: object = {}) => ({
  message: 'Validation error, cannot save member.',
  context,
  type: 'ValidationError',
  ...more,
})
const unauthorized = (message: string, code = 'INVALID_JWT') => ({ message, type: 'UnauthorizedError', code })

/** The answers that tell one mistake from another, as that server gave them. */
const said = {
  known: notSaved('Member already exists. Attempting to add member with existing email address', { property: 'email' }),
  invalid: notSaved('Invalid Email', { property: 'email' }),
  tooLong: notSaved('Validation failed for email.', { property: 'email' }),
  comma: notSaved('Validation failed for name.', { property: 'name' }),
  noNewsletter: notSaved('Value in [newsletters.name] cannot be blank. newsletters.name'),
  signature: unauthorized('Invalid token: invalid signature'),
  expired: unauthorized('Invalid token: jwt expired'),
  tooOld: unauthorized('Invalid token: maxAge exceeded'),
  audience: unauthorized('Invalid token: jwt audience invalid. expected: //?admin/?$/'),
  unknownKey: unauthorized('Unknown Admin API Key', 'UNKNOWN_ADMIN_API_KEY'),
  noHeader: unauthorized('Authorization header format is "Authorization: Ghost [token]"', 'INVALID_AUTH_HEADER'),
  filter: { message: 'Request not understood error, cannot list members.', type: 'BadRequestError' },
  notFound: { message: 'Resource not found error, cannot edit member.', type: 'NotFoundError' },
}
const refuse = (status: number, what: keyof typeof said): Said => ({ status, body: { errors: [said[what]] } })

/** As a Ghost 6.65.0 answered: unique addresses, labels by name, archived newsletters left out without a word. */
function ghostFake(): GhostFake {
  const { contacts, find, facts } = contactBook<Member>()
  const labels: Named[] = []
  const newsletters = new Map([
    [DEFAULT, 'active'],
    [EARLY, 'active'],
    [ARCHIVED, 'archived'],
  ])
  let ids = 0

  /** One with an id alone is dropped without a word. */
  function labelled(wanted: readonly (string | { name?: string })[]): readonly Named[] {
    const names = wanted.map(each => (typeof each === 'string' ? each : (each.name ?? ''))).filter(name => name !== '')
    const found = names.map(name => {
      const known = labels.find(each => each.name.toLowerCase() === name.toLowerCase())
      if (known !== undefined) return known
      const label = { id: hex(++ids), name }
      labels.push(label)
      return label
    })
    return [...new Set(found)]
  }

  /** Undefined: one of them does not exist. */
  function subscribed(wanted: readonly { id: string }[]): readonly Named[] | undefined {
    if (wanted.some(({ id }) => !newsletters.has(id))) return undefined
    const active = wanted.filter(({ id }) => newsletters.get(id) === 'active')
    return active.map(({ id }) => ({ id, name: `Newsletter ${id}`, status: 'active' }))
  }

  const shown = (status: number, member: Member): Said => ({
    status,
    body: { members: [{ ...member, subscribed: member.newsletters.length > 0 }] },
  })

  function add({ json }: Received): Said {
    const { email, name = null, note = null, labels: wanted = [], newsletters = [{ id: DEFAULT }] } = json.members[0]
    if (email.length > 191) return refuse(422, 'tooLong')
    if (!/^[^@\s"\\]+@[^@\s]+\.[a-z]+$/.test(email)) return refuse(422, 'invalid')
    const active = subscribed(newsletters)
    if (active === undefined) return refuse(422, 'noNewsletter')
    if (contacts.has(email)) return refuse(422, 'known')
    const member: Member = { id: hex(++ids), email, name, note, labels: labelled(wanted), newsletters: active }
    contacts.set(email, member)
    return shown(201, member)
  }

  function edit(id: string | undefined, { labels: wanted, newsletters: listed }: Received['json']): Said {
    const member = find(each => each.id === id)
    if (member === undefined) return refuse(404, 'notFound')
    const active = listed === undefined ? member.newsletters : subscribed(listed)
    if (active === undefined) return refuse(422, 'noNewsletter')
    member.newsletters = active
    if (wanted !== undefined) member.labels = labelled(wanted)
    return shown(200, member)
  }

  function remove(id: string | undefined): Said {
    const member = find(each => each.id === id)
    return member !== undefined && contacts.delete(member.email) ? { status: 204 } : refuse(404, 'notFound')
  }

  function browse({ filter, fields }: Received['query']): Said {
    if (filter === undefined) {
      return { status: 200, body: { members: fields === 'id' ? [{ id: hex(1) }] : [], meta: {} } }
    }
    const [, quoted] = /^email:'((?:\\['"]|[^'"])+)'$/.exec(filter) ?? []
    if (quoted === undefined) return refuse(400, 'filter')
    const found = contacts.get(quoted.replaceAll(/\\(['"])/g, '$1'))
    return { status: 200, body: { members: found === undefined ? [] : [found], meta: {} } }
  }

  /** Undefined: the token is good. */
  function doubtful({ headers }: Received): Said | undefined {
    const [, token] = /^Ghost (\S+)$/.exec(headers.authorization ?? '') ?? []
    if (token === undefined) return refuse(401, 'noHeader')
    const [header = '', payload = '', signature] = token.split('.')
    const { kid, alg } = JSON.parse(Buffer.from(header, 'base64url').toString())
    const { iat, exp, aud } = JSON.parse(Buffer.from(payload, 'base64url').toString())
    if (kid !== KEY_ID || alg !== 'HS256') return refuse(401, 'unknownKey')
    const expected = createHmac('sha256', Buffer.from(SECRET, 'hex')).update(`${header}.${payload}`)
    if (signature !== expected.digest('base64url')) return refuse(401, 'signature')
    const now = Date.now() / 1_000 + fake.ahead
    if (!/\/?admin\/?$/.test(aud)) return refuse(401, 'audience')
    if (now >= exp) return refuse(401, 'expired')
    return now >= iat + 300 ? refuse(401, 'tooOld') : undefined
  }

  const listed = (filter: string | undefined) =>
    [...newsletters].filter(([, status]) => filter !== 'status:active' || status === 'active').map(([id]) => ({ id }))

  const fake: GhostFake = {
    ...facts,
    newsletters,
    ahead: 0,
    answer: vendorApi({
      refuses: doubtful,
      routes: {
        'GET /ghost/api/admin/members/': ({ query }) => browse(query),
        // An address that it does not take is answered with a 422, and tried by the tests.
        'POST /ghost/api/admin/members/': taking(one(exactly({ email: text }, { ...sent, name })), add),
        'PUT /ghost/api/admin/members/{id}/': taking(one(exactly({}, sent)), ({ at, json }) =>
          edit(at.id, json.members[0]),
        ),
        'DELETE /ghost/api/admin/members/{id}/': ({ at }) => remove(at.id),
        'GET /ghost/api/admin/newsletters/': ({ query }) => ({
          status: 200,
          body: { newsletters: listed(query.filter), meta: {} },
        }),
      },
    }),
    had(email) {
      const old = { id: hex(++ids), email, name: 'Old', note: 'Met in Rome' }
      contacts.set(email, { ...old, labels: labelled(['VIP']), newsletters: subscribed([{ id: DEFAULT }])! })
    },
    joined: email => contacts.get(email)?.labels.some(({ name }) => name === 'Early access') ?? false,
  }
  return fake
}

const joining = { GHOST_LABELS: 'Early access', GHOST_NEWSLETTER_IDS: EARLY }
const ghost = {
  vendor: 'ghost',
  settings: ghostSettings,
  wrongKey: { GHOST_ADMIN_API_KEY: anotherSecret },
  wrongSetting: { GHOST_NEWSLETTER_IDS: '0123456789abcdef01234567' },
  fake: ghostFake,
  refused: 'refused@example',
  joining: { settings: joining, members: ['labels'] },
  start: null,
} as const
providerContract(ghost)

const { started, rows, answers, contradictions } = vendorTable(ghost)
const join = { PROVIDER_EXISTING: 'join' }
const PATH = '/ghost/api/admin/members/'
const CREATE = `POST ${PATH}`
const FIND = `GET ${PATH}?filter=email:'ada@example.com'`
const least = { email: 'ada@example.com', name: 'Ada King Lovelace', note: `waitlist ${ada.id}` }
const long = contactOf(`${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(20)}.com`)
const another = contactOf(ada.email, { id: '01981d4f-3c00-7c4e-9d0a-000000000000' })

const payloadOf = ({ headers }: Received) =>
  JSON.parse(Buffer.from(headers.authorization!.split('.')[1]!, 'base64url').toString())

rows({
  'with no setting but the least name, address and our mark are sent': {
    calls: [[create(), 'created', [CREATE, { members: [least] }]]],
  },
  'with every setting labels and newsletters are sent, too': {
    set: { GHOST_LABELS: 'Early access, Beta', GHOST_NEWSLETTER_IDS: EARLY },
    calls: [
      [
        create(),
        'created',
        [CREATE, { members: [{ ...least, labels: ['Early access', 'Beta'], newsletters: [{ id: EARLY }] }] }],
      ],
    ],
  },
  'an address that is too long for Ghost is refused': {
    calls: [[create(long), { is: 'refused', reason: 'it is not valid there' }]],
  },
  'in doubt, another contact of the address is not ours': {
    calls: [
      [create(), 'created'],
      [createAgain(another), { is: 'existing', providerId: '000000000000000000000001', ours: false }],
    ],
  },
  'in doubt, a member that cannot be seen is not ours': {
    had: ada.email,
    says: ({ method }) => (method === 'GET' ? { status: 200, body: { members: [], meta: {} } } : undefined),
    calls: [[createAgain(), { is: 'existing', ours: false }]],
  },
  // MySQL, by default, compares without accents.
  'a label that Ghost finds under another spelling is no mistake': {
    set: { GHOST_LABELS: 'Ete' },
    says: { status: 201, body: { members: [{ id: 'a', labels: [{ id: '1', name: 'Été' }], newsletters: [] }] } },
    calls: [[create(), 'created']],
  },
  'who was there before and joins keeps its labels, and is subscribed to nothing that it may have left': {
    set: { ...joining, ...join },
    had: ada.email,
    calls: [[create(), 'existing']],
    keeps: { labels: [{ name: 'VIP' }, { name: 'Early access' }] },
    afterwards: fake => assert.equal((fake.kept(ada.email) as { newsletters: object[] }).newsletters.length, 1),
  },
  'who was there before is not edited if it has the labels, however they are written': {
    set: { ...join, GHOST_LABELS: 'vip', GHOST_NEWSLETTER_IDS: DEFAULT },
    had: ada.email,
    calls: [[create(), 'existing', CREATE, FIND]],
  },
  'who was there before is not even looked for if no label is set': {
    set: { ...join, GHOST_NEWSLETTER_IDS: EARLY },
    had: ada.email,
    calls: [[create(), 'existing', CREATE]],
  },
})

for (const email of ["o'brien@example.com", "'+(a,b)[c]~-:!#$%&*/=?^_`{|}@example.com"]) {
  const odd = contactOf(email)
  rows({
    [`${email}, which has signs of the filter, is found as it is`]: {
      calls: [
        [create(odd), 'created'],
        [createAgain(odd), { is: 'existing', providerId: '000000000000000000000001', ours: true }],
      ],
    },
  })
}

for (const [name, kept] of [
  [', Ada', 'Ada'],
  [',,', ''],
  ['King, Ada', 'King, Ada'],
] as const) {
  rows({
    [`the name ${JSON.stringify(name)} is kept as ${JSON.stringify(kept)}: Ghost takes no comma at the beginning`]: {
      calls: [[create({ ...ada, name }), 'created']],
      keeps: { name: kept },
    },
  })
}

const saying = (status: number, what: object): Said => ({ status, body: { errors: [what] } })
answers('a creation', create(), [
  [saying(422, said.known), 'existing'],
  [saying(422, said.invalid), 'refused'],
  [saying(422, said.tooLong), 'refused'],
  [saying(422, said.comma), 'misconfigured'],
  [saying(422, said.noNewsletter), 'misconfigured'],
  [saying(400, said.known), 'misconfigured'],
  [saying(403, said.invalid), 'misconfigured'],
  ...['Domain is blocked', 'Invalid Email domain list', '', null, ['Invalid Email']].map(
    context => [saying(422, { ...said.invalid, context }), 'misconfigured'] as const,
  ),
])
const searched = { to: 'GET', had: ada.email }
answers(
  'in doubt, a search',
  createAgain(),
  [
    [{ status: 400, body: {} }, 'misconfigured'],
    [{ status: 500 }, 'unreached'],
    [{ status: 200, body: {} }, 'unreached'],
  ],
  searched,
)

test('its address may have a path, and slashes at the end', async t => {
  const { server, provider } = await started(t, {}, { status: 404 })
  await provider.createContact(ada, false, never)
  const below = await started(t, { GHOST_BASE_URL: `${server.url}/blog//` })
  await below.provider.createContact(ada, false, never)
  assert.deepEqual(
    server.received.map(({ path }) => path),
    [PATH, `/blog${PATH}`],
  )
})

test('every call has a token of its own, for five minutes from now, and the version', async t => {
  const { server, provider } = await started(t, { GHOST_NEWSLETTER_IDS: EARLY })
  const now = Math.floor(Date.now() / 1_000)
  t.mock.timers.enable({ apis: ['Date'], now: now * 1_000 })
  await provider.createContact(ada, false, never)
  t.mock.timers.setTime((now + 301) * 1_000)
  assert.equal(await provider.check(never), null)
  assert.deepEqual(
    server.received.map(payloadOf),
    [now, now + 301, now + 301].map(iat => ({ iat, exp: iat + 300, aud: '/admin/' })),
  )
  assert.ok(server.received.every(({ headers }) => headers['accept-version'] === 'v6.0'))
})

test('a clock that is less than five minutes slow, or fast, does no harm; a slower one is told by name', async t => {
  for (const ahead of [-3_600, -299, 0, 290]) {
    const { fake, provider } = await started(t)
    fake.ahead = ahead
    assert.equal((await provider.createContact(ada, false, never)).is, 'created', String(ahead))
  }
  const { fake, provider } = await started(t)
  fake.ahead = 301
  const creation = await provider.createContact(ada, false, never)
  assert.ok(creation.is === 'misconfigured')
  assert.match(creation.why, /Invalid token: jwt expired/)
})

test('a token is never in what is said to the log, even if the answer repeats it', async t => {
  let token = ''
  const { provider } = await started(t, {}, ({ headers }) => {
    token = headers.authorization!.split(' ')[1]!
    return saying(401, { message: `Invalid: ${token} (${headers.authorization})` })
  })
  for (const failure of [await provider.createContact(ada, true, never), await provider.check(never)]) {
    assert.ok(failure?.is === 'misconfigured')
    assert.match(failure.why, /Invalid/)
    for (const part of [token, ...token.split('.')]) assert.ok(!failure.why.includes(part), failure.why)
  }
})

test('in doubt, ours carries our mark, whatever was written beside it', async t => {
  const { fake, provider } = await started(t)
  await provider.createContact(ada, false, never)
  const member = fake.kept(ada.email) as { id: string; note: string }
  member.note = `${member.note}\nmet in Rome`
  const ours = { is: 'existing', providerId: member.id, ours: true }
  assert.deepEqual(await provider.createContact(ada, true, never), ours)
})

test('an archived newsletter, which is left out without a word, is our mistake, and joined once it is back', async t => {
  const change = { GHOST_LABELS: 'Early access', GHOST_NEWSLETTER_IDS: `${EARLY},${ARCHIVED}` }
  const { fake, server, provider } = await started(t, change)
  for (const doubt of [false, true]) {
    const creation = await provider.createContact(ada, doubt, never)
    assert.ok(creation.is === 'misconfigured' && creation.tookEffect, JSON.stringify(creation))
    assert.match(creation.why, /not with every newsletter: are they active\?$/)
  }
  fake.newsletters.set(ARCHIVED, 'active')
  const last = await provider.createContact(ada, true, never)
  assert.ok(last.is === 'existing' && last.ours === true)
  const newsletters = [{ id: EARLY }, { id: ARCHIVED }]
  assert.partialDeepStrictEqual(fake.kept(ada.email), { labels: [{ name: 'Early access' }], newsletters })
  // Only what it lacks, beside what it has of the same kind.
  const { json } = server.received.findLast(({ method }) => method === 'PUT')!
  assert.deepEqual(Object.keys(json.members[0]), ['newsletters'])
})

for (const [status, is] of [
  [404, 'misconfigured'],
  [503, 'unclear'],
] as const) {
  test(`an edit that fails with ${status} leaves doubt about one of ours`, async t => {
    const failing = ({ method }: Received) => (method === 'PUT' ? { status, body: {} } : undefined)
    const { provider } = await started(t, { GHOST_NEWSLETTER_IDS: `${DEFAULT},${ARCHIVED}` }, failing)
    await provider.createContact(ada, false, never)
    const creation = await provider.createContact(ada, true, never)
    assert.equal(creation.is, is)
    assert.equal('tookEffect' in creation, is === 'misconfigured')
  })
}

test('the check tries the key, and looks for every newsletter among the active ones', async t => {
  const { fake, provider } = await started(t, { GHOST_NEWSLETTER_IDS: `${EARLY},${ARCHIVED}` })
  const why = `look at the newsletters: ${ARCHIVED} is not among the active ones`
  assert.deepEqual(await check(provider), { is: 'misconfigured', why })
  fake.newsletters.set(ARCHIVED, 'active')
  assert.equal(await check(provider), null)
})

const [id, secret] = ghostSettings('').GHOST_ADMIN_API_KEY.split(':') as [string, string]
contradictions(
  [id, secret, `${secret}:${id}`, `${id}:${secret}0`, `${id}:${secret.slice(1)}g`].map(key => [
    { GHOST_ADMIN_API_KEY: key },
    /^GHOST_ADMIN_API_KEY must be an Admin API key: 24 hexadecimal digits/,
  ]),
)
