import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BrevoClient } from '@getbrevo/brevo'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, met, providerContract } from '../contracts/provider.ts'
import type { Said } from '../harness/receiver.ts'
import { type BrevoFake, brevoDoubleOptIn, brevoFake, brevoSettings } from './brevo.fake.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable, waitAfter } from './table.ts'

const brevo = {
  vendor: 'brevo',
  settings: brevoSettings,
  wrongKey: { BREVO_API_KEY: 'xkeysib-another' },
  wrongSetting: { BREVO_LIST_IDS: '99' },
  fake: brevoFake,
  refused: 'refused@example.com',
  joining: { members: ['listIds', 'modifiedAt'] },
  sources: [{ event: within('event_properties') }],
  start: { path: /^\/v3\/events$/, done: { status: 204 } },
} as const
providerContract(brevo)

const { started, rows, answers, sameRequests, contradictions } = vendorTable(brevo)
const join = { PROVIDER_EXISTING: 'join' }
const bob = contactOf('bob@example.com', { name: 'Bob' })
const FIND = 'GET /v3/contacts/ada@example.com'
const ASK = 'POST /v3/contacts/doubleOptinConfirmation'
const headers = ['content-type', 'api-key']
const error = (code: string, message: string, metadata?: object): Said => ({
  status: 400,
  body: { code, message, ...(metadata && { metadata }) },
})
/** Its base address has the version in it. */
const client = (url: string) =>
  new BrevoClient({ apiKey: brevoSettings('').BREVO_API_KEY, baseUrl: `${url}/v3`, maxRetries: 0 })

