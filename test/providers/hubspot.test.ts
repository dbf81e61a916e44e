import assert from 'node:assert/strict'
import { contactOf, providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, remove, vendorTable } from './table.ts'

const TOKEN = 'hubspot-token-of-the-test'
const LISTS = ['7', '8']
/** One that HubSpot fills. */
const ACTIVE_LIST = '9'

const hubspotSettings = (url: string) => ({
  HUBSPOT_TOKEN: TOKEN,
  HUBSPOT_BASE_URL: url,
})
const hubspotMore = {
  HUBSPOT_LIST_IDS: LISTS.join(),
  PROVIDER_FIELDS: 'waitlist=early access,lifecyclestage=subscriber',
}

interface HubspotContact {
  readonly id: string
  readonly properties: Record<string, unknown>
  readonly createdAt: string
  readonly updatedAt: string
  readonly archived: boolean
}

/*
 * Facts of HubSpot's OpenAPI documents, version 2026-09, of 2026-08-21: contacts and lists, as far as we send or
 * read them. They name `associations` as required for a creation; the reference and the official client leave
 * it out.
 */

const hubspotError = (status: number, category: string, message: string, more: object = {}): Said => ({
  status,
  body: { status: 'error', category, message, correlationId: 'aeb5f871-7f07-4993-9211-075dc63e7cbf', ...more },
})
const malformed = hubspotError(400, 'VALIDATION_ERROR', 'Invalid input JSON')
const notFound = hubspotError(404, 'OBJECT_NOT_FOUND', 'resource not found')

/** Which properties are wrong stands in the text alone. */
const notValid = (...wrong: readonly { name: string; error: string }[]): Said => {
  const results = wrong.map(each => ({ isValid: false, message: `${each.name} x@example.com is invalid`, ...each }))
  return hubspotError(400, 'VALIDATION_ERROR', `Property values were not valid: ${JSON.stringify(results)}`)
}

/**
 * As in HubSpot's reference of contacts and lists (2026-09): properties must exist, and an address is unique. Its account
 * has a rule for names.
 */
