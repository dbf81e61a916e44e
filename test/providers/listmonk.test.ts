import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as passes } from 'node:timers/promises'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, providerContract } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'
import { type ListmonkFake, listmonkFake, listmonkSettings } from './listmonk.fake.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable } from './table.ts'

const listmonk = {
  vendor: 'listmonk',
  settings: listmonkSettings,
  wrongKey: { LISTMONK_TOKEN: 'another-token' },
  wrongSetting: { LISTMONK_LIST_IDS: '99' },
  fake: listmonkFake,
  refused: 'refused@example.com',
  joining: { members: ['lists'] },
  // A mail to nobody, which listmonk refuses after it has found the template.
  harmless: 'POST /api/tx',
  sources: { contact: within('attribs') },
  start: { path: /^\/api\/tx$/, done: { status: 200, body: { data: true } } },
} as const
providerContract(listmonk)

const { started, rows, answers } = vendorTable(listmonk)
const join = { PROVIDER_EXISTING: 'join' }
const CREATE = 'POST /api/subscribers'
const FIND = 'GET /api/subscribers?search=^ada@example\\.com$&per_page=1'
const LISTS = ['GET /api/lists/1', 'GET /api/lists/2']
const another = contactOf(ada.email, { id: '01981d4f-3c00-7c4e-9d0a-000000000000' })
const namesake = contactOf('bob@example.com', { name: ada.email })
const old = contactOf('old@example.com')
const body = { email: ada.email, name: 'Ada King Lovelace', status: 'enabled', lists: [1, 2] }
const ours = { is: 'existing', providerId: '1', ours: true }

rows({
  'what is sent with the least': {
    calls: [
      [check, null, 'GET /api/profile', ...LISTS, ['POST /api/tx', { subscriber_id: 2_147_483_647, template_id: 5 }]],
      [create(), { is: 'created', providerId: '1' }, [CREATE, { ...body, attribs: { waitlist: ada.id } }]],
      [create(), { is: 'existing' }, CREATE],
      [createAgain(), ours, CREATE, FIND],
      [start(), 'delivered', ['POST /api/tx', { subscriber_email: ada.email, template_id: 5 }]],
      [start({ ...ada, providerId: '1' }), 'delivered', ['POST /api/tx', { subscriber_id: 1, template_id: 5 }]],
      // By its mark alone.
      [createAgain(another), { ...ours, ours: false }],
      [remove(), { is: 'removed' }, FIND, 'DELETE /api/subscribers/1'],
      [remove(), { is: 'absent' }, FIND, 'GET /api/profile'],
    ],
  },
  'without a template there is no automation, and the check looks at the user and the lists': {
    set: { LISTMONK_TEMPLATE_ID: '' },
    calls: [
      [async ({ automation }) => automation, null],
      [check, null, 'GET /api/profile', ...LISTS],
    ],
  },
  'the lists of a subscriber who is not ours stay as they are': {
    had: ada.email,
    calls: [[createAgain(), { ...ours, ours: false }, CREATE, FIND]],
  },
  'whose address is the name of another one cannot be told, nor joined, and is to be removed by hand': {
    set: join,
    had: ada.email,
    calls: [
      [create(namesake), 'created'],
      [createAgain(), { is: 'existing' }],
      [create(), { is: 'existing' }],
      [remove(), 'by hand'],
    ],
    joined: false,
  },
  'an address of a blocked domain is refused in the words that the server has for it': {
    calls: [
      [
        create(contactOf('ada@blocked.example')),
        { is: 'refused', reason: 'its domain is blocked there' },
        CREATE,
        'GET /api/config',
        'GET /api/lang/de',
      ],
    ],
  },
  'a language pack of its longest language is read': {
    says({ path }) {
      if (path === '/api/config') return undefined
      const long = { 'subscribers.invalidEmail': 'Nein', 'the longest': 'ക'.repeat(92_000 / 3) }
      if (path.startsWith('/api/lang')) return { status: 200, body: { data: long } }
      return { status: 400, body: { message: 'Nein' } }
    },
    calls: [[create(), 'refused']],
  },
  'a mail to nobody is refused': {
    calls: [
      [start(), 'refused'],
      [start({ ...ada, providerId: '1' }), 'refused'],
    ],
  },
  'the check tells of an API user who may not mail': {
    says: ({ path }) => (path === '/api/tx' ? { status: 403, body: { message: 'permission denied' } } : undefined),
    calls: [[check, 'misconfigured']],
  },
})

