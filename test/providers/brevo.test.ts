import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable, waitAfter } from './table.ts'

const KEY = 'xkeysib-of-the-test'
const LISTS = [2, 5]
const ATTRIBUTES = ['FIRSTNAME', 'LASTNAME']

const brevoSettings = (url: string) => ({ BREVO_API_KEY: KEY, BREVO_LIST_IDS: '2, 5', BREVO_BASE_URL: url })

interface Kept {
  readonly id: number
  readonly email: string
  readonly listIds: readonly number[]
  readonly attributes: Readonly<Record<string, unknown>>
  readonly createdAt: string
  readonly modifiedAt: string
  readonly emailBlacklisted: boolean
}

/*
 * Facts of Brevo's own OpenAPI documents (Contact Management 1.0.0, and the types of its client 6.0.3 for the others), as far
 * as we send or read it. 401 is in them for events alone, but is the same everywhere.
 */

const error = (status: number, code: string, message: string, metadata?: object): Said => ({
  status,
  body: { code, message, ...(metadata && { metadata }) },
})
const notFound = (what: string) => error(404, 'document_not_found', `${what} does not exist`)

/** The vendor's times are in the zone of the account. */
const timeOf = (date: Date) => new Date(date.getTime() + 7_200_000).toISOString().replace('Z', '+02:00')

/** As documented at https://developers.brevo.com/reference. */
function brevoFake(): VendorFake {
  const { contacts, find, start, facts } = contactBook<Kept>()
  let ids = 0

  function add(email: string, attributes: object, listIds: readonly number[], at = timeOf(new Date())): Kept {
    const known = Object.fromEntries(Object.entries(attributes).filter(([name]) => ATTRIBUTES.includes(name)))
    const times = { createdAt: at, modifiedAt: at }
    const kept = { id: ++ids, email, listIds, attributes: known, emailBlacklisted: false, ...times }
    contacts.set(email, kept)
    return kept
  }

  const change = (email: string, more: Partial<Kept>) =>
    void contacts.set(email, { ...contacts.get(email)!, ...more, modifiedAt: timeOf(new Date()) })

  const addTo = (email: string, lists: readonly number[]) =>
    change(email, { listIds: [...new Set([...contacts.get(email)!.listIds, ...lists])] })

  /** What is wrong with what is asked about an address. */
  function wrong(email: unknown, lists: readonly number[]): Said | null {
    if (typeof email !== 'string') return error(400, 'missing_parameter', 'email or SMS is missing')
    if (email.startsWith('refused')) return error(400, 'invalid_parameter', 'Invalid email address')
    const areKnown = lists.every(id => LISTS.includes(id))
    return areKnown ? null : error(400, 'document_not_found', 'List ID does not exist')
  }

  function create({ email, attributes = {}, listIds = [], updateEnabled = false }: Received['json']): Said {
    const refused = wrong(email, listIds)
    if (refused !== null) return refused
    if (updateEnabled !== false) return { status: 204 }
    if (!contacts.has(email)) return { status: 201, body: { id: add(email, attributes, listIds).id } }
    const message = 'Unable to create contact, email is already associated with another Contact'
    return error(400, 'duplicate_parameter', message, { duplicate_identifiers: ['email'] })
  }

  function addToList(list: number, { emails }: { readonly emails: readonly string[] }): Said {
    if (!LISTS.includes(list)) return notFound('List ID')
    const success = emails.filter(email => contacts.get(email)?.listIds.includes(list) === false)
    for (const email of success) addTo(email, [list])
    return success.length > 0
      ? { status: 201, body: { contacts: { success, failure: [] } } }
      : error(400, 'invalid_parameter', 'Contact already in list and/or does not exist')
  }

  const describe = (id: number, is: object | undefined, what: string): Said =>
    is === undefined ? notFound(what) : { status: 200, body: { id, ...is } }

  function send({ identifiers: { email_id, contact_id } }: Received['json']): Said {
    const kept = find(({ id, email }) => id === contact_id || email === email_id)
    if (kept === undefined && email_id === undefined) return error(400, 'invalid_parameter', 'identifiers are invalid')
    // An address that is not there becomes a contact.
    start((kept ?? add(email_id, {}, [])).email)
    return { status: 204 }
  }

  function remove(email: string, { identifierType }: Received['query']): Said {
    if (!contacts.has(email)) return notFound('Contact')
    if (identifierType !== 'email_id') return error(400, 'invalid_parameter', 'identifierType is not valid')
    contacts.delete(email)
    return { status: 204 }
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) => (headers['api-key'] === KEY ? undefined : error(401, 'unauthorized', 'Key not found')),
      routes: {
        'POST /v3/contacts': ({ json }) => create(json),
        'GET /v3/contacts/attributes': () => ({
          status: 200,
          body: { attributes: ATTRIBUTES.map(name => ({ name, category: 'normal' })) },
        }),
        'GET /v3/contacts/lists/{list}': ({ at }) =>
          describe(Number(at.list), LISTS.includes(Number(at.list)) ? {} : undefined, 'List ID'),
        'POST /v3/contacts/lists/{list}/contacts/add': ({ at, json }) => addToList(Number(at.list), json),
        'GET /v3/contacts/{identifier}': ({ at }) =>
          describe(contacts.get(at.identifier!)?.id ?? 0, contacts.get(at.identifier!), 'Contact'),
        'DELETE /v3/contacts/{identifier}': ({ at, query }) => remove(at.identifier!, query),
        'POST /v3/events': ({ json }) => send(json),
      },
    }),
    had: email => void add(email, { FIRSTNAME: 'Old' }, [], '2017-05-02T16:40:31.000+02:00'),
    joined: email => LISTS.every(id => contacts.get(email)?.listIds.includes(id)),
  }
}