function hubspotFake(): VendorFake {
  const { contacts, find, facts } = contactBook<HubspotContact>()
  const properties = ['email', 'firstname', 'lastname', 'waitlist', 'createdate', 'lifecyclestage']
  const lists = new Map(LISTS.map(id => [id, new Set<string>()]))
  let ids = 1_000

  function make(values: Record<string, unknown>, createdAt = new Date().toISOString()): HubspotContact {
    const contact = { id: String(++ids), properties: values, createdAt, updatedAt: createdAt, archived: false }
    contacts.set(String(values.email).toLowerCase(), contact)
    return contact
  }

  function create({ properties: values }: Received['json']): Said {
    const all = Object.entries<string>(values)
    const wrong = (error: string, is: (name: string, value: string) => boolean) =>
      all.filter(([name, value]) => is(name, value)).map(([name]) => ({ name, error }))
    const isName = (name: string) => name === 'firstname' || name === 'lastname'
    for (const found of [
      wrong('PROPERTY_DOESNT_EXIST', name => !properties.includes(name)),
      wrong('INVALID_ALPHA', (name, value) => isName(name) && /[^\p{L} ]/u.test(value)),
      wrong('INVALID_EMAIL', (name, value) => name === 'email' && value.startsWith('refused')),
    ]) {
      if (found.length > 0) return notValid(...found)
    }
    const known = contacts.get(values.email.toLowerCase())
    if (known === undefined) return { status: 201, body: make(values) }
    return hubspotError(409, 'CONFLICT', `Contact already exists. Existing ID: ${known.id}`)
  }

  function list(listId: string): Said {
    if (!lists.has(listId) && listId !== ACTIVE_LIST) return notFound
    const processingType = listId === ACTIVE_LIST ? 'DYNAMIC' : 'MANUAL'
    return { status: 200, body: { list: { listId, processingType, objectTypeId: '0-1' } } }
  }

  function add(listId: string, ids: readonly string[]): Said {
    const members = lists.get(listId)
    if (listId === ACTIVE_LIST) return hubspotError(400, 'VALIDATION_ERROR', 'The list is processed by HubSpot.')
    if (members === undefined) return notFound
    const missing = ids.filter(id => find(each => each.id === id) === undefined)
    const added = ids.filter(id => !missing.includes(id) && !members.has(id))
    for (const id of added) members.add(id)
    return { status: 200, body: { recordsIdsAdded: added, recordIdsMissing: missing } }
  }

  function get(id: string, { idProperty, properties: wanted = '', ...more }: Received['query']): Said {
    if (Object.keys(more).length > 0) return malformed
    const found = find(each => (idProperty === 'email' ? each.properties.email : each.id) === id)
    if (found === undefined) return notFound
    const all: Record<string, unknown> = { ...found.properties, createdate: found.createdAt }
    const shown = Object.fromEntries(wanted.split(',').map(name => [name, all[name]]))
    return { status: 200, body: { ...found, properties: shown } }
  }

  /** By an address that is not there, it would be blocked for good. */
  function purge({ objectId }: Received['json']): Said {
    const found = find(({ id }) => id === objectId)
    if (found === undefined) return notFound
    contacts.delete(String(found.properties.email).toLowerCase())
    return { status: 204 }
  }

  const listsOf = (email: string) => [...lists].filter(([, ids]) => ids.has(contacts.get(email)?.id ?? ''))
  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers.authorization === `Bearer ${TOKEN}`
          ? undefined
          : hubspotError(401, 'INVALID_AUTHENTICATION', 'Authentication credentials not found.'),
      routes: {
        'POST /crm/objects/2026-09/contacts': ({ json }) => create(json),
        'GET /crm/objects/2026-09/contacts': ({ query }) => ({
          status: 200,
          body: { results: [...contacts.values()].slice(0, Number(query.limit)) },
        }),
        'POST /crm/objects/2026-09/contacts/gdpr-delete': ({ json }) => purge(json),
        'GET /crm/objects/2026-09/contacts/{id}': ({ at, query }) => get(at.id!, query),
        'GET /crm/lists/2026-09/{id}': ({ at }) => list(at.id!),
        'PUT /crm/lists/2026-09/{id}/memberships/add': ({ at, json }) => add(at.id!, json),
      },
    }),
    had: email => void make({ email, firstname: 'Old' }, '2020-01-01T00:00:00.000Z'),
    kept: email => (contacts.has(email) ? { ...contacts.get(email), lists: listsOf(email).length } : undefined),
    joined: email => listsOf(email).length === lists.size,
  }
}

const hubspot = {
  vendor: 'hubspot',
  settings: hubspotSettings,
  wrongKey: { HUBSPOT_TOKEN: 'another-token' },
  wrongSetting: { PROVIDER_FIELDS: 'no_property=1' },
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
  start: null,
} as const
providerContract(hubspot)

const { rows, answers, sameRequests } = vendorTable(hubspot)
const r2d2 = contactOf('ada@example.com', { name: 'R2-D2 Droid' })
const join = { HUBSPOT_LIST_IDS: '7, 8', PROVIDER_EXISTING: 'join' }
const names = { firstname: 'Ada', lastname: 'King Lovelace' }
const CONTACTS = '/crm/objects/2026-09/contacts'
const CREATE = `POST ${CONTACTS}`
const conflict = hubspotError(409, 'CONFLICT', 'Contact already exists.')
const vague = ({ method }: Received) => (method === 'POST' ? conflict : undefined)

// The client sent paths of v3, and `archived=false` and `includeFilters=false`, which are defaults: recorded with the dated paths, without.
sameRequests('with every setting', {
  set: hubspotMore,
  ours: [
    [check, null],
    [create(), { is: 'created', providerId: '1001' }],
    [createAgain(), { is: 'existing', providerId: '1001', ours: true }],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
})

rows({
  'what is unset is in no request': {
    calls: [
      [check, null, `GET ${CONTACTS}?limit=1&properties=createdate`],
      [create(), 'created', [CREATE, { properties: { email: ada.email, ...names } }]],
    ],
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
