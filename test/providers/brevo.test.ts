import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BrevoClient } from '@getbrevo/brevo'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Said, startVendor } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { brevoFake, brevoSettings } from './brevo.fake.ts'
import { callsOf } from './started.ts'

const brevo = { vendor: 'brevo' } as const
const never = new AbortController().signal
const ada = contactOf('ada@example.com')
const error = (code: string, message: string, metadata?: object): Said => ({
  status: 400,
  body: { code, message, ...(metadata && { metadata }) },
})

providerContract({
  vendor: 'brevo',
  settings: brevoSettings,
  wrongKey: { BREVO_API_KEY: 'xkeysib-another' },
  wrongSetting: { BREVO_LIST_IDS: '99' },
  fake: brevoFake,
  refused: 'refused@example.com',
  joining: { members: ['listIds', 'modifiedAt'] },
})

test("our requests are those of the vendor's own client", async t => {
  const bob = contactOf('bob@example.com', { name: 'Bob' })

  const ours = await recorded(t, brevoFake().answer, async url => {
    const provider = await opened(t, brevo, brevoSettings(url))
    assert.equal(await provider.check(never), null)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.automation!.deliver(eventOf({ ...ada, providerId: '1' }), never)
    await provider.automation!.deliver(eventOf(ada), never)
    const { BREVO_LIST_IDS, ...withoutLists } = brevoSettings(url)
    const attributes = { BREVO_FIRST_NAME_ATTRIBUTE: 'VORNAME', BREVO_LAST_NAME_ATTRIBUTE: 'NACHNAME' }
    const other = await opened(t, brevo, { ...withoutLists, ...attributes })
    await other.createContact(bob, false, never)
    for (const is of ['removed', 'absent']) assert.equal((await other.remove(bob.email, never)).is, is)
  })

  const theirs = await recorded(t, brevoFake().answer, async url => {
    // Its base address has the version in it.
    const client = new BrevoClient({ apiKey: brevoSettings('').BREVO_API_KEY, baseUrl: `${url}/v3`, maxRetries: 0 })
    const attributes = { FIRSTNAME: 'Ada', LASTNAME: 'King Lovelace' }
    const request = { email: 'ada@example.com', attributes, listIds: [2, 5], updateEnabled: false }
    await client.contacts.getAttributes()
    await client.contacts.getList({ listId: 2 })
    await client.contacts.getList({ listId: 5 })
    await client.contacts.createContact(request)
    await client.contacts.createContact(request).catch(() => {})
    await client.contacts.getContactInfo({ identifier: 'ada@example.com' })
    await client.event.createEvent({ event_name: 'waitlist_joined', identifiers: { contact_id: 1 } })
    await client.event.createEvent({ event_name: 'waitlist_joined', identifiers: { email_id: 'ada@example.com' } })
    await client.contacts.createContact({
      email: 'bob@example.com',
      attributes: { VORNAME: 'Bob' },
      updateEnabled: false,
    })
    const deletion = { identifier: 'bob@example.com', identifierType: 'email_id' } as const
    await client.contacts.deleteContact(deletion)
    await client.contacts.deleteContact(deletion).catch(() => {})
  })
  assertSameWire(ours, theirs, ['content-type', 'api-key'])
})

test("a known contact joins each list as the vendor's own client would add it", async t => {
  const ours = await recorded(t, brevoFake().answer, async url => {
    const provider = await opened(t, brevo, { ...brevoSettings(url), BREVO_LIST_IDS: '2', PROVIDER_EXISTING: 'join' })
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, false, never)
    const both = await opened(t, brevo, { ...brevoSettings(url), PROVIDER_EXISTING: 'join' })
    assert.deepEqual(await both.createContact(ada, false, never), { is: 'existing' })
  })
  const theirs = await recorded(t, brevoFake().answer, async url => {
    const client = new BrevoClient({ apiKey: brevoSettings('').BREVO_API_KEY, baseUrl: `${url}/v3`, maxRetries: 0 })
    const identifier = 'ada@example.com'
    await client.contacts.createContact({ email: identifier, listIds: [2] })
    await client.contacts.getContactInfo({ identifier })
    await client.contacts.getContactInfo({ identifier })
    await client.contacts.addContactToList({ listId: 5, body: { emails: [identifier] } })
  })
  const joins = (asked: typeof ours) => asked.filter(({ method, path }) => method === 'GET' || path.endsWith('/add'))
  assert.equal(joins(ours).length, 3)
  assertSameWire(joins(ours), joins(theirs), ['content-type', 'api-key'])
})

test('a join that was cut off goes on where it ended, and one that somebody else did meanwhile is done', async t => {
  const fake = brevoFake()
  fake.had('ada@example.com')
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, brevo, { ...brevoSettings(server.url), PROVIDER_EXISTING: 'join' })
  server.next('slow', 'slow', 'slow', '500 after')
  assert.equal((await provider.createContact(ada, false, never)).is, 'unreached')
  server.next('slow', 'slow')
  assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
  const add = (list: number) => `POST /v3/contacts/lists/${list}/contacts/add`
  const joining = callsOf(server).filter(call => call.endsWith('/add'))
  assert.deepEqual(joining, [add(2), add(5)])

  const none = { ...(fake.kept('ada@example.com') as object), listIds: [] }
  const late = await startVendor(t, asked => {
    const said = fake.answer(asked)
    return asked.method === 'GET' ? { ...said, body: { ...(said.body as object), ...none } } : said
  })
  const other = await opened(t, brevo, { ...brevoSettings(late.url), PROVIDER_EXISTING: 'join' })
  assert.deepEqual(await other.createContact(ada, false, never), { is: 'existing' })
})

