import assert from 'node:assert/strict'
import { Client } from '@hubspot/api-client'
import { contactOf, eventOf, providerContract } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { hubspotError, hubspotFake, hubspotMore, hubspotSettings, notValid } from './hubspot.fake.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable } from './table.ts'

const hubspot = {
  vendor: 'hubspot',
  settings: hubspotSettings,
  wrongKey: { HUBSPOT_TOKEN: 'another-token' },
  wrongSetting: { HUBSPOT_PROPERTY: 'no_property=1' },
  fake: hubspotFake,
  refused: 'refused@example.com',
  joining: {
    settings: hubspotMore,
    members: ['lists'],
    each: {
      setting: 'HUBSPOT_LIST_IDS',
      path: /^\/crm\/lists\/2026-09\/(\d+)\/memberships\/add$/,
      added: () => ({ status: 200, body: { recordsIdsAdded: ['1001'], recordIdsMissing: [] } }),
    },
  },
  start: {
    path: /^\/events\/custom\/2026-09\/send$/,
    done: { status: 204 },
    id: ({ json }: Received) => json.uuid,
  },
} as const
providerContract(hubspot)

/** The client knows the paths of v3; the same calls have other paths in dated versions. */
const dated = (path: string): string =>
  path
    .replace('/crm/v3/objects/', '/crm/objects/2026-09/')
    .replace(/^\/crm\/v3\/(lists|properties)\//, '/crm/$1/2026-09/')
    .replace('/events/v3/send', '/events/custom/2026-09/send')
const datedFake = () => {
  const fake = hubspotFake()
  const answer = ({ path, ...asked }: Received) =>
    fake.answer({ ...asked, path: dated(path), segments: dated(path).split('/') })
  return { ...fake, answer }
}

const { rows, answers, contradictions } = vendorTable(hubspot)
const event = eventOf(ada)
const r2d2 = contactOf('ada@example.com', { name: 'R2-D2 Droid' })
const join = { HUBSPOT_LIST_IDS: '7, 8', PROVIDER_EXISTING: 'join' }
const names = { firstname: 'Ada', lastname: 'King Lovelace' }
const CONTACTS = '/crm/objects/2026-09/contacts'
const CREATE = `POST ${CONTACTS}`
const conflict = hubspotError(409, 'CONFLICT', 'Contact already exists.')
const vague = ({ method }: Received) => (method === 'POST' ? conflict : undefined)

vendorTable({ ...hubspot, fake: datedFake }).sameRequests('with every setting', {
  set: hubspotMore,
  ours: [
    [check, null],
    [create(), { is: 'created', providerId: '1001' }],
    [createAgain(), { is: 'existing', providerId: '1001', ours: true }],
    [({ automation }) => automation!.deliver(event, never), 'delivered'],
    [
      ({ automation }) => automation!.deliver({ ...event, contact: { ...ada, providerId: '1001' } }, never),
      'delivered',
    ],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
  async theirs(url) {
    const { crm, events } = new Client({ accessToken: hubspotSettings('').HUBSPOT_TOKEN, basePath: url })
    const contacts = crm.contacts.basicApi
    const own = {
      waitlist: 'early access',
      lifecyclestage: 'subscriber',
      hs_legal_basis: 'Freely given consent from contact;Not applicable',
    }
    const properties = { ...own, email: ada.email, ...names }
    const sent = { eventName: 'pe1234_joined', occurredAt: event.at, properties: {}, uuid: ada.id }
    const join = async () => {
      for (const list of ['7', '8']) await crm.lists.membershipsApi.add(list, ['1001'])
    }
    const find = () => contacts.getById(ada.email, ['email'], undefined, undefined, undefined, 'email')
    await contacts.getPage(1, undefined, ['createdate'])
    for (const name of Object.keys(own)) await crm.properties.coreApi.getByName('contacts', name)
    for (const list of ['7', '8']) await crm.lists.listsApi.getById(list)
    await contacts.create({ properties })
    await join()
    await contacts.create({ properties }).catch(() => {})
    await contacts.getById('1001', ['createdate'])
    await join()
    await events.send.basicApi.send({ ...sent, email: ada.email })
    await events.send.basicApi.send({ ...sent, objectId: '1001' })
    await find()
    await contacts.purge({ objectId: '1001' })
    await find().catch(() => {})
  },
  // The client leaves `archived=false` and `includeFilters=false`, which are the defaults, in the query.
  become: theirs =>
    theirs.map(({ query: { archived: _, includeFilters: __, ...query }, path, ...asked }) => {
      return { ...asked, path: dated(path), query }
    }),
})

rows({
  'what is unset is in no request': {
    set: { HUBSPOT_PROPERTY: '' },
    calls: [
      [check, null, `GET ${CONTACTS}?limit=1&properties=createdate`],
      [create(), 'created', [CREATE, { properties: { email: ada.email, ...names } }]],
    ],
  },
  'without an event there is no automation: a workflow starts by itself': {
    set: { HUBSPOT_EVENT: '' },
    calls: [[async ({ automation }) => automation, null]],
  },
  'an event that HubSpot does not know is refused': {
    set: { HUBSPOT_EVENT: 'pe1234_other' },
    calls: [[start(), 'refused']],
  },
  'a known address costs one call, which tells its id': {
    had: ada.email,
    calls: [[create(), { is: 'existing', providerId: '1001' }, CREATE]],
  },
  'a conflict without the id is looked up by the address when there is doubt': {
    had: ada.email,
    says: vague,
    calls: [
      [create(), { is: 'existing', providerId: undefined }, CREATE],
      [
        createAgain(),
        { is: 'existing', providerId: '1001', ours: false },
        CREATE,
        `GET ${CONTACTS}/${ada.email}?properties=createdate&idProperty=email`,
      ],
    ],
  },
  'a conflict without the id: who is known joins the lists by the address': {
    set: join,
    had: ada.email,
    says: vague,
    calls: [[create(), 'existing']],
    joined: true,
  },
  'a name that the account has a rule against is left out, and only that one': {
    set: hubspotMore,
    calls: [[create(r2d2), 'created']],
    afterwards: fake => {
      const { firstname, lastname } = (fake.kept(ada.email) as { properties: Record<string, string> }).properties
      assert.deepEqual([firstname, lastname], [undefined, 'Droid'])
    },
  },
  'a rule for names that cannot be met so is asked for once': {
    says: notValid({ name: 'lastname', error: 'REQUIRED' }),
    calls: [[create(r2d2), 'misconfigured', CREATE, CREATE]],
  },
  'a name is not left out if something else is wrong': {
    says: notValid({ name: 'lastname', error: 'INVALID_ALPHA' }, { name: 'waitlist', error: 'INVALID_OPTION' }),
    calls: [[create(r2d2), 'misconfigured', CREATE]],
  },
  'the check finds a token that may not read contacts': {
    says: hubspotError(403, 'MISSING_SCOPES', 'This app does not have the scope crm.objects.contacts.read'),
    calls: [[check, /crm\.objects\.contacts\.read/]],
  },
  'a contact that has the address as an additional one is left alone': {
    says: {
      status: 200,
      body: { id: '1001', properties: { email: 'other@example.com' }, createdAt: '', updatedAt: '', archived: false },
    },
    calls: [
      [
        async provider => /another address$/.test(Object(await remove()(provider)).how),
        true,
        `GET ${CONTACTS}/${ada.email}?properties=email&idProperty=email`,
      ],
    ],
  },
})

const missing: readonly (readonly [Record<string, string>, RegExp])[] = [
  [{ HUBSPOT_PROPERTY: 'no_property=1' }, /property no_property: answered with 404/],
  [{ HUBSPOT_LIFECYCLE_STAGE: 'fan' }, /property lifecyclestage: .* none of its options/],
  [{ HUBSPOT_LEGAL_BASIS: 'Not applicable;Because' }, /property hs_legal_basis: .* none of its options/],
  [{ HUBSPOT_LIST_IDS: '7, 77' }, /list 77: answered with 404/],
  [{ HUBSPOT_LIST_IDS: '9' }, /list 9: it is no static list of contacts/],
]
for (const [change, why] of missing) {
  rows({
    [`the check tells what is not there of ${JSON.stringify(change)}, and so does a creation`]: {
      set: { ...hubspotMore, ...change },
      calls: [
        [check, why],
        [create(), 'misconfigured'],
      ],
    },
  })
}

// A contact that is not known to the lists yet.
const unknown: Said = { status: 200, body: { recordsIdsAdded: [], recordIdsMissing: ['1001'] } }
answers('a list', create(), [[unknown, 'unclear']], { to: 'PUT', set: hubspotMore })

answers(
  'in doubt, a look at a contact',
  createAgain(),
  [
    [{ status: 500 }, 'unreached'],
    [hubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found'), 'misconfigured'],
    [{ status: 200, body: {} }, 'unreached'],
    [{ status: 200, body: { id: '1001', createdAt: 'long ago' } }, 'unreached'],
  ],
  { to: 'GET', had: ada.email },
)

const invalid = { name: 'email', error: 'INVALID_EMAIL' }
const noProperty = { name: 'waitlist', error: 'PROPERTY_DOESNT_EXIST' }
const listed = (code: string, propertyName: string) =>
  hubspotError(400, 'VALIDATION_ERROR', 'Not valid.', {
    errors: [{ message: 'Not valid.', code, context: { propertyName: [propertyName] } }],
  })
answers('a creation', create(), [
  [notValid(invalid), 'refused'],
  [notValid(noProperty, invalid), 'refused'],
  [listed('INVALID_EMAIL', 'email'), 'refused'],
  [listed('INVALID_EMAIL', 'other_email'), 'misconfigured'],
  [listed('REQUIRED', 'email'), 'misconfigured'],
  [notValid({ name: 'email', error: 'INVALID_ALPHA' }), 'misconfigured'],
  [notValid({ name: 'firstname', error: 'INVALID_ALPHA' }, noProperty), 'misconfigured'],
  [{ ...notValid(invalid), status: 403 }, 'misconfigured'],
  [notValid(noProperty), 'misconfigured'],
  [notValid({ name: 'other_email', error: 'INVALID_EMAIL' }), 'misconfigured'],
  [hubspotError(400, 'VALIDATION_ERROR', 'Invalid input JSON [line 1]'), 'misconfigured'],
  [hubspotError(400, 'VALIDATION_ERROR', ''), 'misconfigured'],
  // Not a known address.
  [hubspotError(409, 'OTHER', 'Something else'), 'misconfigured'],
])
// There is already an event with this UUID.
answers('an event', start(), [[hubspotError(409, 'OTHER', 'Something else'), 'delivered']])

contradictions([
  ...['email', 'firstname', 'lastname'].map(
    name => [{ HUBSPOT_PROPERTY: `${name}=x` }, new RegExp(`^HUBSPOT_PROPERTY .*${name}`)] as const,
  ),
  ...['lifecyclestage', 'hs_legal_basis'].map(
    name =>
      [
        { ...hubspotMore, HUBSPOT_PROPERTY: `${name}=lead` },
        new RegExp(`^HUBSPOT_PROPERTY must not be ${name}`),
      ] as const,
  ),
])
