import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import * as imported from '@mailerlite/mailerlite-nodejs'
import type { Creation } from '../../src/waitlist/ports.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { GROUP, mailerliteFake, mailerliteSettings, timeOf } from './mailerlite.fake.ts'

// Its types are those of a CommonJS module, and it is none here.
const MailerLite = imported.default as unknown as typeof imported.default.default
const vendor = 'mailerlite'
const HOUR = 3_600_000
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
})

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
    await provider.check!(never)
  })
  const theirs = await recorded(t, mailerliteFake().answer, async url => {
    const client = new MailerLite({ api_key: mailerliteSettings('').MAILERLITE_API_KEY, base_path: url })
    const email = 'ada+1@example.com'
    await client.subscribers.find(email).catch(() => {})
    await client.subscribers.createOrUpdate({ email, fields: { name: 'Ada', last_name: 'King Lovelace' } })
    await client.subscribers.find(email)
    await client.groups.assignSubscriber(ID, GROUP)
    await client.groups.getSubscribers(GROUP, { limit: 1 })
  })
  assertSameWire(ours, theirs)
  // It asks for both fields in every request; the client adds other types to the second.
  assert.ok(ours.every(({ headers }) => headers.accept === 'application/json'))
})

describe('a creation', () => {
  test('of somebody who exists is a lookup alone', async t => {
    const fake = mailerliteFake()
    fake.had('ada+1@example.com')
    const server = await startVendor(t, fake.answer)
    const provider = await opened(t, { vendor }, mailerliteSettings(server.url))
    assert.deepEqual(await provider.createContact(ada, false, never), {
      is: 'existing',
      providerId: ID,
      ours: undefined,
    })
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

  for (const status of [200, 201]) {
    test(`that follows a 404 and is answered with ${status} is created`, async t => {
      const { provider } = await saying(t, { POST: { status, body: { data: { id: ID } } } })
      assert.deepEqual(await provider.createContact(ada, false, never), { is: 'created', providerId: ID })
    })
  }

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

  test('in doubt, who is older than the signup in every time zone is not ours', async t => {
    const ages: [number | string, boolean | undefined][] = [
      [0, true],
      [-14 * HOUR, true],
      [14 * HOUR, true],
      [-23 * HOUR, true],
      [-25 * HOUR, false],
      [-4000 * HOUR, false],
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
    assert.deepEqual(server.asked[1]!.json, { email: ada.email, fields: { name: 'Ada', last_name: 'King Lovelace' } })
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
    assert.equal((await provider.check!(never))?.is, 'misconfigured')
    assert.deepEqual(
      server.asked.map(({ path, query }: Asked) => [path, query]),
      [['/api/groups/1/subscribers', { limit: '1' }]],
    )
  })

  test('without a group tries the key', async t => {
    const server = await startVendor(t, mailerliteFake().answer)
    const provider = await opened(t, { vendor }, { ...mailerliteSettings(server.url), MAILERLITE_GROUP_ID: '' })
    assert.equal(await provider.check!(never), null)
    assert.equal(server.asked[0]!.path, '/api/groups')
  })
})
