import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import type { CallerSettings } from '../../src/outbound/caller.ts'
import { allVendors } from '../../src/providers/list.ts'
import { mailchimp } from '../../src/providers/mailchimp.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Said, startVendor } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { mailchimpFake, mailchimpForm, mailchimpJourney, mailchimpSettings } from './mailchimp.fake.ts'

const vendors = await allVendors()

const vendor = { vendor: 'mailchimp' } as const
const never = new AbortController().signal
const ada = contactOf('ada@example.com', { createdAt: new Date('2026-11-20T10:11:12.345Z') })

providerContract({
  vendor: 'mailchimp',
  settings: mailchimpSettings,
  wrongKey: { MAILCHIMP_API_KEY: 'ffffffffffffffffffffffffffffffff-us21' },
  wrongSetting: { MAILCHIMP_AUDIENCE_ID: 'another' },
  fake: mailchimpFake,
  refused: 'refused@example.com',
  joining: { settings: mailchimpForm, members: ['tags', 'interests', 'last_changed'] },
})

/** What the test uses of the official client, which has no types. */
interface Official {
  basePath: string
  setConfig(config: { apiKey: string }): void
  lists: {
    getList(id: string, options: object): Promise<unknown>
    addListMember(id: string, body: object, options: object): Promise<unknown>
    getListMember(id: string, hash: string): Promise<unknown>
    createListMemberEvent(id: string, hash: string, body: object): Promise<unknown>
    updateListMember(id: string, hash: string, body: object, options: object): Promise<unknown>
    updateListMemberTags(id: string, hash: string, body: object): Promise<unknown>
    deleteListMemberPermanent(id: string, hash: string): Promise<unknown>
    getListInterestCategories(id: string, options: object): Promise<unknown>
    listInterestCategoryInterests(id: string, category: string, options: object): Promise<unknown>
  }
  customerJourneys: { trigger(journey: number, step: number, body: object): Promise<unknown> }
}

async function official(url: string): Promise<Official> {
  // @ts-expect-error The vendor publishes no types.
  const { default: client } = (await import('@mailchimp/mailchimp_marketing')) as { default: Official }
  client.basePath = `${url}/3.0`
  client.setConfig({ apiKey: mailchimpSettings('').MAILCHIMP_API_KEY })
  return client
}

test("our requests are those of the vendor's own client", async t => {
  const { MAILCHIMP_AUDIENCE_ID: audience } = mailchimpSettings('')
  const hash = '3e3417d7ef77d5932a6734b916515ed5'
  const contactId = '1'.padStart(32, '0')

  const ours = await recorded(t, mailchimpFake().answer, async url => {
    const provider = await opened(t, vendor, mailchimpSettings(url))
    await provider.check(never)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.automation!.deliver(eventOf({ ...ada, providerId: contactId }), never)
    await provider.automation!.deliver(eventOf(ada), never)
    const change = { ...mailchimpJourney, MAILCHIMP_DOUBLE_OPT_IN: 'true' }
    const other = await opened(t, vendor, { ...mailchimpSettings(url), ...change })
    await other.createContact({ ...ada, name: 'Bob', email: 'bob@example.com' }, false, never)
    await other.automation!.deliver(eventOf(ada), never)
    for (const is of ['removed', 'absent']) assert.equal((await other.remove(ada.email, never)).is, is)
  })

  const theirs = await recorded(t, mailchimpFake().answer, async url => {
    const client = await official(url)
    const timestamp_signup = '2026-11-20T10:11:12+00:00'
    const member = {
      email_address: 'ada@example.com',
      status: 'subscribed',
      timestamp_signup,
      merge_fields: { FNAME: 'Ada', LNAME: 'King Lovelace' },
    }
    const bob = {
      email_address: 'bob@example.com',
      status: 'pending',
      timestamp_signup,
      merge_fields: { FNAME: 'Bob' },
    }
    const options = { skipMergeValidation: true }
    await client.lists.getList(audience, { fields: ['id'] })
    await client.lists.addListMember(audience, member, options)
    await client.lists.addListMember(audience, member, options).catch(() => {})
    await client.lists.getListMember(audience, hash)
    await client.lists.createListMemberEvent(audience, contactId, { name: 'waitlist.joined' })
    await client.lists.createListMemberEvent(audience, hash, { name: 'waitlist.joined' })
    await client.lists.addListMember(audience, bob, options)
    await client.customerJourneys.trigger(1234, 56, { email_address: 'ada@example.com' })
    await client.lists.deleteListMemberPermanent(audience, hash)
    await client.lists.deleteListMemberPermanent(audience, hash).catch(() => {})
    await client.lists.getList(audience, { fields: ['id'] })
  })
  assertSameWire(ours, theirs, ['authorization'])
})