for (const [what, change, why] of [
  ['a list', { BREVO_LIST_IDS: '2,99' }, /^check the list 99: answered with 404/],
  ['an attribute', { BREVO_LAST_NAME_ATTRIBUTE: 'NOM' }, /^check the attributes: the account has no NOM$/],
  ['a key', { BREVO_API_KEY: 'xkeysib-another' }, /^check the key and the attributes: answered with 401/],
] as const) {
  test(`a check names ${what} that is not there, and changes nothing`, async t => {
    const server = await startVendor(t, brevoFake().answer)
    const provider = await opened(t, brevo, { ...brevoSettings(server.url), ...change })
    const failure = await provider.check(never)
    assert.equal(failure?.is, 'misconfigured')
    assert.match(failure.why, why)
    assert.ok(server.asked.every(({ method }) => method === 'GET'))
  })
}

test('a lookup that fails after "duplicate" leaves the doubt', async t => {
  const fake = brevoFake()
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, brevo, brevoSettings(server.url))
  await provider.createContact(ada, false, never)
  server.next('slow', '500 before')
  assert.equal((await provider.createContact(ada, true, never)).is, 'unreached')
  assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing', providerId: '1', ours: true })
})

test('a contact that is known and yet cannot be found is not ours, and not waited for', async t => {
  const message = 'Unable to create contact, email is already associated with another Contact'
  const known = error('duplicate_parameter', message)
  const gone: Said = { status: 404, body: { code: 'document_not_found', message: 'Contact does not exist' } }
  const server = await startVendor(t, ({ method }) => (method === 'GET' ? gone : known))
  const provider = await opened(t, brevo, { ...brevoSettings(server.url), PROVIDER_EXISTING: 'join' })
  assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
  assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing', ours: false })
})

test('an address that is known costs one call, and no id is told', async t => {
  const fake = brevoFake()
  fake.had('ada@example.com')
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, brevo, brevoSettings(server.url))
  assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
  assert.equal(server.asked.length, 1)
})

const duplicate = { duplicate_identifiers: ['email'] }
const already = 'Unable to create contact, email is already associated with another Contact'
const answers: readonly (readonly [string, Said, string])[] = [
  ['duplicate_parameter', error('duplicate_parameter', already, duplicate), 'existing'],
  ['duplicate_parameter, as it was once', error('duplicate_parameter', 'Contact already exist'), 'existing'],
  ['invalid_parameter that tells of a duplicate', error('invalid_parameter', already, duplicate), 'existing'],
  ['invalid_parameter about the address', error('invalid_parameter', 'Invalid email address'), 'refused'],
  ['words about addresses in general', error('invalid_parameter', 'The sender email is not valid'), 'misconfigured'],
  ['those words and another code', error('out_of_range', 'Invalid email address'), 'misconfigured'],
  ['invalid_parameter about something else', error('invalid_parameter', 'Invalid listIds'), 'misconfigured'],
  ['missing_parameter', error('missing_parameter', 'No inputs in the body'), 'misconfigured'],
  ['document_not_found', error('document_not_found', 'List ID does not exist'), 'misconfigured'],
  ['401', { status: 401, body: { code: 'unauthorized', message: 'Key not found' } }, 'misconfigured'],
  ['425', { status: 425, body: { code: 'account_in_process', message: 'Try again' } }, 'unreached'],
  ['201 without an id', { status: 201, body: {} }, 'unclear'],
  ['204, which only an update has', { status: 204 }, 'unclear'],
]

for (const [what, said, expected] of answers) {
  test(`a creation that is answered with ${what} is ${expected}`, async t => {
    const server = await startVendor(t, () => said)
    const provider = await opened(t, brevo, brevoSettings(server.url))
    assert.equal((await provider.createContact(ada, false, never)).is, expected)
  })
}

test('the field of the rate limit says how long to wait', async t => {
  const headers = { 'x-sib-ratelimit-limit': '10', 'x-sib-ratelimit-remaining': '0', 'x-sib-ratelimit-reset': '7' }
  const server = await startVendor(t, () => ({ status: 429, body: { code: 'too_many_requests' }, headers }))
  const provider = await opened(t, brevo, brevoSettings(server.url))
  const creation = await provider.createContact(ada, false, never)
  assert.ok(creation.is === 'unreached')
  assert.equal(creation.retryAfter, 7_000)
})

test('an event that is refused ends with that; one that is not authorised is our mistake', async t => {
  for (const [said, is] of [
    [error('invalid_parameter', 'event_name is invalid'), 'refused'],
    [{ status: 401, body: {} }, 'misconfigured'],
  ] as const) {
    const server = await startVendor(t, () => said)
    const provider = await opened(t, brevo, brevoSettings(server.url))
    assert.equal((await provider.automation!.deliver(eventOf(ada), never)).is, is)
  }
})