for (const email of ["a.b+c*d?e^f$g|h{1}i/j'k@example.com", 'ada+waitlist@example.com']) {
  const odd = contactOf(email)
  rows({
    [`${email} is found as it is, though the search takes a regular expression`]: {
      had: old.email,
      calls: [
        [create(odd), 'created'],
        [createAgain(odd), { ...ours, providerId: '2' }],
      ],
    },
  })
}

for (const user of [{ user_role: { id: 1, permissions: [] }, list_role: null }, {}]) {
  rows({
    [`the check believes the owner, who may do everything: ${JSON.stringify(user)}`]: {
      says: ({ path }) => (path === '/api/profile' ? { status: 200, body: { data: user } } : undefined),
      calls: [[check, null]],
    },
  })
}

answers(
  'in doubt, a search',
  createAgain(),
  [
    [{ status: 403, body: {} }, 'misconfigured'],
    [{ status: 500, body: {} }, 'unreached'],
    [{ status: 200, body: {} }, 'unreached'],
  ],
  { to: 'GET', had: ada.email },
)

const saying = (status: number, message: string): Said => ({ status, body: { message } })
const refused = saying(400, 'Ungültige E-Mail.')
answers(
  'a creation',
  create(),
  [
    [refused, 'refused'],
    [saying(403, 'Zugriff verweigert: lists'), 'misconfigured'],
    [saying(404, 'Not Found'), 'misconfigured'],
    [saying(422, 'Ungültige E-Mail.'), 'misconfigured'],
    [saying(400, 'Request blocked by policy'), 'misconfigured'],
    [saying(400, 'Unmarshal type error: expected=[]int, got=string'), 'misconfigured'],
    // Words of another language, of another message, or not all of them.
    [saying(400, 'Invalid email.'), 'misconfigured'],
    [saying(400, 'E-Mail existiert bereits.'), 'misconfigured'],
    [saying(400, 'Ungültige E-Mail. (policy)'), 'misconfigured'],
    [{ status: 400, body: '<html>Bad Request</html>' }, 'misconfigured'],
    [{ status: 400, body: {} }, 'misconfigured'],
  ],
  { to: 'POST' },
)
for (const [where, said, is] of [
  ['/api/config', saying(403, 'No'), 'misconfigured'],
  ['/api/config', { status: 500, body: {} }, 'unreached'],
  ['/api/lang/de', { status: 200, body: { data: {} } }, 'misconfigured'],
] as const) {
  rows({
    [`words of a refusal for which ${where} says ${JSON.stringify(said)} are ${is}`]: {
      says: ({ path, method }) => (path === where ? said : method === 'POST' ? refused : undefined),
      calls: [[create(), is]],
    },
  })
}

const checks: readonly (readonly [what: string, change: (fake: ListmonkFake) => void, why: RegExp | null])[] = [
  ['a list is gone', fake => fake.lists.delete(2), /^look at list 2: answered with 400/],
  ['two lists may be managed', fake => (fake.granted = new Set([1, 2])), null],
  ['one list may be managed', fake => (fake.granted = new Set([1])), /^the API user lacks list:manage for list 2$/],
  [
    'it may only mail',
    fake => (fake.permissions = ['tx:send']),
    /^the API user lacks subscribers:manage, subscribers:get$/,
  ],
  ['it may not mail', fake => (fake.permissions = ['subscribers:get_all', 'subscribers:manage']), null],
  ['the template is gone', fake => fake.templates.delete(5), /^look at template 5: answered with 400/],
]
for (const [what, change, why] of checks) {
  test(`the check, when ${what}, says ${why?.source ?? 'nothing'}`, async t => {
    const { fake, provider } = await started(t)
    change(fake)
    const failure = await provider.check(never)
    if (why === null) return assert.equal(failure, null)
    assert.match(failure?.is === 'misconfigured' ? failure.why : '', why)
  })
}

