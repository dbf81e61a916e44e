import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { join } from '../../src/waitlist/join.ts'
import { LEASE, type Store, StoreUnavailable } from '../../src/waitlist/ports.ts'
import { signup } from '../contracts/store.ts'
import { until } from '../harness/program.ts'
import { deadline, scene, TIMEOUT } from './scene.ts'

const EMAIL = 'ada@example.com'
const kept = { is: 'kept', because: 'unreachable' } as const

describe('an attempt that is not concluded', { timeout: 60_000 }, () => {
  test('we died before the call or during it: in doubt when the lease is over, and completed once', async t => {
    const here = await scene(t, () => ({ is: 'existing', ours: true }))
    const admission = await here.store.admit(signup('Ada Lovelace', EMAIL))
    assert.equal(admission.is, 'pending now')
    here.clock.now += LEASE - 1
    assert.equal(await here.restarted().background.once(), 0)
    here.clock.now += 1
    assert.equal(await here.restarted().background.once(), 1)
    assert.deepEqual(here.asked, [{ email: EMAIL, doubt: true, at: here.clock.now }])
    assert.deepEqual([here.contacts()[0]!.state, here.contacts()[0]!.events], ['listed', 1])
  })

  test('a process that slept for longer than its lease changes nothing, and says nothing untrue', async t => {
    const here = await scene(t, () => ({ is: 'created', providerId: 'second' }))
    const admission = await here.store.admit(signup('Ada Lovelace', EMAIL))
    assert.ok(admission.is === 'pending now')
    here.provider.answer = async () => {
      here.clock.now += LEASE
      here.provider.answer = () => ({ is: 'created', providerId: 'second' })
      await here.restarted().background.once()
      return { is: 'refused', reason: 'late' }
    }
    assert.deepEqual(await here.registering.attempt(admission.registration, deadline()), kept)
    assert.deepEqual([here.contacts()[0]!.state, here.contacts()[0]!.events, here.announced()], ['listed', 1, 1])
  })

  test('the store is unavailable at the end: an error for the visitor, completed when the lease is over', async t => {
    const here = await scene(t, () => ({ is: 'created' }))
    const failing = { ...here.store, conclude: () => Promise.reject(new StoreUnavailable('full')) }
    const parts = { store: failing, register: here.restarted(failing), timeout: TIMEOUT, announce: () => {} }
    await assert.rejects(join(signup('Ada Lovelace', EMAIL), parts), StoreUnavailable)
    here.clock.now += LEASE
    await parts.register.background.once()
    assert.equal(here.lines.at(-1)?.message, 'what the provider said was not stored')
    assert.equal(here.announced(), 0)
    here.provider.answer = () => ({ is: 'existing' })
    here.clock.now += LEASE
    await here.registering.background.once()
    assert.deepEqual([here.contacts()[0]!.events, here.announced()], [1, 1])
  })

  test('the store is unavailable for a moment: what the provider said is stored afterwards, and nobody asks again', async t => {
    const here = await scene(t, () => ({ is: 'created' }))
    let away = 2
    const conclude: Store['conclude'] = (...ending) =>
      away-- > 0 ? Promise.reject(new StoreUnavailable('restarting')) : here.store.conclude(...ending)
    const failing = { ...here.store, conclude }
    const parts = { store: failing, register: here.restarted(failing), timeout: TIMEOUT, announce: () => {} }
    await assert.rejects(join(signup('Ada Lovelace', EMAIL), parts), StoreUnavailable)
    await until(() => here.contacts()[0]!.events === 1)
    assert.deepEqual([here.announced(), here.asked.length], [1, 1])
  })
})
