import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LEASE } from '../../src/waitlist/ports/outbox.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import type { Store } from '../../src/waitlist/ports/store.ts'
import { signup } from '../contracts/store.place.ts'
import { type Scene, scene, stay } from './scene.ts'

const EMAIL = 'ada@example.com'

/** A process whose store refuses outcomes as often as this. */
function refusing({ store, restarted, announced: _, ...here }: Scene, times: number) {
  let left = times
  const settle: Store['settle'] = (...outcome) =>
    left-- > 0 ? Promise.reject(new StoreUnavailable('restarting')) : store.settle(...outcome)
  const handing = restarted({ ...store, settle })
  return { handing, visit: () => here.visit(EMAIL, handing) }
}

describe('an attempt whose outcome is not stored', { timeout: 60_000 }, () => {
  test('we died before the call or during it: in doubt when the lease is over, and completed once', async t => {
    const here = await scene(t, () => ({ is: 'existing', ours: true }))
    const admission = await here.store.admit(signup('Ada Lovelace', EMAIL))
    assert.equal(admission.is, 'pending now')
    here.clock.now += LEASE - 1
    assert.equal(await here.restarted().loop.once(), 0)
    here.clock.now += 1
    assert.equal(await here.restarted().loop.once(), 1)
    assert.deepEqual(here.asked, [{ email: EMAIL, doubt: true, at: here.clock.now }])
    assert.deepEqual([here.contacts()[0]!.state, here.contacts()[0]!.events], ['listed', 1])
  })

  test('a process that slept for longer than its lease changes nothing, and says nothing untrue', async t => {
    const here = await scene(t)
    here.provider.answer = async () => {
      here.clock.now += LEASE
      here.provider.answer = () => ({ is: 'created', providerId: 'second' })
      await here.restarted().loop.once()
      return { is: 'refused', reason: 'late' }
    }
    assert.deepEqual(await here.visit(EMAIL), { is: 'lost' })
    const [contact] = here.contacts()
    assert.deepEqual([contact!.state, contact!.events, contact!.providerId], ['listed', 1, 'second'])
    assert.equal(here.announced(), 1)
  })

  test('the store refuses it for a moment: it is stored afterwards and announced then, and nobody asks again', async t => {
    const here = await scene(t)
    const { visit, handing } = refusing(here, 2)
    await assert.rejects(visit(), StoreUnavailable)
    assert.deepEqual([here.contacts()[0]!.state, here.announced()], ['pending', 0])
    await handing.settled(stay())
    assert.deepEqual([here.contacts()[0]!.events, here.announced(), here.asked.length], [1, 1, 1])
  })
})
