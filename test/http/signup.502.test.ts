import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { providerUnreachable } from '../../src/http/wire/refusals.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { freePort } from '../harness/port.ts'
import { until } from '../harness/program.ts'
import { type Misbehaviour, startReceiver } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }

/** One of each class. What the others are taken for, the contract shows of every provider. */
const outages: readonly Misbehaviour[] = ['hang after', '503', 'truncated JSON']

async function started(t: TestContext, more: Record<string, string> = {}) {
  const fake = loopsFake()
  const vendor = await startReceiver(t, fake.answer)
  const env = { PROVIDER: 'loops', PROVIDER_TIMEOUT: '1s', ...loopsSettings(vendor.url), ...more }
  const service = await startService(t, env)
  const stored = () => contactsIn(service.databasePath)
  return {
    fake,
    vendor,
    service,
    stored,
    client: await clientOf(service),
    /** From now on every request is met with this. */
    always: (what: Misbehaviour) => vendor.chaos(1, 1, [what]),
    /** Nothing is left to do for so many contacts: each is listed here and there, with one event. */
    async completed(count: number): Promise<void> {
      await until(() => stored().filter(({ email }) => fake.starts(email) > 0).length === count)
      for (const { email, state, events } of stored()) {
        assert.deepEqual([email, state, events], [email, 'listed', 1])
        assert.deepEqual([email, fake.count(email), fake.starts(email)], [email, 1, 1])
      }
    },
  }
}

describe('a provider that does not answer well', { concurrency: 8, timeout: 120_000 }, () => {
  for (const what of outages) {
    test(`C-20: "${what}": 502, also for who tries again; the signup is kept and completed, once`, async t => {
      const { client, stored, always, vendor, completed } = await started(t)
      always(what)
      for (let time = 1; time <= 2; time++) assertRefused(await client.signUp(ada), 502, providerUnreachable.error)
      assert.deepEqual(
        stored().map(({ email, state, events }) => [email, state, events]),
        [[ada.email, 'pending', 0]],
      )
      vendor.behave()
      await completed(1)
      const { status, json } = await client.signUp(ada)
      assert.deepEqual([status, json.alreadyExisted, json.automationTriggered], [200, true, false])
    })
  }

  test('C-20: nobody listens there: 502, and the signup is kept', async t => {
    const port = await freePort()
    const { client, stored } = await started(t, { LOOPS_BASE_URL: `http://127.0.0.1:${port}` })
    assertRefused(await client.signUp(ada), 502, providerUnreachable.error)
    assert.equal(stored()[0]?.state, 'pending')
  })

  test('who tries again when it answers again is told that they are new', async t => {
    const { client, vendor, completed } = await started(t)
    vendor.next('503')
    assertRefused(await client.signUp(ada), 502, providerUnreachable.error)
    const { status, json } = await client.signUp(ada)
    assert.equal(status, 200)
    // The background may have been quicker, on a slow machine.
    if (!json.alreadyExisted) assert.deepEqual([json.contactId, json.automationTriggered], ['cll1', true])
    await completed(1)
  })

  test('all that waited is completed when the provider answers again', async t => {
    const WAITING = 10
    const { client, vendor, always, stored, completed } = await started(t, { PROVIDER_TIMEOUT: '8s' })
    // Each is there already, so that each takes three requests: 30, of which Loops allows ten a second.
    always('500 after')
    const signups = Array.from({ length: WAITING }, (_, i) => client.signUp({ ...ada, email: `ada${i}@example.com` }))
    for (const answer of await Promise.all(signups)) assertRefused(answer, 502, providerUnreachable.error)
    assert.equal(stored().length, WAITING)
    vendor.behave()
    const began = performance.now()
    await until(() => stored().every(({ state }) => state === 'listed'))
    t.diagnostic(`${WAITING} were completed after ${Math.round(performance.now() - began)} ms`)
    await completed(WAITING)
  })

  test('a thousand signups at once while it hangs: all are kept and answered, and few reach it', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const SIGNUPS = 1_000
    const { client, vendor, always, stored } = await started(t)
    await client.signUp(ada)
    const before = vendor.received.length
    always('hang before')
    const crowd = Array.from({ length: SIGNUPS }, (_, i) => client.signUp({ ...ada, email: `ada${i}@example.com` }))
    const others = async () => {
      const health = await client.request('/api/health')
      const known = await client.signUp(ada)
      assert.deepEqual([health.status, known.status, known.json.alreadyExisted], [200, 200, true])
    }
    await Promise.all(Array.from({ length: 10 }, others))
    for (const answer of await Promise.all(crowd)) assertRefused(answer, 502, providerUnreachable.error)
    assert.equal(stored().filter(({ state }) => state === 'pending').length, SIGNUPS)
    // As many as Loops allows at once; whoever had no turn within the time was not sent, nor is anything sent later.
    const reached = vendor.received.length - before
    t.diagnostic(`${reached} requests reached it`)
    assert.ok(reached <= 20, `${reached} requests`)
  })
})