const brevo = {
  vendor: 'brevo',
  settings: brevoSettings,
  wrongKey: { BREVO_API_KEY: 'xkeysib-another' },
  wrongSetting: { BREVO_LIST_IDS: '99' },
  fake: brevoFake,
  refused: 'refused@example.com',
  joining: { members: ['listIds', 'modifiedAt'] },
  sources: { event: within('event_properties') },
  start: { path: /^\/v3\/events$/, done: { status: 204 } },
} as const
providerContract(brevo)

const { started, rows, answers, sameRequests, missing } = vendorTable(brevo)
const join = { PROVIDER_EXISTING: 'join' }
const bob = contactOf('bob@example.com', { name: 'Bob' })
const headers = ['content-type', 'api-key']

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
  headers,
})

sameRequests('a known contact joins each list', {
  set: join,
  had: ada.email,
  ours: [[create(), { is: 'existing' }]],
  headers,
})

const duplicate = { duplicate_identifiers: ['email'] }
const already = 'Unable to create contact, email is already associated with another Contact'

answers('a creation', create(), [
  [error(400, 'duplicate_parameter', already, duplicate), 'existing'],
  // As it was once.
  [error(400, 'duplicate_parameter', 'Contact already exist'), 'existing'],
  [error(400, 'invalid_parameter', already, duplicate), 'existing'],
  [error(400, 'invalid_parameter', 'Invalid email address'), 'refused'],
  [error(400, 'invalid_parameter', 'The sender email is not valid'), 'misconfigured'],
  [error(400, 'out_of_range', 'Invalid email address'), 'misconfigured'],
  [error(400, 'invalid_parameter', 'Invalid listIds'), 'misconfigured'],
  [error(400, 'missing_parameter', 'No inputs in the body'), 'misconfigured'],
  [error(400, 'document_not_found', 'List ID does not exist'), 'misconfigured'],
  [{ status: 425, body: { code: 'account_in_process', message: 'Try again' } }, 'unreached'],
  // Only an update has it.
  [{ status: 204 }, 'unclear'],
])

rows({
  'a name may be one word': {
    set: { BREVO_LIST_IDS: '' },
    calls: [
      [
        create(bob),
        'created',
        ['POST /v3/contacts', { email: bob.email, attributes: { FIRSTNAME: 'Bob' }, updateEnabled: false }],
      ],
    ],
  },
  'a contact that is known and yet cannot be found is not ours, and not waited for': {
    set: join,
    says: ({ method }) => (method === 'GET' ? notFound('Contact') : error(400, 'duplicate_parameter', already)),
    calls: [
      [create(), { is: 'existing' }],
      [createAgain(), { is: 'existing', ours: false }],
    ],
  },
  'a list that somebody else added meanwhile is joined': {
    set: join,
    had: ada.email,
    says: ({ path }) =>
      path.endsWith('/add') ? error(400, 'invalid_parameter', 'Contact already in list') : undefined,
    calls: [[create(), { is: 'existing' }]],
  },
  'the field of the rate limit says how long to wait': {
    says: { status: 429, body: {}, headers: { 'x-sib-ratelimit-remaining': '0', 'x-sib-ratelimit-reset': '7' } },
    calls: [[waitAfter(create()), 7_000]],
  },
})

missing([[{ BREVO_LIST_IDS: '2,99' }, /^check the list 99: answered with 404/]])

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