test("what the settings add to a new member and to a known one, and the check of it, are those of the vendor's client", async t => {
  const { MAILCHIMP_AUDIENCE_ID: audience } = mailchimpSettings('')
  const hash = '3e3417d7ef77d5932a6734b916515ed5'
  const change = { ...mailchimpForm, MAILCHIMP_LANGUAGE: 'pt_PT', PROVIDER_EXISTING: 'join' }

  const ours = await recorded(t, mailchimpFake().answer, async url => {
    const provider = await opened(t, vendor, { ...mailchimpSettings(url), ...change })
    assert.equal(await provider.check(never), null)
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
  })

  const theirs = await recorded(t, mailchimpFake().answer, async url => {
    const client = await official(url)
    const member = {
      email_address: 'ada@example.com',
      status: 'subscribed',
      timestamp_signup: '2026-11-20T10:11:12+00:00',
      merge_fields: { FNAME: 'Ada', LNAME: 'King Lovelace' },
      tags: ['Waitlist', 'Early access'],
      interests: { i1: true, i3: true },
      language: 'pt_PT',
    }
    const tags = member.tags.map(name => ({ name, status: 'active' }))
    const options = { skipMergeValidation: true }
    const interests = { fields: ['interests.id'], count: 100 }
    await client.lists.getList(audience, { fields: ['id'] })
    await client.lists.getListInterestCategories(audience, { fields: ['categories.id'], count: 100 })
    await client.lists.listInterestCategoryInterests(audience, 'c1', interests)
    await client.lists.listInterestCategoryInterests(audience, 'c2', interests)
    await client.lists.addListMember(audience, member, options)
    await client.lists.addListMember(audience, member, options).catch(() => {})
    await client.lists.updateListMember(audience, hash, { interests: member.interests }, options)
    await client.lists.updateListMemberTags(audience, hash, { tags, is_syncing: true })
  })
  assertSameWire(ours, theirs, ['authorization'])
})

test('a new member gets tags, interests and the language; one that unsubscribed gets no other status', async t => {
  const fake = mailchimpFake()
  fake.had('old@example.com')
  const server = await startVendor(t, fake.answer)
  const change = { ...mailchimpForm, MAILCHIMP_LANGUAGE: 'de', PROVIDER_EXISTING: 'join' }
  const provider = await opened(t, vendor, { ...mailchimpSettings(server.url), ...change })
  await provider.createContact(ada, false, never)
  await provider.createContact(contactOf('old@example.com'), false, never)
  const { tags, interests, language } = fake.kept('ada@example.com') as Record<string, unknown>
  assert.deepEqual({ interests, language }, { interests: { i1: true, i2: false, i3: true }, language: 'de' })
  assert.deepEqual(
    (tags as { name: string }[]).map(({ name }) => name),
    ['Waitlist', 'Early access'],
  )
  const { status, language: other } = fake.kept('old@example.com') as Record<string, unknown>
  assert.deepEqual({ status, other }, { status: 'unsubscribed', other: '' })
})

test('a check names the interests that the audience does not have', async t => {
  const server = await startVendor(t, mailchimpFake().answer)
  const change = { MAILCHIMP_INTEREST_IDS: 'i2,gone' }
  const provider = await opened(t, vendor, { ...mailchimpSettings(server.url), ...change })
  const why = 'check the interests: the audience has no gone'
  assert.deepEqual(await provider.check(never), { is: 'misconfigured', why })
  assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
})

for (const [what, said] of [
  ['was deleted for good', { status: 404, body: { title: 'Resource Not Found', status: 404 } }],
  ['may only come back by itself', { status: 400, body: { title: 'Member In Compliance State', status: 400 } }],
] as const) {
  test(`a known member that ${what} stays known, and nothing waits for it`, async t => {
    const exists: Said = { status: 400, body: { title: 'Member Exists', status: 400, detail: 'ada is a member.' } }
    const server = await startVendor(t, ({ path }) => (path.endsWith('/members') ? exists : said))
    for (const name of ['MAILCHIMP_TAGS', 'MAILCHIMP_INTEREST_IDS'] as const) {
      const change = { [name]: mailchimpForm[name], PROVIDER_EXISTING: 'join' }
      const provider = await opened(t, vendor, { ...mailchimpSettings(server.url), ...change })
      assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
    }
  })
}

