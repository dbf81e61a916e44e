import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ApiKeySession, ProfilesApi } from 'klaviyo-api'
import { convergence } from '../contracts/provider.convergence.ts'
import { contactOf, opened, type VendorUnderTest } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { assertSameWire, recorded } from '../harness/wire.ts'
import { type KlaviyoFake, klaviyoError, klaviyoFake, klaviyoSettings } from './klaviyo.fake.ts'
import { callsOf, starting } from './started.ts'

const consenting = (url: string) => ({ ...klaviyoSettings(url), KLAVIYO_CONSENT: 'true' })

const fakes: KlaviyoFake[] = []
const under: VendorUnderTest = {
  vendor: 'klaviyo',
  settings: consenting,
  wrongKey: {},
  fake() {
    const fake = klaviyoFake()
    fakes.push(fake)
    return fake
  },
}

const ada = contactOf('ada@example.com')
const never = new AbortController().signal
const JOB = 'POST /api/profile-subscription-bulk-create-jobs'

const started = starting('klaviyo', klaviyoFake, consenting)

const isJob = ({ path }: Asked) => path.endsWith('-jobs')

describe('Klaviyo, with consent', { timeout: 180_000 }, () => {
  convergence(under)

  test('in the end who is new there is subscribed and on the list, and nobody else', () => {
    assert.ok(fakes.length > 0)
    for (const { consentOf, listsOf } of fakes) {
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        assert.equal(consentOf(`${name}@example.com`), 'SUBSCRIBED')
        assert.deepEqual(listsOf(`${name}@example.com`), ['LiSt01'])
      }
      for (const name of ['old-1', 'old-2']) {
        assert.equal(consentOf(`${name}@example.com`), 'NEVER_SUBSCRIBED')
        assert.deepEqual(listsOf(`${name}@example.com`), [])
      }
    }
  })

  test("our requests are those of the vendor's own client", async t => {
    const ours = await recorded(t, klaviyoFake().answer, async url => {
      const provider = await opened(t, { vendor: 'klaviyo' }, consenting(url))
      for (const doubt of [false, true]) await provider.createContact(ada, doubt, never)
    })
    const theirs = await recorded(t, klaviyoFake().answer, async url => {
      const profiles = new ProfilesApi(new ApiKeySession(consenting('').KLAVIYO_API_KEY))
      profiles.basePath = url
      const attributes = { email: ada.email, firstName: 'Ada', lastName: 'King Lovelace' }
      const create = () =>
        profiles.createProfile(
          { data: { type: 'profile', attributes } },
          { additionalFieldsProfile: ['subscriptions'] },
        )
      const id = (await create()).body.data.id!
      const subscriptions = { email: { marketing: { consent: 'SUBSCRIBED' } } } as const
      const subscribe = () =>
        profiles.bulkSubscribeProfiles({
          data: {
            type: 'profile-subscription-bulk-create-job',
            attributes: {
              customSource: 'waitlist',
              profiles: { data: [{ type: 'profile', id, attributes: { email: ada.email, subscriptions } }] },
            },
            relationships: { list: { data: { type: 'list', id: 'LiSt01' } } },
          },
        })
      await subscribe()
      await create().catch(() => {})
      const fieldsProfile = ['created', 'subscriptions'] as ('created' | 'subscriptions')[]
      await profiles.getProfile(id, { additionalFieldsProfile: ['subscriptions'], fieldsProfile })
      await subscribe()
    })
    assertSameWire(ours, theirs, ['authorization', 'revision', 'accept'])
  })

  test('a new profile is subscribed by one more call, which takes it to the list too', async t => {
    const { fake, server, provider } = await started(t)
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.deepEqual(callsOf(server), ['POST /api/profiles', JOB])
    assert.equal(fake.consentOf(ada.email), 'SUBSCRIBED')
    assert.deepEqual(fake.listsOf(ada.email), ['LiSt01'])
  })

  test('without a list the job names none: the default of the account decides', async t => {
    const { fake, server, provider } = await started(t, { KLAVIYO_LIST_ID: '' })
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.ok(!('relationships' in server.asked[1]!.json.data))
    assert.equal(fake.consentOf(ada.email), 'SUBSCRIBED')
  })

  test('with double opt-in the profile is asked to confirm, and is not on the list before that', async t => {
    const { fake, server, provider } = await started(t)
    fake.doubleOptIn.add('LiSt01')
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.deepEqual(callsOf(server), ['POST /api/profiles', JOB])
    assert.deepEqual(fake.asked, [ada.email])
    assert.equal(fake.consentOf(ada.email), 'NEVER_SUBSCRIBED')
    assert.deepEqual(fake.listsOf(ada.email), [])
  })

  test('a profile that was there before is never subscribed, not in doubt either, nor when it joins the list', async t => {
    for (const existing of ['leave', 'join']) {
      const { fake, server, provider } = await started(t, { PROVIDER_EXISTING: existing })
      fake.had(ada.email)
      fake.leaves(ada.email, { consent: 'UNSUBSCRIBED', suppression: [] })
      for (const doubt of [false, true]) assert.equal((await provider.createContact(ada, doubt, never)).is, 'existing')
      assert.equal(fake.consentOf(ada.email), 'UNSUBSCRIBED')
      assert.deepEqual(fake.jobs, [])
      assert.ok(!callsOf(server).includes(JOB))
      assert.deepEqual(fake.listsOf(ada.email), existing === 'join' ? ['LiSt01'] : [])
    }
  })

  test('a job that fails leaves doubt, however it failed, and the next attempt subscribes', async t => {
    const rows: [Said, string][] = [
      [{ status: 503 }, 'unclear'],
      [{ status: 500 }, 'unclear'],
      [{ status: 200, body: {} }, 'unclear'],
      [klaviyoError(400, 'invalid', '/data/relationships/list/data/id'), 'misconfigured'],
      [klaviyoError(403, 'permission_denied'), 'misconfigured'],
      [klaviyoError(404, 'not_found'), 'misconfigured'],
    ]
    for (const [failed, is] of rows) {
      let failing = true
      const { fake, provider } = await started(t, {}, asked => (failing && isJob(asked) ? failed : undefined))
      const first = await provider.createContact(ada, false, never)
      assert.equal(first.is, is, JSON.stringify(failed))
      assert.equal(first.is === 'misconfigured' && first.tookEffect, is === 'misconfigured')
      failing = false
      const second = await provider.createContact(ada, true, never)
      assert.deepEqual(second, { is: 'existing', providerId: '01PROFILE1', ours: true })
      assert.equal(fake.consentOf(ada.email), 'SUBSCRIBED')
    }
  })

  test('in doubt, a profile that has unsubscribed or was suppressed meanwhile is left alone', async t => {
    const suppression = [{ reason: 'USER_SUPPRESSED', timestamp: '2026-11-22T00:00:00+00:00' }]
    for (const left of [
      { consent: 'UNSUBSCRIBED', suppression: [] },
      { consent: 'SUBSCRIBED', suppression },
    ] as const) {
      const { fake, provider } = await started(t)
      await provider.createContact(ada, false, never)
      fake.leaves(ada.email, left)
      const again = await provider.createContact(ada, true, never)
      assert.deepEqual(again, { is: 'existing', providerId: '01PROFILE1', ours: true })
      assert.equal(fake.jobs.length, 1)
    }
  })

  test('an address that Klaviyo suppressed before it had a profile is not subscribed', async t => {
    const marketing = { can_receive_email_marketing: false, consent: 'UNSUBSCRIBED', suppression: [] }
    const attributes = { created: new Date().toISOString(), subscriptions: { email: { marketing } } }
    const body = { data: { type: 'profile', id: '01PROFILE1', attributes, links: {} } }
    const { server, provider } = await started(t, {}, ({ path }) =>
      path === '/api/profiles' ? { status: 201, body } : undefined,
    )
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.deepEqual(callsOf(server), ['POST /api/profiles'])
  })

  test('an address that cannot be subscribed is refused', async t => {
    const pointer = '/data/attributes/profiles/data/0/attributes/email'
    const { provider } = await started(t, {}, asked =>
      isJob(asked) ? klaviyoError(400, 'invalid', pointer) : undefined,
    )
    assert.equal((await provider.createContact(ada, false, never)).is, 'refused')
  })
})