// Each comes twice, takes our mark, or is none.
test('in doubt, one that the API user may not see is not ours', async t => {
  const { fake, provider } = await started(t)
  fake.lists.set(7, 'single')
  fake.put(ada.email, 'enabled', { 7: 'unconfirmed' })
  fake.granted = new Set([1, 2])
  assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing', ours: false })
  // Ours may be on none but a list that is gone, or no longer the API user's.
  fake.lists.delete(2)
  const creation = await provider.createContact(ada, true, never)
  assert.ok(creation.is === 'misconfigured' && creation.tookEffect)
})

const breaks: readonly (readonly [what: string, change: (fake: ListmonkFake) => void])[] = [
  ['gone', fake => fake.lists.delete(2)],
  ['forbidden', fake => (fake.granted = new Set([1]))],
]
for (const [what, change] of breaks) {
  test(`a list that is ${what} is our mistake, and joined once it is mended, with one opt-in mail`, async t => {
    const { fake, server, provider } = await started(t)
    change(fake)
    // The second attempt finds that nothing has changed.
    for (const [doubt, why] of [
      [false, /not on the lists 2: do they exist/],
      [true, /^look at list 2: answered with 40[03]/],
    ] as const) {
      const creation = await provider.createContact(ada, doubt, never)
      assert.ok(creation.is === 'misconfigured' && creation.tookEffect)
      assert.match(creation.why, why)
    }
    fake.lists.set(2, 'double')
    fake.granted = new Set([1, 2])
    assert.equal(fake.confirmations(ada.email), 0)
    assert.deepEqual(await provider.createContact(ada, true, never), ours)
    assert.deepEqual([fake.joined!(ada.email), fake.confirmations(ada.email)], [true, 1])
    const added = { ids: [1], action: 'add', target_list_ids: [2], status: 'unconfirmed' }
    assert.deepEqual(server.received.findLast(({ method }) => method === 'PUT')?.json, added)
  })

  test(`for one that it knew, a list that is ${what} is our mistake, and leaves no doubt`, async t => {
    const { fake, provider } = await started(t, join)
    fake.put(ada.email, 'enabled', { 1: 'confirmed' })
    change(fake)
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'misconfigured' && !creation.tookEffect, JSON.stringify(creation))
  })
}

for (const [what, is, mails] of [
  ['503', 'unclear', 1],
  ['429', 'unclear', 1],
  ['403 of unknown wording', 'misconfigured', 1],
  ['hang after', 'existing', 1],
  ['500 after', 'existing', 1],
  ['500 before', 'existing', 0],
] as const) {
  const skip = !isSlow && 'it runs in .ci/run'
  test(`an opt-in mail that meets "${what}" is ${is}, and sent ${mails} times in the end`, { skip }, async t => {
    const { fake, server, provider } = await started(t)
    fake.lists.delete(2)
    await provider.createContact(ada, false, never)
    fake.lists.set(2, 'double')
    // Create, find, look, add, and then the mail.
    server.next(null, null, null, null, what)
    assert.equal((await provider.createContact(ada, true, never)).is, is)
    if (is !== 'existing') while ((await provider.createContact(ada, true, never)).is !== 'existing') await passes(200)
    assert.equal(fake.confirmations(ada.email), mails)
  })
}

test('in doubt, listmonk asked for the confirmation at the creation, and nobody asks again', async t => {
  const { fake, server, provider } = await started(t)
  server.next('reset after')
  assert.equal((await provider.createContact(ada, false, never)).is, 'unclear')
  assert.deepEqual(await provider.createContact(ada, true, never), ours)
  assert.equal(fake.confirmations(ada.email), 1)
})

for (const [status, is] of [
  [400, 'misconfigured'],
  [500, 'unclear'],
  [503, 'unclear'],
] as const) {
  test(`an addition to a list that is answered with ${status} leaves doubt`, async t => {
    const failing = ({ method }: Received) => (method === 'PUT' ? saying(status, 'No') : undefined)
    const { fake, provider } = await started(t, {}, failing)
    fake.lists.delete(2)
    await provider.createContact(ada, false, never)
    fake.lists.set(2, 'double')
    const creation = await provider.createContact(ada, true, never)
    assert.equal(creation.is, is)
    assert.equal(creation.is === 'misconfigured' && creation.tookEffect, is === 'misconfigured')
  })
}