test('the key names the data centre, and the base address can be another', () => {
  const bases: string[] = []
  const connect = ({ base }: Pick<CallerSettings, 'base'>) => {
    bases.push(base)
    return { call: () => assert.fail('nothing is called yet'), close: async () => {} }
  }
  const settings = { MAILCHIMP_API_KEY: 'a-b-us21', MAILCHIMP_AUDIENCE_ID: 'a', MAILCHIMP_DOUBLE_OPT_IN: false }
  mailchimp.client(settings, connect)
  mailchimp.client({ ...settings, MAILCHIMP_BASE_URL: 'http://127.0.0.1:9' }, connect)
  assert.deepEqual(bases, ['https://us21.api.mailchimp.com', 'http://127.0.0.1:9'])
})

test('a key without a data centre, and half a journey, are told at the start', async () => {
  const { MAILCHIMP_BASE_URL, ...settings } = mailchimpSettings('')
  for (const change of [{ MAILCHIMP_API_KEY: 'key' }, { MAILCHIMP_JOURNEY_ID: '1' }, { MAILCHIMP_STEP_ID: '1' }]) {
    assert.ok(
      'mistakes' in (await readConfig({ PROVIDER: 'mailchimp', ...settings, ...change })),
      JSON.stringify(change),
    )
  }
  assert.ok('config' in (await readConfig({ PROVIDER: 'mailchimp', ...settings })))
})

test('the audience has room for ten calls at once', () => {
  assert.equal(vendors.mailchimp.rate.connections, 10)
})

test('who unsubscribed is known, costs one call, and stays so', async t => {
  const fake = mailchimpFake()
  fake.had('ada@example.com')
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, vendor, mailchimpSettings(server.url))
  assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
  assert.equal(server.asked.length, 1)
})

const AT = '2026-11-20T10:11:12+00:00'
const BEFORE = '2022-02-23T16:25:57+00:00'
const member = { id: 'hash', contact_id: 'c1', status: 'subscribed' }
const found: readonly (readonly [string, Said, object])[] = [
  ['our time of signup', { status: 200, body: { ...member, timestamp_signup: AT } }, { is: 'existing', ours: true }],
  ['an older one', { status: 200, body: { ...member, timestamp_signup: BEFORE } }, { is: 'existing', ours: false }],
  [
    'an older one, confirmed later',
    { status: 200, body: { ...member, timestamp_signup: BEFORE, timestamp_opt: AT } },
    { is: 'existing', ours: false },
  ],
  [
    'none, but an older one of the opt-in',
    { status: 200, body: { ...member, timestamp_signup: '', timestamp_opt: BEFORE } },
    { is: 'existing', ours: false },
  ],
  ['none at all', { status: 200, body: { ...member, timestamp_signup: '' } }, { is: 'existing', providerId: 'c1' }],
  ['no contact_id', { status: 200, body: { id: 'hash' } }, { is: 'existing', providerId: 'hash' }],
  ['404, as it was deleted', { status: 404, body: { title: 'Resource Not Found' } }, { is: 'existing', ours: false }],
  ['a bare 403', { status: 403 }, { is: 'unreached' }],
]

for (const [what, said, expected] of found) {
  test(`in doubt, a member that has ${what} is taken for what it is`, async t => {
    const exists: Said = { status: 400, body: { title: 'Member Exists', status: 400, detail: 'ada is a member.' } }
    const server = await startVendor(t, ({ method }) => (method === 'GET' ? said : exists))
    const provider = await opened(t, vendor, mailchimpSettings(server.url))
    const creation = await provider.createContact(ada, true, never)
    assert.partialDeepStrictEqual(creation, expected)
    if (!('ours' in expected)) assert.ok(creation.is !== 'existing' || creation.ours === undefined)
  })
}

const problem = (status: number, title: string, detail = '', more: object = {}): Said => ({
  status,
  body: { title, status, detail, ...more },
  headers: { 'content-type': 'application/problem+json' },
})
const invalid = (detail: string, errors?: object) => problem(400, 'Invalid Resource', detail, errors && { errors })
const fields = [{ field: 'merge_fields.FNAME', message: 'Data did not match any of the schemas.' }]

const atAddress = { field: 'email_address', message: 'This value should be a valid email.' }
const SEE_ERRORS = "The resource submitted could not be validated. For field-specific details, see the 'errors' array."

