import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { plunkError, plunkFake, plunkSettings } from './plunk.fake.ts'
import { callsOf } from './started.ts'

providerContract({
  vendor: 'plunk',
  settings: plunkSettings,
  wrongKey: { PLUNK_SECRET_KEY: 'sk_another', PLUNK_PUBLIC_KEY: 'pk_another' },
  fake: plunkFake,
  refused: 'refused@example.com',
})

const ada = contactOf('ada@example.com')
const event = eventOf(ada)
const never = new AbortController().signal

async function started(t: TestContext, change: (answer: (asked: Asked) => Said) => (asked: Asked) => Said = a => a) {
  const fake = plunkFake()
  const server = await startVendor(t, change(fake.answer))
  const provider = await opened(t, { vendor: 'plunk' }, plunkSettings(server.url))
  return { fake, server, provider }
}

describe('Plunk', { timeout: 60_000 }, () => {
  test('what is sent, and with which of the two keys', async t => {
    const { server, provider } = await started(t)
    assert.equal(await provider.check(never), null)
    await provider.createContact(ada, false, never)
    await provider.createContact(contactOf('bob@example.com', { name: 'Bob' }), false, never)
    assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    const sent = server.asked.map(({ method, path, query, headers, json }) => ({
      call: `${method} ${path}?${new URLSearchParams(query)}`,
      as: headers.authorization,
      key: headers['idempotency-key'],
      json,
    }))
    const as = 'Bearer sk_of-the-test'
    const key = undefined
    const full = { firstName: 'Ada', lastName: 'King Lovelace' }
    assert.deepEqual(sent, [
      { call: 'GET /contacts?limit=1', as, key, json: undefined },
      { call: 'POST /contacts/lookup?', as, key, json: { emails: ['ada@example.com'] } },
      { call: 'POST /contacts?', as, key, json: { email: 'ada@example.com', data: full } },
      { call: 'POST /contacts/lookup?', as, key, json: { emails: ['bob@example.com'] } },
      { call: 'POST /contacts?', as, key, json: { email: 'bob@example.com', data: { firstName: 'Bob' } } },
      {
        call: 'POST /v1/track?',
        as: 'Bearer pk_of-the-test',
        key: event.id,
        json: { event: 'waitlist.joined', email: 'ada@example.com' },
      },
    ])
  })

  test('PLUNK_SUBSCRIBED is sent with a new contact alone; unset, Plunk decides', async t => {
    for (const [setting, expected] of [
      ['false', false],
      ['true', true],
      ['', undefined],
    ] as const) {
      const fake = plunkFake()
      fake.had('old@example.com')
      const old = structuredClone(fake.kept('old@example.com'))
      const server = await startVendor(t, fake.answer)
      const change = { PLUNK_SUBSCRIBED: setting, PROVIDER_EXISTING: 'join' }
      const provider = await opened(t, { vendor: 'plunk' }, { ...plunkSettings(server.url), ...change })
      assert.equal((await provider.createContact(ada, false, never)).is, 'created')
      assert.equal((await provider.createContact(contactOf('old@example.com'), false, never)).is, 'existing')
      await provider.automation!.deliver(event, never)
      const sent = server.asked.filter(({ json }) => json !== undefined && 'subscribed' in json)
      const expectedCalls = expected === undefined ? [] : [['/contacts', expected]]
      assert.deepEqual(
        sent.map(({ path, json }) => [path, json.subscribed]),
        expectedCalls,
      )
      assert.equal((fake.kept('ada@example.com') as { subscribed: boolean }).subscribed, expected ?? true)
      assert.deepEqual(fake.kept('old@example.com'), old)
    }
  })

  test('there is nothing to join, and a warning says so', async () => {
    const { PLUNK_BASE_URL, ...settings } = plunkSettings('')
    const https = { BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1' }
    const result = await readConfig({ ...https, PROVIDER: 'plunk', ...settings, PROVIDER_EXISTING: 'join' })
    assert.ok('config' in result)
    assert.deepEqual(result.config.warnings, ['PROVIDER_EXISTING=join has no effect: Plunk has nothing to join.'])
  })

  test('an address that is known costs one call, and two when there is doubt', async t => {
    const { fake, server, provider } = await started(t)
    fake.had('ada@example.com')
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
    assert.deepEqual(callsOf(server), ['POST /contacts/lookup'])
    const doubted = await provider.createContact(ada, true, never)
    assert.deepEqual(doubted, { is: 'existing', providerId: 'old-1', ours: false })
    assert.deepEqual(callsOf(server).slice(1), ['POST /contacts/lookup', 'GET /contacts'])
  })

  test('a longer address that contains ours is not taken for ours', async t => {
    const { fake, provider } = await started(t)
    fake.had('ada@example.com')
    await provider.createContact(contactOf('not-ada@example.com'), false, never)
    const creation = await provider.createContact(ada, true, never)
    assert.deepEqual(creation, { is: 'existing', providerId: 'old-1', ours: false })
  })

  test('made by somebody else between look-up and creation: existing, and ours when it is young', async t => {
    for (const doubt of [false, true]) {
      const { provider } = await started(t, answer => asked => {
        const said = answer(asked)
        if (asked.path === '/contacts/lookup') {
          answer({ ...asked, path: '/contacts', segments: ['', 'contacts'], json: { email: ada.email } })
        }
        return said
      })
      const creation = await provider.createContact(ada, doubt, never)
      const expected = { is: 'existing', providerId: 'contact-1' }
      assert.deepEqual(creation, doubt ? { ...expected, ours: true } : expected)
    }
  })

  test('the 500 of two creations at once leaves doubt, and the next attempt finds the contact', async t => {
    const { fake, provider } = await started(t, answer => asked => {
      const said = answer(asked)
      return asked.path === '/contacts' && said.status === 201 ? plunkError(500, 'INTERNAL_SERVER_ERROR') : said
    })
    assert.equal((await provider.createContact(ada, false, never)).is, 'unclear')
    const again = await provider.createContact(ada, true, never)
    assert.deepEqual(again, { is: 'existing', providerId: 'contact-1', ours: true })
    assert.equal(fake.count('ada@example.com'), 1)
  })

  test('a look-up that is no answer ends there: nothing is created', async t => {
    const senseless: unknown[] = [
      {},
      { found: [], notFound: [] },
      { found: ['ada@example.com'], notFound: ['ada@example.com'] },
    ]
    for (const body of senseless) {
      const { server, provider } = await started(t, () => () => ({ status: 200, body }))
      assert.equal((await provider.createContact(ada, false, never)).is, 'unreached')
      assert.deepEqual(callsOf(server), ['POST /contacts/lookup'])
    }
  })

  test('401, 402, 403, 404, 422: what each is taken for', async t => {
    const rows: [Said, string, string][] = [
      [plunkError(401, 'INVALID_API_KEY'), 'misconfigured', 'misconfigured'],
      [plunkError(402, 'BILLING_LIMIT_EXCEEDED'), 'unreached', 'unreached'],
      [plunkError(403, 'PROJECT_DISABLED'), 'misconfigured', 'misconfigured'],
      [plunkError(404, 'NOT_FOUND'), 'misconfigured', 'misconfigured'],
      [{ status: 400, body: { error: 'Email is required' } }, 'misconfigured', 'refused'],
      [plunkError(409, 'CONFLICT'), 'misconfigured', 'misconfigured'],
      [plunkError(422, 'VALIDATION_ERROR', { errors: [{ field: 'data' }] }), 'misconfigured', 'refused'],
      [plunkError(422, 'VALIDATION_ERROR', { errors: [{ field: 'email' }] }), 'refused', 'refused'],
    ]
    for (const [said, creation, told] of rows) {
      const { provider } = await started(t, answer => asked => (asked.path.endsWith('/lookup') ? answer(asked) : said))
      assert.equal((await provider.createContact(ada, false, never)).is, creation, JSON.stringify(said))
      assert.equal((await provider.automation!.deliver(event, never)).is, told, JSON.stringify(said))
      assert.equal((await provider.check(never))?.is, told === 'refused' ? 'misconfigured' : told)
    }
  })

  test('a project without credit, or disabled, says so to every call', async t => {
    const { fake, provider } = await started(t)
    for (const [status, is] of [
      [402, 'unreached'],
      [403, 'misconfigured'],
    ] as const) {
      fake.refuse(status)
      const said = [await provider.createContact(ada, false, never), await provider.check(never)]
      for (const each of said) assert.equal(each?.is, is)
    }
    assert.equal(fake.count('ada@example.com'), 0)
  })

  test('an event name that Plunk keeps for itself is refused, and its key can be used again', async t => {
    const { fake, provider } = await started(t)
    for (const name of ['email.sent', 'contact.subscribed', 'segment.beta.entry']) {
      const told = await provider.automation!.deliver({ ...event, name }, never)
      assert.equal(told.is, 'refused', name)
    }
    assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    assert.equal(fake.starts('ada@example.com'), 1)
  })

  test('an event that failed with 500 is abandoned, since Plunk keeps its key, and a replay starts it once the key is free', async t => {
    const { fake, provider } = await started(t)
    fake.breakOnce('/v1/track')
    assert.equal((await provider.automation!.deliver(event, never)).is, 'unclear')
    const told = await provider.automation!.deliver(event, never)
    assert.ok(told.is === 'refused' && told.why.endsWith('its first answer was 500, so replay it after 24 hours'))
    assert.equal(fake.starts('ada@example.com'), 0)
    fake.forgetKeys()
    assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    assert.equal(fake.starts('ada@example.com'), 1)
  })

  test('an event whose first attempt is still under way is asked for again', async t => {
    const { fake, provider } = await started(t)
    fake.neverFinish()
    assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    assert.equal((await provider.automation!.deliver(event, never)).is, 'unclear')
    assert.equal(fake.starts('ada@example.com'), 1)
  })

  test('the event changes nothing of a contact', async t => {
    const { fake, provider } = await started(t)
    fake.had('ada@example.com')
    await provider.automation!.deliver(event, never)
    const { data, subscribed } = fake.kept('ada@example.com') as Record<string, unknown>
    assert.deepEqual({ data, subscribed }, { data: { firstName: 'Old' }, subscribed: false })
  })
})

test('a contact that many newer addresses hide is to be deleted by hand', async t => {
  const fake = plunkFake()
  fake.had('ada@example.com')
  for (let i = 0; i < 20; i++) fake.had(`${i}ada@example.com`)
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, { vendor: 'plunk' }, plunkSettings(server.url))
  assert.equal((await provider.remove('ada@example.com', never)).is, 'by hand')
  assert.equal(fake.count('ada@example.com'), 1)
  assert.deepEqual(await provider.remove('19ada@example.com', never), { is: 'removed' })
  assert.deepEqual(await provider.remove('ada@example.com', never), { is: 'removed' })
  assert.equal(fake.count('0ada@example.com'), 1)
})