test('a mail without its template waits until the template is there', async t => {
  const { fake, provider } = await started(t)
  await provider.createContact(ada, false, never)
  fake.templates.delete(5)
  for (const is of ['misconfigured', 'delivered']) {
    assert.equal(Object(await start()(provider)).is, is)
    fake.templates.add(5)
  }
})

test('confirmed on behalf of its owner, nobody is asked; attributes go beside our mark', async t => {
  const settings = { LISTMONK_PRECONFIRM: 'true', PROVIDER_FIELDS: 'source=landing page, plan=a=b' }
  const { fake, server, provider } = await started(t, { ...settings, ...join })
  fake.lists.delete(2)
  await provider.createContact(ada, false, never)
  fake.lists.set(2, 'double')
  await provider.createContact(ada, true, never)
  fake.had(old.email)
  await provider.createContact(old, false, never)
  const attribs = { source: 'landing page', plan: 'a=b', waitlist: ada.id }
  assert.deepEqual(server.received[0]?.json, { ...body, attribs, preconfirm_subscriptions: true })
  // It would ask for other lists too.
  assert.ok(server.received.every(({ path }) => !path.endsWith('/optin')))
  for (const email of [ada.email, old.email]) assert.deepEqual(fake.on(email), { 1: 'confirmed', 2: 'confirmed' })
})

describe('who was there before and joins', () => {
  test('is added to what is missing, as unconfirmed, and asked for the confirmation once', async t => {
    const { fake, server, provider } = await started(t, join)
    fake.put(ada.email, 'enabled', { 1: 'confirmed' })
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
    assert.deepEqual(fake.on(ada.email), { 1: 'confirmed', 2: 'unconfirmed' })
    assert.equal(fake.confirmations(ada.email), 1)
    assert.equal(server.received.length, 5)
  })

  for (const [status, lists] of [
    ['enabled', { 1: 'confirmed', 2: 'confirmed' }],
    ['enabled', { 1: 'unconfirmed', 2: 'unconfirmed' }],
    ['enabled', { 1: 'unsubscribed' }],
    ['enabled', { 1: 'confirmed', 2: 'unsubscribed' }],
    ['blocklisted', {}],
    ['disabled', {}],
  ] as const) {
    test(`is left alone if it is ${status} and on lists as ${JSON.stringify(lists)}`, async t => {
      const { fake, server, provider } = await started(t, join)
      fake.put(ada.email, status, lists)
      for (const doubt of [false, true]) assert.equal((await provider.createContact(ada, doubt, never)).is, 'existing')
      assert.deepEqual(fake.on(ada.email), lists)
      assert.ok(server.received.every(({ method, path }) => method === 'GET' || path === '/api/subscribers'))
    })
  }

  for (const sees of [false, true]) {
    test(`is left alone if the API user may ${sees ? 'see it, but not change it' : 'not see it'}`, async t => {
      const { fake, server, provider } = await started(t, join, ({ method }) => {
        // With `subscribers:get_all` it sees those of all lists.
        fake.granted = sees && method === 'GET' ? null : new Set([1, 2])
        return undefined
      })
      fake.lists.set(7, 'single')
      fake.put(ada.email, 'enabled', { 7: 'unconfirmed' })
      assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
      assert.deepEqual(fake.on(ada.email), { 7: 'unconfirmed' })
      assert.equal(server.received.at(-1)?.method, sees ? 'PUT' : 'GET')
    })
  }
})

test('whom the API user does not see is not called absent', async t => {
  const { fake, provider } = await started(t)
  fake.granted = new Set([1, 2])
  fake.permissions = ['subscribers:get', 'subscribers:manage']
  fake.put(old.email, 'enabled', { 1: 'confirmed' })
  fake.had(ada.email)
  const said = await provider.remove(ada.email, never)
  assert.ok(said.is === 'by hand' && said.how.includes('API user'), JSON.stringify(said))
  assert.deepEqual(await provider.remove(old.email, never), { is: 'removed' })
  assert.deepEqual([fake.count(ada.email), fake.count(old.email)], [1, 0])
})