const answers: readonly (readonly [string, Said, string])[] = [
  ['Member Exists', problem(400, 'Member Exists', 'ada@example.com is already a list member.'), 'existing'],
  ['Forgotten Email', problem(400, 'Forgotten Email Not Subscribed', 'It was permanently deleted.'), 'refused'],
  ['Member In Compliance State', problem(400, 'Member In Compliance State', 'Due to unsubscribe.'), 'refused'],
  ['a fake address', invalid('ada@example.com looks fake or invalid, please enter a real email address.'), 'refused'],
  ['an invalid address', invalid('Please provide a valid email address.'), 'refused'],
  ['an address without @', invalid('An email address must contain a single @'), 'refused'],
  ['an error at the address', invalid(SEE_ERRORS, [atAddress]), 'refused'],
  ['an error at the address and one elsewhere', invalid(SEE_ERRORS, [atAddress, ...fields]), 'misconfigured'],
  ['an empty list of errors', invalid(SEE_ERRORS, []), 'misconfigured'],
  ['words about addresses in general', invalid('No sender with a valid email address is verified.'), 'misconfigured'],
  ['too many lists', invalid("ada@example.com joined a lot; we're not allowing more signups for now"), 'unreached'],
  ['a field that does not fit', invalid(SEE_ERRORS, fields), 'misconfigured'],
  ['an unknown interest', invalid("Invalid interest ID: 'c06bb4b529'."), 'misconfigured'],
  ['merge fields', invalid('Your merge fields were invalid.'), 'misconfigured'],
  ['another title', problem(400, 'JSONParseError'), 'misconfigured'],
  ['an unknown key', problem(401, 'API Key Invalid'), 'misconfigured'],
  ['403 with JSON', problem(403, 'User Does Not Have Access'), 'misconfigured'],
  ['403 without a body', { status: 403 }, 'unreached'],
  ['403 with HTML', { status: 403, body: '<html>Access Denied</html>' }, 'unreached'],
  ['404', problem(404, 'Resource Not Found'), 'misconfigured'],
  ['429', problem(429, 'Too Many Requests'), 'unreached'],
  ['503, as when it blocks', { status: 503, body: 'Request Blocked.' }, 'unreached'],
  ['200 without an id', { status: 200, body: { email_address: 'ada@example.com' } }, 'unclear'],
]

for (const [what, said, expected] of answers) {
  test(`a creation that is answered with ${what} is ${expected}`, async t => {
    const server = await startVendor(t, () => said)
    const provider = await opened(t, vendor, mailchimpSettings(server.url))
    const creation = await provider.createContact(ada, false, never)
    assert.equal(creation.is, expected, JSON.stringify(creation))
    assert.ok(!JSON.stringify(creation).includes('ada@'))
    // Where others are added, this one keeps nobody waiting.
    assert.equal('alone' in creation, what === 'too many lists')
    // The same for all: nobody learns what an address did before.
    if (creation.is === 'refused') assert.equal(creation.reason, 'it cannot be added there')
  })
}

test('throttling without JSON is no verdict on the key, in the check and the automation too', async t => {
  const server = await startVendor(t, () => ({ status: 403 }))
  const provider = await opened(t, vendor, mailchimpSettings(server.url))
  assert.equal((await provider.check(never))?.is, 'unreached')
  assert.equal((await provider.automation!.deliver(eventOf(ada), never)).is, 'unreached')
})

test('the journey, a double opt-in and the event each reach a new member once', async t => {
  for (const change of [{}, mailchimpJourney, { MAILCHIMP_DOUBLE_OPT_IN: 'true' }]) {
    const fake = mailchimpFake()
    const server = await startVendor(t, fake.answer)
    const provider = await opened(t, vendor, { ...mailchimpSettings(server.url), ...change })
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'created' && creation.providerId !== undefined)
    const event = eventOf({ ...ada, providerId: creation.providerId })
    assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    assert.equal(fake.starts('ada@example.com'), 1)
    const { status } = fake.kept('ada@example.com') as { status: string }
    assert.equal(status, 'MAILCHIMP_DOUBLE_OPT_IN' in change ? 'pending' : 'subscribed')
  }
})

test('a check of an audience that is not there says so', async t => {
  const server = await startVendor(t, mailchimpFake().answer)
  const provider = await opened(t, vendor, { ...mailchimpSettings(server.url), MAILCHIMP_AUDIENCE_ID: 'another' })
  assert.equal((await provider.check(never))?.is, 'misconfigured')
})

test('a 2xx that is not as documented is neither a good key nor a start of the automation', async t => {
  for (const body of [{}, '<html>Welcome</html>']) {
    const server = await startVendor(t, () => ({ status: 200, body }))
    const provider = await opened(t, vendor, mailchimpSettings(server.url))
    assert.equal((await provider.check(never))?.is, 'unreached')
    assert.equal((await provider.automation!.deliver(eventOf(ada), never)).is, 'unclear')
  }
})
