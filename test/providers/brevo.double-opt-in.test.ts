import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BrevoClient } from '@getbrevo/brevo'
import { readConfig } from '../../src/config/config.ts'
import { contactOf, opened, SHORT } from '../contracts/provider.ts'
import { type Misbehaviour, misbehaviours, startVendor } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { brevoDoubleOptIn, brevoFake, brevoSettings } from './brevo.fake.ts'
import { callsOf, starting } from './started.ts'

const never = new AbortController().signal
const ada = contactOf('ada@example.com')
const started = starting('brevo', brevoFake, url => ({ ...brevoSettings(url), ...brevoDoubleOptIn }))
const FIND = 'GET /v3/contacts/ada@example.com'
const ASK = 'POST /v3/contacts/doubleOptinConfirmation'

describe('Brevo with double opt-in', { timeout: 60_000 }, () => {
  test("our requests are those of the vendor's own client", async t => {
    const ours = await recorded(t, brevoFake().answer, async url => {
      const env = { ...brevoSettings(url), ...brevoDoubleOptIn }
      const provider = await opened(t, { vendor: 'brevo' }, env)
      assert.equal(await provider.check(never), null)
      assert.deepEqual(await provider.createContact(ada, false, never), { is: 'created' })
    })
    const theirs = await recorded(t, brevoFake().answer, async url => {
      const client = new BrevoClient({ apiKey: brevoSettings('').BREVO_API_KEY, baseUrl: `${url}/v3`, maxRetries: 0 })
      await client.contacts.getAttributes()
      await client.contacts.getList({ listId: 2 })
      await client.contacts.getList({ listId: 5 })
      await client.transactionalEmails.getSmtpTemplate({ templateId: 7 })
      await client.contacts.getContactInfo({ identifier: 'ada@example.com' }).catch(() => {})
      await client.contacts.createDoiContact({
        email: 'ada@example.com',
        attributes: { FIRSTNAME: 'Ada', LASTNAME: 'King Lovelace' },
        includeListIds: [2, 5],
        templateId: 7,
        redirectionUrl: brevoDoubleOptIn.BREVO_DOUBLE_OPT_IN_REDIRECT_URL,
      })
    })
    assertSameWire(ours, theirs, ['content-type', 'api-key'])
  })

  test('nobody is a contact before the click; after it, with the name and on the lists', async t => {
    const { fake, provider } = await started(t)
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'created' })
    assert.deepEqual([fake.count('ada@example.com'), fake.asked('ada@example.com')], [0, 1])
    // An event might create the contact, or start what is meant for those who confirmed.
    assert.equal(provider.automation, null)
    fake.confirm('ada@example.com')
    const { attributes, listIds } = fake.kept('ada@example.com') as Record<string, unknown>
    assert.deepEqual(attributes, { FIRSTNAME: 'Ada', LASTNAME: 'King Lovelace' })
    assert.deepEqual(listIds, [2, 5])
  })

  test('a known contact gets no mail and is not changed, for one call', async t => {
    const { fake, server, provider } = await started(t)
    fake.had('ada@example.com')
    const before = structuredClone(fake.kept('ada@example.com'))
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
    assert.deepEqual(callsOf(server), [FIND])
    assert.deepEqual([fake.kept('ada@example.com'), fake.asked('ada@example.com')], [before, 0])
  })

  const unclear: ReadonlySet<Misbehaviour> = new Set([
    'hang before',
    'hang after',
    'reset before',
    'reset after',
    '500 before',
    '500 after',
    '502 with HTML',
  ])

  for (const what of misbehaviours) {
    test(`a request for confirmation that meets "${what}" ends with one mail`, async t => {
      const { fake, server, provider } = await started(t)
      const env = { ...brevoSettings(server.url), ...brevoDoubleOptIn }
      const hasty = what.startsWith('hang') && (await opened(t, { vendor: 'brevo' }, env, SHORT))
      server.next('slow', what)
      const first = await (hasty || provider).createContact(ada, false, never)
      const expected = unclear.has(what) ? 'unclear' : /^503|^429/.test(what) ? 'unreached' : 'created'
      assert.equal(first.is, expected, JSON.stringify(first))
      if (first.is !== 'created') {
        server.behave()
        const again = await provider.createContact(ada, first.is === 'unclear', never)
        assert.deepEqual(again, { is: 'created' })
      }
      assert.equal(fake.asked('ada@example.com'), 1)
    })
  }

  test('in doubt, who confirmed meanwhile is ours, and who was there before is not', async t => {
    const { fake, provider } = await started(t)
    fake.had('old@example.com')
    const old = await provider.createContact(contactOf('old@example.com'), true, never)
    assert.deepEqual(old, { is: 'existing', providerId: '1', ours: false })
    await provider.createContact(ada, false, never)
    fake.confirm('ada@example.com')
    const again = await provider.createContact(ada, true, never)
    assert.deepEqual(again, { is: 'existing', providerId: '2', ours: true })
    assert.equal(fake.asked('ada@example.com'), 1)
  })

  for (const status of [400, 403, 409, 422] as const) {
    test(`a ${status} of unknown wording, to either call, is no reason to drop the signup`, async t => {
      const { fake, server, provider } = await started(t)
      for (const before of [[], ['slow' as const]]) {
        server.next(...before, `${status} of unknown wording`)
        assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
      }
      assert.equal(fake.asked('ada@example.com'), 0)
    })
  }

  test('an address that the look-up already calls invalid is refused', async t => {
    const body = { code: 'invalid_parameter', message: 'Invalid email address' }
    const server = await startVendor(t, () => ({ status: 400, body }))
    const env = { ...brevoSettings(server.url), ...brevoDoubleOptIn }
    const provider = await opened(t, { vendor: 'brevo' }, env)
    assert.equal((await provider.createContact(ada, false, never)).is, 'refused')
    assert.deepEqual(callsOf(server), [FIND])
  })

  test('an address that is not valid is refused, a template that is not active is our mistake', async t => {
    const { provider } = await started(t)
    assert.equal((await provider.createContact(contactOf('refused@example.com'), false, never)).is, 'refused')
    for (const template of ['8', '9', '10']) {
      const { fake, provider: other } = await started(t, { BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: template })
      assert.equal((await other.createContact(ada, false, never)).is, 'misconfigured')
      const failure = await other.check(never)
      assert.equal(failure?.is, 'misconfigured')
      assert.match(failure.why, /^check the template: /)
      assert.equal(fake.asked('ada@example.com'), 0)
    }
  })

  test('an address that Brevo may not ask, as its contact is blocked, is known and not waited for', async t => {
    const message = 'This sms number or email address is already associated with another user. Please use another one.'
    for (const there of [false, true]) {
      const fake = brevoFake()
      if (there) fake.had('ada@example.com')
      const no = { status: 400, body: { code: 'invalid_parameter', message } }
      const server = await startVendor(t, asked => (asked.method === 'POST' ? no : fake.answer(asked)))
      const env = { ...brevoSettings(server.url), ...brevoDoubleOptIn, PROVIDER_EXISTING: 'join' }
      const provider = await opened(t, { vendor: 'brevo' }, env)
      for (const doubt of [false, true]) {
        const creation = await provider.createContact(ada, doubt, never)
        assert.ok(creation.is === 'existing' && (!doubt || creation.ours === false), JSON.stringify(creation))
      }
      assert.ok(callsOf(server).includes(ASK))
    }
  })

  describe('with PROVIDER_EXISTING=join', () => {
    const join = { PROVIDER_EXISTING: 'join' }

    test('a known contact is asked once, and joins when it confirms; its name stays', async t => {
      const { fake, provider } = await started(t, join)
      fake.had('ada@example.com')
      for (let i = 0; i < 3; i++) assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
      assert.deepEqual([fake.joined!('ada@example.com'), fake.asked('ada@example.com')], [false, 1])
      fake.confirm('ada@example.com')
      assert.equal(fake.joined!('ada@example.com'), true)
      const { attributes } = fake.kept('ada@example.com') as Record<string, unknown>
      assert.deepEqual(attributes, { FIRSTNAME: 'Old' })
      assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
      assert.equal(fake.asked('ada@example.com'), 1, 'who is on the lists is not asked')
    })

    test('who unsubscribed is not asked', async t => {
      const { fake, server, provider } = await started(t, join)
      fake.had('ada@example.com')
      fake.unsubscribe('ada@example.com')
      assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
      assert.ok(!callsOf(server).includes(ASK))
    })
  })

  test('half of it, and no list, are told at the start', () => {
    const { BREVO_LIST_IDS, BREVO_BASE_URL, ...least } = brevoSettings('')
    const { BREVO_DOUBLE_OPT_IN_TEMPLATE_ID, BREVO_DOUBLE_OPT_IN_REDIRECT_URL } = brevoDoubleOptIn
    for (const change of [
      { BREVO_LIST_IDS, BREVO_DOUBLE_OPT_IN_TEMPLATE_ID },
      { BREVO_LIST_IDS, BREVO_DOUBLE_OPT_IN_REDIRECT_URL },
      brevoDoubleOptIn,
    ]) {
      const result = readConfig({ PROVIDER: 'brevo', ...least, ...change })
      assert.ok('mistakes' in result, JSON.stringify(change))
      assert.match(result.mistakes.join(), /^BREVO_DOUBLE_OPT_IN_TEMPLATE_ID /)
    }
    assert.ok('config' in readConfig({ PROVIDER: 'brevo', ...least, BREVO_LIST_IDS, ...brevoDoubleOptIn }))
  })
})
