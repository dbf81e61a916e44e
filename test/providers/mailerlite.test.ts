import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import * as imported from '@mailerlite/mailerlite-nodejs'
import { readConfig } from '../../src/config/config.ts'
import type { Creation } from '../../src/waitlist/ports/provider.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { GROUP, GROUPS, mailerliteFake, mailerliteGroups, mailerliteSettings, timeOf } from './mailerlite.fake.ts'
import { starting } from './started.ts'

// Its types are those of a CommonJS module, and it is none here.
const MailerLite = imported.default as unknown as typeof imported.default.default
const vendor = 'mailerlite'
const MINUTE = 60_000
const ID = '73871649530709291'
const never = new AbortController().signal
const ada = contactOf('ada+1@example.com')
const event = eventOf({ ...ada, providerId: ID })

providerContract({
  vendor,
  settings: mailerliteSettings,
  wrongKey: { MAILERLITE_API_KEY: 'another-key' },
  fake: mailerliteFake,
  refused: 'refused@example.com',
  joining: { settings: mailerliteGroups, members: ['groups'] },
})

const started = starting(vendor, mailerliteFake, mailerliteSettings)

/** A provider whose vendor answers each method with always the same. */
async function saying(t: TestContext, said: Record<string, Said>, change: Record<string, string> = {}) {
  const server = await startVendor(t, ({ method }) => said[method] ?? { status: 404, body: { message: 'Not found.' } })
  return { server, provider: await opened(t, { vendor }, { ...mailerliteSettings(server.url), ...change }) }
}

test("our requests are those of the vendor's own client", async t => {
  const ours = await recorded(t, mailerliteFake().answer, async url => {
    const provider = await opened(t, { vendor }, mailerliteSettings(url))
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, false, never)
    await provider.automation!.deliver(event, never)
    await provider.check(never)
    for (const is of ['removed', 'absent']) assert.equal((await provider.remove(ada.email, never)).is, is)
  })
  const theirs = await recorded(t, mailerliteFake().answer, async url => {
    const client = new MailerLite({ api_key: mailerliteSettings('').MAILERLITE_API_KEY, base_path: url })
    const email = 'ada+1@example.com'
    await client.subscribers.find(email).catch(() => {})
    const fields = { name: 'Ada', last_name: 'King Lovelace' }
    await client.subscribers.createOrUpdate({ email, fields, opted_in_at: timeOf(ada.createdAt) })
    await client.subscribers.find(email)
    await client.groups.assignSubscriber(ID, GROUP)
    await client.groups.getSubscribers(GROUP, { limit: 1 })
    await client.subscribers.find(email)
    await client.subscribers.forget(ID)
    await client.subscribers.find(email).catch(() => {})
  })
  assertSameWire(ours, theirs)
  // It asks for both fields in every request; the client adds other types to the second.
  assert.ok(ours.every(({ headers }) => headers.accept === 'application/json'))
})

test("with groups and double opt-in, our requests are those of the vendor's own client", async t => {
  const groups = { ...mailerliteGroups, MAILERLITE_DOUBLE_OPT_IN: 'true', PROVIDER_EXISTING: 'join' }
  const ours = await recorded(t, mailerliteFake().answer, async url => {
    const provider = await opened(t, { vendor }, { ...mailerliteSettings(url), ...groups })
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, false, never)
    await provider.check(never)
  })
  const theirs = await recorded(t, mailerliteFake().answer, async url => {
    const client = new MailerLite({ api_key: mailerliteSettings('').MAILERLITE_API_KEY, base_path: url })
    const email = 'ada+1@example.com'
    const fields = { name: 'Ada', last_name: 'King Lovelace' }
    await client.subscribers.find(email).catch(() => {})
    await client.subscribers.createOrUpdate({ email, fields, groups: GROUPS, status: 'unconfirmed' })
    await client.subscribers.find(email)
    for (const group of GROUPS) await client.groups.assignSubscriber(ID, group)
    for (const group of [GROUP, ...GROUPS]) await client.groups.getSubscribers(group, { limit: 1 })
  })
  assertSameWire(ours, theirs)
})