sameRequests('with lists', {
  ours: [
    [check, null],
    [create(), { is: 'created', providerId: '1' }],
    [create(), { is: 'existing' }],
    [createAgain(), { is: 'existing', providerId: '1', ours: true }],
    [start({ ...ada, providerId: '1' }), 'delivered'],
    [start(), 'delivered'],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
  async theirs(url) {
    const { contacts, event } = client(url)
    const attributes = { FIRSTNAME: 'Ada', LASTNAME: 'King Lovelace' }
    const request = { email: ada.email, attributes, listIds: [2, 5], updateEnabled: false }
    const deletion = { identifier: ada.email, identifierType: 'email_id' } as const
    await contacts.getAttributes()
    await contacts.getList({ listId: 2 })
    await contacts.getList({ listId: 5 })
    await contacts.createContact(request)
    await contacts.createContact(request).catch(() => {})
    await contacts.createContact(request).catch(() => {})
    await contacts.getContactInfo({ identifier: ada.email })
    await event.createEvent({ event_name: 'waitlist_joined', identifiers: { contact_id: 1 } })
    await event.createEvent({ event_name: 'waitlist_joined', identifiers: { email_id: ada.email } })
    await contacts.deleteContact(deletion)
    await contacts.deleteContact(deletion).catch(() => {})
  },
  headers,
})

sameRequests('a known contact joins each list', {
  set: join,
  had: ada.email,
  ours: [[create(), { is: 'existing' }]],
  async theirs(url) {
    const { contacts } = client(url)
    const [identifier, emails] = [ada.email, [ada.email]]
    const attributes = { FIRSTNAME: 'Ada', LASTNAME: 'King Lovelace' }
    await contacts
      .createContact({ email: identifier, attributes, listIds: [2, 5], updateEnabled: false })
      .catch(() => {})
    await contacts.getContactInfo({ identifier })
    await contacts.addContactToList({ listId: 2, body: { emails } })
    await contacts.addContactToList({ listId: 5, body: { emails } })
  },
  headers,
})

sameRequests('with double opt-in', {
  set: brevoDoubleOptIn,
  ours: [
    [check, null],
    [create(), { is: 'created' }],
  ],
  async theirs(url) {
    const { contacts, transactionalEmails } = client(url)
    await contacts.getAttributes()
    await contacts.getList({ listId: 2 })
    await contacts.getList({ listId: 5 })
    await transactionalEmails.getSmtpTemplate({ templateId: 7 })
    await contacts.getContactInfo({ identifier: ada.email }).catch(() => {})
    await contacts.createDoiContact({
      email: ada.email,
      attributes: { FIRSTNAME: 'Ada', LASTNAME: 'King Lovelace' },
      includeListIds: [2, 5],
      templateId: 7,
      redirectionUrl: brevoDoubleOptIn.BREVO_DOUBLE_OPT_IN_REDIRECT_URL,
    })
  },
  headers,
})

const duplicate = { duplicate_identifiers: ['email'] }
const already = 'Unable to create contact, email is already associated with another Contact'
const notFound: Said = { status: 404, body: { code: 'document_not_found', message: 'Contact does not exist' } }

answers('a creation', create(), [
  [error('duplicate_parameter', already, duplicate), 'existing'],
  // As it was once.
  [error('duplicate_parameter', 'Contact already exist'), 'existing'],
  [error('invalid_parameter', already, duplicate), 'existing'],
  [error('invalid_parameter', 'Invalid email address'), 'refused'],
  [error('invalid_parameter', 'The sender email is not valid'), 'misconfigured'],
  [error('out_of_range', 'Invalid email address'), 'misconfigured'],
  [error('invalid_parameter', 'Invalid listIds'), 'misconfigured'],
  [error('missing_parameter', 'No inputs in the body'), 'misconfigured'],
  [error('document_not_found', 'List ID does not exist'), 'misconfigured'],
  [{ status: 425, body: { code: 'account_in_process', message: 'Try again' } }, 'unreached'],
  // Only an update has it.
  [{ status: 204 }, 'unclear'],
])

rows({
  'the attributes of the names may be others, and a name may be one word': {
    set: { BREVO_LIST_IDS: '', BREVO_FIRST_NAME_ATTRIBUTE: 'VORNAME', BREVO_LAST_NAME_ATTRIBUTE: 'NACHNAME' },
    calls: [
      [
        create(bob),
        'created',
        ['POST /v3/contacts', { email: bob.email, attributes: { VORNAME: 'Bob' }, updateEnabled: false }],
      ],
    ],
  },
  'a contact that is known and yet cannot be found is not ours, and not waited for': {
    set: join,
    says: ({ method }) => (method === 'GET' ? notFound : error('duplicate_parameter', already)),
    calls: [
      [create(), { is: 'existing' }],
      [createAgain(), { is: 'existing', ours: false }],
    ],
  },
  'a list that somebody else added meanwhile is joined': {
    set: join,
    had: ada.email,
    says: ({ path }) => (path.endsWith('/add') ? error('invalid_parameter', 'Contact already in list') : undefined),
    calls: [[create(), { is: 'existing' }]],
  },
  'the check names a list that is not there': {
    set: { BREVO_LIST_IDS: '2,99' },
    calls: [[check, /^check the list 99: answered with 404/]],
  },
  'the check names an attribute that is not there': {
    set: { BREVO_LAST_NAME_ATTRIBUTE: 'NOM' },
    calls: [[check, /^check the attributes: the account has no NOM$/, 'GET /v3/contacts/attributes']],
  },
  'the field of the rate limit says how long to wait': {
    says: { status: 429, body: {}, headers: { 'x-sib-ratelimit-remaining': '0', 'x-sib-ratelimit-reset': '7' } },
    calls: [[waitAfter(create()), 7_000]],
  },
})

test('a lookup that fails after "duplicate" leaves the doubt', async t => {
  const { server, provider } = await started(t)
  await provider.createContact(ada, false, never)
  server.next(null, '500 before')
  assert.equal((await provider.createContact(ada, true, never)).is, 'unreached')
  assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing', providerId: '1', ours: true })
})

test('a join that was cut off goes on where it ended', async t => {
  const { fake, server, provider } = await started(t, join)
  fake.had(ada.email)
  server.next(null, null, null, '500 after')
  assert.equal((await provider.createContact(ada, false, never)).is, 'unreached')
  assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
  const joining = server.received.map(({ path }) => path).filter(path => path.endsWith('/add'))
  assert.deepEqual(joining, ['/v3/contacts/lists/2/contacts/add', '/v3/contacts/lists/5/contacts/add'])
})

describe('Brevo with double opt-in', () => {
  const asked = (count: number) => (fake: BrevoFake) => assert.equal(fake.asked(ada.email), count)
  const refused = 'This sms number or email address is already associated with another user. Please use another one.'

  rows({
    'nobody is a contact before the click, and no event is sent, which might create the contact': {
      set: brevoDoubleOptIn,
      calls: [
        [create(), { is: 'created' }],
        [async ({ automation }) => automation, null],
      ],
      afterwards(fake) {
        assert.deepEqual([fake.count(ada.email), fake.asked(ada.email)], [0, 1])
        fake.confirm(ada.email)
        const attributes = { FIRSTNAME: 'Ada', LASTNAME: 'King Lovelace' }
        assert.partialDeepStrictEqual(fake.kept(ada.email), { attributes, listIds: [2, 5] })
      },
    },
    'a known contact gets no mail and is not changed, for one call': {
      set: brevoDoubleOptIn,
      had: ada.email,
      calls: [[create(), { is: 'existing' }, FIND]],
      keeps: { attributes: { FIRSTNAME: 'Old' }, listIds: [] },
      afterwards: asked(0),
    },
    'in doubt, who was there before is not ours': {
      set: brevoDoubleOptIn,
      had: ada.email,
      calls: [[createAgain(), { is: 'existing', providerId: '1', ours: false }]],
    },
    'an address that the look-up already calls invalid is refused': {
      set: brevoDoubleOptIn,
      says: error('invalid_parameter', 'Invalid email address'),
      calls: [[create(), 'refused', FIND]],
    },
    'an address that is not valid is refused': {
      set: brevoDoubleOptIn,
      calls: [[create(contactOf('refused@example.com')), 'refused']],
    },
    'an address that may not be asked, and is not found, is known and not waited for': {
      set: { ...brevoDoubleOptIn, ...join },
      says: ({ method }) => (method === 'POST' ? error('invalid_parameter', refused) : undefined),
      calls: [
        [create(), 'existing', FIND, ASK, FIND],
        [createAgain(), { is: 'existing', ours: false }],
      ],
    },
    'a known contact that may not be asked stays known, and is not waited for': {
      set: { ...brevoDoubleOptIn, ...join },
      had: ada.email,
      says: ({ method }) => (method === 'POST' ? error('invalid_parameter', refused) : undefined),
      calls: [
        [create(), { is: 'existing' }, FIND, FIND, ASK],
        [createAgain(), { is: 'existing', providerId: '1', ours: false }],
      ],
    },
    'a known contact is asked once to join the lists': {
      set: { ...brevoDoubleOptIn, ...join },
      had: ada.email,
      calls: [
        [create(), 'existing'],
        [create(), 'existing'],
      ],
      joined: false,
      afterwards(fake) {
        asked(1)(fake)
        fake.confirm(ada.email)
        assert.equal(fake.joined!(ada.email), true)
        assert.partialDeepStrictEqual(fake.kept(ada.email), { attributes: { FIRSTNAME: 'Old' } })
      },
    },
  })

  for (const template of ['8', '9', '10']) {
    rows({
      [`template ${template}, which is none for double opt-in or not active, is our mistake`]: {
        set: { ...brevoDoubleOptIn, BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: template },
        calls: [
          [create(), 'misconfigured'],
          [check, /^check the template: /],
        ],
        afterwards: asked(0),
      },
    })
  }

  test('who is on the lists, and who has unsubscribed, is not asked to join', async t => {
    const { fake, server, provider } = await started(t, { ...brevoDoubleOptIn, ...join })
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    fake.confirm(ada.email)
    assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing', providerId: '1', ours: true })
    assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
    fake.had(bob.email)
    fake.unsubscribe(bob.email)
    assert.equal((await provider.createContact(bob, false, never)).is, 'existing')
    assert.equal(server.received.filter(({ method }) => method === 'POST').length, 1)
  })

  for (const what of met) {
    const expected = what === 'reset after' ? 'unclear' : what === '503' ? 'unreached' : 'created'
    test(`a request for confirmation that meets "${what}" is ${expected}, and ends with one mail`, async t => {
      const { fake, server, provider } = await started(t, brevoDoubleOptIn)
      server.next(null, what)
      const first = await provider.createContact(ada, false, never)
      assert.equal(first.is, expected, JSON.stringify(first))
      if (first.is !== 'created') {
        assert.deepEqual(await provider.createContact(ada, first.is === 'unclear', never), { is: 'created' })
      }
      assert.equal(fake.asked(ada.email), 1)
    })
  }

  for (const to of ['GET', 'POST']) {
    const unknown = [400, 403, 409, 422].map(
      status => [{ status, body: { message: 'Blocked by policy' } }, 'misconfigured'] as const,
    )
    answers(`a ${to}, to confirm,`, create(), unknown, { to, set: brevoDoubleOptIn, afterwards: asked(0) })
  }

  const { BREVO_DOUBLE_OPT_IN_TEMPLATE_ID, BREVO_DOUBLE_OPT_IN_REDIRECT_URL } = brevoDoubleOptIn
  contradictions([
    [{ BREVO_DOUBLE_OPT_IN_TEMPLATE_ID }, /^BREVO_DOUBLE_OPT_IN_TEMPLATE_ID /],
    [{ BREVO_DOUBLE_OPT_IN_REDIRECT_URL }, /^BREVO_DOUBLE_OPT_IN_TEMPLATE_ID /],
    [{ ...brevoDoubleOptIn, BREVO_LIST_IDS: '' }, /^BREVO_DOUBLE_OPT_IN_TEMPLATE_ID /],
    [brevoDoubleOptIn, null],
  ])
})
