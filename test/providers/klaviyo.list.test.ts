import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { convergence } from '../contracts/provider.convergence.ts'
import { contactOf, type VendorUnderTest } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { type KlaviyoFake, klaviyoError, klaviyoFake, klaviyoSettings } from './klaviyo.fake.ts'
import { callsOf, starting } from './started.ts'

/** With a list a creation takes two calls. */
const fakes: KlaviyoFake[] = []
const under: VendorUnderTest = {
  vendor: 'klaviyo',
  settings: klaviyoSettings,
  wrongKey: {},
  fake() {
    const fake = klaviyoFake()
    fakes.push(fake)
    return fake
  },
}

const ada = contactOf('ada@example.com')
const never = new AbortController().signal

const started = starting('klaviyo', klaviyoFake, klaviyoSettings)

const isListCall = ({ path }: Asked) => path.startsWith('/api/lists/')

describe('Klaviyo, with a list', { timeout: 180_000 }, () => {
  convergence(under)

  test('in the end who is new there is on the list, and nobody else', () => {
    assert.ok(fakes.length > 0)
    for (const { listsOf } of fakes) {
      for (const name of ['a', 'b', 'c', 'd', 'e']) assert.deepEqual(listsOf(`${name}@example.com`), ['LiSt01'])
      for (const name of ['old-1', 'old-2']) assert.deepEqual(listsOf(`${name}@example.com`), [])
    }
  })

  test('a known address costs one call and has its id; its lists stay as they are, also in doubt', async t => {
    const { fake, server, provider } = await started(t)
    fake.had('ada@example.com')
    const known = { is: 'existing', providerId: '01PROFILE1' }
    assert.deepEqual(await provider.createContact(ada, false, never), known)
    assert.deepEqual(callsOf(server), ['POST /api/profiles'])
    assert.deepEqual(await provider.createContact(ada, true, never), { ...known, ours: false })
    assert.deepEqual(fake.listsOf('ada@example.com'), [])
  })

  test('a list step that fails leaves doubt, however it failed, and the next attempt makes up for it', async t => {
    const unclear = { is: 'unclear' }
    const ourMistake = { is: 'misconfigured', tookEffect: true }
    for (const [failed, { is, tookEffect }] of [
      [{ status: 503 }, unclear],
      [{ status: 500 }, unclear],
      [{ status: 408 }, unclear],
      [{ status: 200, body: {} }, unclear],
      [klaviyoError(404, 'not_found'), ourMistake],
      [klaviyoError(403, 'permission_denied'), ourMistake],
    ] as [Said, Partial<typeof ourMistake>][]) {
      let failing = true
      const { fake, provider } = await started(t, {}, asked => (failing && isListCall(asked) ? failed : undefined))
      const first = await provider.createContact(ada, false, never)
      assert.equal(first.is, is, JSON.stringify(failed))
      assert.equal(first.is === 'misconfigured' ? first.tookEffect : undefined, tookEffect)
      assert.deepEqual(fake.listsOf('ada@example.com'), [])
      failing = false
      const second = await provider.createContact(ada, true, never)
      assert.deepEqual(second, { is: 'existing', providerId: '01PROFILE1', ours: true })
      assert.deepEqual(fake.listsOf('ada@example.com'), ['LiSt01'])
    }
  })

  test('a known profile whose id Klaviyo does not tell is known all the same', async t => {
    const { server, provider } = await started(t, { PROVIDER_EXISTING: 'join' }, () =>
      klaviyoError(409, 'duplicate_profile'),
    )
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
    assert.deepEqual(callsOf(server), ['POST /api/profiles'])
  })

  test('what it asks us to wait is kept when the profile is there already', async t => {
    const said = { ...klaviyoError(429, 'throttled'), headers: { 'retry-after': '7' } }
    const { provider } = await started(t, {}, asked => (isListCall(asked) ? said : undefined))
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'unclear')
    assert.equal(creation.retryAfter, 7_000)
  })

  test('the id of a list is sent as it is, whatever is in it', async t => {
    const { fake, provider } = await started(t, { KLAVIYO_LIST_ID: 'a%2Fb?c' })
    fake.lists.add('a%2Fb?c')
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    assert.deepEqual(fake.listsOf('ada@example.com'), ['a%2Fb?c'])
  })
})