describe('a creation', () => {
  test('of somebody who exists is a lookup alone', async t => {
    const fake = mailerliteFake()
    fake.had('ada+1@example.com')
    const server = await startVendor(t, fake.answer)
    const provider = await opened(t, { vendor }, mailerliteSettings(server.url))
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing', providerId: ID, ours: false })
    assert.deepEqual(
      server.asked.map(({ method, path }) => [method, path]),
      [['GET', '/api/subscribers/ada+1@example.com']],
    )
  })

  test('looks for any address', async t => {
    const { server, provider } = await saying(t, {})
    await provider.createContact(contactOf('a%41?b#c@example.com'), false, never)
    assert.deepEqual([server.asked[0]!.path, server.asked[0]!.query], ['/api/subscribers/a%41?b#c@example.com', {}])
  })

  test('that follows a 404 is new with 201, and with 200 is of somebody who was added since', async t => {
    const is = async (status: number, created: Date, doubt: boolean) => {
      const body = { data: { id: ID, created_at: timeOf(created) } }
      const { provider } = await saying(t, { POST: { status, body } })
      return provider.createContact(ada, doubt, never)
    }
    const old = new Date('2020-01-01')
    for (const doubt of [false, true]) {
      assert.deepEqual(await is(201, new Date(), doubt), { is: 'created', providerId: ID })
      assert.deepEqual(await is(200, old, doubt), { is: 'existing', providerId: ID, ours: false })
      assert.deepEqual(await is(200, new Date(), doubt), { is: 'existing', providerId: ID, ours: true })
    }
  })

  test('adds a new contact to the groups at once, and leaves the one of the automation to it', async t => {
    const { fake, server, provider } = await started(t, mailerliteGroups)
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.equal(server.asked.length, 2)
    assert.partialDeepStrictEqual(fake.kept(ada.email), { status: 'active', groups: GROUPS })
    assert.equal(fake.starts(ada.email), 0)
  })

  test('tells when the contact signed up, unless it has yet to confirm', async t => {
    const signedUp = contactOf(ada.email, { createdAt: new Date('2026-03-04T05:06:07.89Z') })
    for (const [change, at] of [
      [{}, '2026-03-04 05:06:07'],
      [{ MAILERLITE_DOUBLE_OPT_IN: 'true' }, null],
    ] as const) {
      const { fake, provider } = await started(t, change)
      await provider.createContact(signedUp, false, never)
      assert.partialDeepStrictEqual(fake.kept(ada.email), { opted_in_at: at })
    }
  })

  test('makes a contact unconfirmed where the settings say so', async t => {
    const { fake, provider } = await started(t, { MAILERLITE_DOUBLE_OPT_IN: 'true' })
    await provider.createContact(ada, false, never)
    assert.partialDeepStrictEqual(fake.kept(ada.email), { status: 'unconfirmed' })
  })

  test('with a group that is not there is our mistake', async t => {
    const { fake, provider } = await started(t, { MAILERLITE_GROUP_IDS: `${GROUPS[0]},1` })
    assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
    assert.equal(fake.count(ada.email), 0)
  })

  const answers: [Record<string, Said>, Creation['is']][] = [
    [{ GET: { status: 401, body: { message: 'Unauthenticated.' } } }, 'misconfigured'],
    [{ GET: { status: 403, body: { message: 'No.' } } }, 'misconfigured'],
    [{ GET: { status: 200, body: { data: {} } } }, 'unreached'],
    [{ GET: { status: 500, body: '' } }, 'unreached'],
    [{ POST: { status: 401, body: { message: 'Unauthenticated.' } } }, 'misconfigured'],
    [{ POST: { status: 404, body: { message: 'No.' } } }, 'misconfigured'],
    [{ POST: { status: 422, body: { message: 'No.', errors: { email: ['It is not valid.'] } } } }, 'refused'],
    [{ POST: { status: 422, body: { message: 'No.', errors: { email: ['No.'], fields: ['No.'] } } } }, 'misconfigured'],
    [{ POST: { status: 422, body: { message: 'No.', errors: { fields: ['No.'] } } } }, 'misconfigured'],
    [{ POST: { status: 422, body: { message: 'The email is not valid.' } } }, 'misconfigured'],
    [{ POST: { status: 422, body: { message: 'No.', errors: { 'groups.0': ['No email.'] } } } }, 'misconfigured'],
    [{ POST: { status: 202, body: { data: { id: ID } } } }, 'unclear'],
    [{ POST: { status: 200, body: { data: {} } } }, 'unclear'],
    [{ POST: { status: 200, body: { data: null } } }, 'unclear'],
  ]
  for (const [said, is] of answers) {
    test(`answered with ${JSON.stringify(said)} is ${is}`, async t => {
      const { provider } = await saying(t, said)
      assert.equal((await provider.createContact(ada, false, never)).is, is)
    })
  }

  test('answered with 429 waits as long as it says', async t => {
    const said = { status: 429, body: { message: 'Too Many Attempts.' }, headers: { 'retry-after': '38' } }
    const { provider } = await saying(t, { GET: said })
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'unreached' && creation.retryAfter === 38_000, JSON.stringify(creation))
  })

  test('in doubt, who is older than the signup is not ours', async t => {
    const ages: [number | string, boolean | undefined][] = [
      [0, true],
      [5 * MINUTE, true],
      [-0.5 * MINUTE, true],
      [-2 * MINUTE, false],
      [-600 * MINUTE, false],
      ['soon', undefined],
    ]
    for (const [age, ours] of ages) {
      const created_at = typeof age === 'string' ? age : timeOf(new Date(ada.createdAt.getTime() + age))
      const { provider } = await saying(t, { GET: { status: 200, body: { data: { id: ID, created_at } } } })
      const creation = await provider.createContact(ada, true, never)
      assert.deepEqual(creation, { is: 'existing', providerId: ID, ours }, String(age))
    }
  })
})

describe('the automation', () => {
  test('is none without a group, and a creation joins none', async t => {
    const { server, provider } = await saying(
      t,
      { POST: { status: 201, body: { data: { id: ID } } } },
      { MAILERLITE_GROUP_ID: '' },
    )
    assert.equal(provider.automation, null)
    await provider.createContact(ada, false, never)
    assert.deepEqual(server.asked[1]!.json, {
      email: ada.email,
      fields: { name: 'Ada', last_name: 'King Lovelace' },
      opted_in_at: timeOf(ada.createdAt),
    })
  })

  test('joins by address where the id is not known', async t => {
    const { server, provider } = await saying(t, { POST: { status: 200, body: { data: { id: GROUP } } } })
    assert.deepEqual(await provider.automation!.deliver(eventOf(ada), never), { is: 'delivered' })
    assert.equal(server.asked[0]!.path, `/api/subscribers/ada+1@example.com/groups/${GROUP}`)
  })

  for (const [status, body, is] of [
    [404, { message: 'Resource not found.' }, 'misconfigured'],
    [422, { message: 'No.' }, 'refused'],
    [200, { data: { id: '1' } }, 'unclear'],
    [200, '', 'unclear'],
  ] as const) {
    test(`answered with ${status} ${JSON.stringify(body)} is ${is}`, async t => {
      const { provider } = await saying(t, { POST: { status, body } })
      assert.equal((await provider.automation!.deliver(event, never)).is, is)
    })
  }
})

describe('the check', () => {
  test('asks for the group, so that a wrong one is told', async t => {
    const server = await startVendor(t, mailerliteFake().answer)
    const provider = await opened(t, { vendor }, { ...mailerliteSettings(server.url), MAILERLITE_GROUP_ID: '1' })
    assert.equal((await provider.check(never))?.is, 'misconfigured')
    assert.deepEqual(
      server.asked.map(({ path, query }: Asked) => [path, query]),
      [['/api/groups/1/subscribers', { limit: '1' }]],
    )
  })

  test('asks for every group, and names the one that is not there', async t => {
    const { server, provider } = await started(t, { MAILERLITE_GROUP_IDS: `${GROUPS[0]},7,${GROUPS[1]}` })
    const failure = await provider.check(never)
    assert.ok(
      failure?.is === 'misconfigured' && failure.why.startsWith('look for the group 7:'),
      JSON.stringify(failure),
    )
    assert.deepEqual(
      server.asked.map(({ path }) => path),
      [GROUP, GROUPS[0], '7'].map(id => `/api/groups/${id}/subscribers`),
    )
  })

  test('without a group tries the key', async t => {
    const server = await startVendor(t, mailerliteFake().answer)
    const provider = await opened(t, { vendor }, { ...mailerliteSettings(server.url), MAILERLITE_GROUP_ID: '' })
    assert.equal(await provider.check(never), null)
    assert.equal(server.asked[0]!.path, '/api/groups')
  })
})

test('the group that starts the automation is not joined at the creation', async () => {
  const env = { ...mailerliteSettings('http://127.0.0.1'), MAILERLITE_GROUP_IDS: `7,${GROUP}` }
  const result = await readConfig({ PROVIDER: vendor, ...env })
  assert.ok('mistakes' in result)
  assert.match(result.mistakes.join(), /^MAILERLITE_GROUP_IDS must not have/)
})
