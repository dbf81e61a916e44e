import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Creation } from '../../src/waitlist/ports.ts'
import { signup } from '../contracts/store.ts'
import { deadline, type Scene, scene } from './scene.ts'

const HOUR = 3_600
const DAY = 24 * HOUR
const down: Creation = { is: 'unreached', why: 'connection refused' }
const up: Creation = { is: 'created' }

const listed = ({ contacts }: Scene) => contacts().filter(({ state }) => state === 'listed').length
const born = ({ contacts }: Scene) => contacts().reduce((sum, { events }) => sum + events, 0)

/** Contacts that have failed so often, or were told to wait so long, that their own time comes in a day. */
async function putOff({ store }: Scene, count: number, what = 'waiting'): Promise<void> {
  for (let i = 0; i < count; i++) {
    const admission = await store.admit(signup('Ada Lovelace', `${what}-${i}@example.com`))
    assert.ok(admission.is === 'pending now')
    await store.conclude(admission.registration, { is: 'pending', wait: DAY * 1_000, doubt: false, why: 'down' })
  }
}

describe('completing what is pending', { timeout: 60_000 }, () => {
  test('a contact for which the provider fails is tried again after seconds, then less and less often', async t => {
    const here = await scene(t, () => down)
    await here.registering.background.once()
    const start = here.clock.now
    await here.visit('ada@example.com')
    // Someone else's signups show that the provider answers, so that nothing but the schedule counts.
    here.provider.answer = ({ email }) => (email === 'ada@example.com' ? down : up)
    for (let i = 0; i < 100; i++) {
      await here.visit(`visitor-${i}@example.com`)
      await here.pass(1)
    }
    const times = here.asked.filter(({ email }) => email === 'ada@example.com').map(({ at }) => (at - start) / 1_000)
    assert.deepEqual(times.slice(0, 3), [0, 2, 7])
    assert.ok(times.length <= 8, `${times}`)
  })

  test('whoever starts the service has everything tried at once', async t => {
    const here = await scene(t, () => up)
    await putOff(here, 10)
    await here.pass(0)
    while ((await here.restarted().background.once()) > 0);
    assert.equal(listed(here), 10)
  })

  for (const finder of ['the background', 'a visitor'] as const) {
    test(`when ${finder} finds that the provider answers again, all that waited is completed in 30 s`, async t => {
      const here = await scene(t, () => down)
      await here.pass(1)
      await putOff(here, 30)
      await here.visit('ada@example.com')
      await here.pass(300)
      assert.equal(listed(here), 0)
      here.provider.answer = () => up
      if (finder === 'a visitor') await here.visit('eve@example.com')
      const before = here.asked.length
      await here.pass(30)
      const expected = finder === 'a visitor' ? 32 : 31
      assert.deepEqual([listed(here), born(here), here.announced()], [expected, expected, expected])
      assert.equal(here.asked.length - before, 31, 'each is asked about once')
    })
  }

  test('an outage that another instance saw, and did not live to see the end of, ends for all with its first contact', async t => {
    const here = await scene(t, () => up)
    const other = here.restarted()
    await other.background.once()
    await putOff(here, 20)
    const admission = await here.store.admit(signup('Ada Lovelace', 'ada@example.com'))
    assert.ok(admission.is === 'pending now')
    await here.store.conclude(admission.registration, { is: 'pending', wait: 5_000, doubt: false, why: 'down' })
    for (let second = 0; second < 30; second++) {
      here.clock.now += 1_000
      while ((await other.background.once()) > 0);
    }
    assert.equal(listed(here), 21)
  })

  test('the same after each of many outages, one right after the other', async t => {
    const here = await scene(t)
    for (let round = 1; round <= 6; round++) {
      here.provider.answer = () => down
      await here.visit(`visitor-${round}@example.com`)
      await putOff(here, 5, `waiting-${round}`)
      await here.pass(5)
      here.provider.answer = () => up
      await here.pass(30)
      assert.equal(listed(here), 6 * round, `round ${round}`)
    }
  })

  test('while it does not answer it is asked about one contact in ten seconds, due or not', async t => {
    const here = await scene(t, () => down)
    await here.pass(1)
    await putOff(here, 20)
    await here.visit('ada@example.com')
    await here.pass(60)
    const before = here.asked.length
    await here.pass(600)
    const asked = here.asked.length - before
    assert.ok(asked >= 55 && asked <= 75, `${asked} times in ten minutes: every ten seconds, and when one was due`)
  })

  test('while it asks to be left alone for an hour, nobody is asked about before that', async t => {
    const here = await scene(t, () => ({ is: 'unreached', why: 'HTTP 429', retryAfter: HOUR * 1_000 }))
    await here.pass(1)
    await putOff(here, 5)
    await here.visit('ada@example.com')
    await here.pass(600)
    assert.equal(here.asked.length, 1)
    here.clock.now += HOUR * 1_000
    await here.pass(1)
    assert.equal(here.asked.length, 2)
  })

  test('what is due while it does not answer is asked one by one, a second apart', async t => {
    const here = await scene(t, () => down)
    await putOff(here, 20)
    await here.pass(1)
    const first = here.asked.length
    assert.ok(first <= 4, 'as many as may be asked at once')
    await here.pass(10)
    assert.ok(here.asked.length - first <= 10)
  })

  test('a contact that fails always, among others that do not, is asked less and less often', async t => {
    const here = await scene(t, ({ email }) => (email === 'poison@example.com' ? down : up))
    await here.visit('poison@example.com')
    for (let i = 0; i < 720; i++) {
      here.clock.now += 10_000
      await here.visit(`visitor-${i}@example.com`)
      await here.registering.background.once()
    }
    const asked = here.asked.filter(({ email }) => email === 'poison@example.com').length
    assert.ok(asked >= 5 && asked <= 20, `${asked} times in two hours`)

    // After the next outage the others need not wait for it, as soon as one of them has been completed.
    const before = listed(here)
    here.provider.answer = () => down
    await here.visit('eve@example.com')
    await putOff(here, 10)
    await here.pass(60)
    here.provider.answer = ({ email }) => (email === 'poison@example.com' ? down : up)
    await here.pass(40)
    assert.equal(listed(here) - before, 11)
  })

  test('no more than four at once, and the store is left in peace when there is nothing', async t => {
    let atOnce = 0
    let most = 0
    const here = await scene(t, async () => {
      most = Math.max(most, ++atOnce)
      await new Promise(resolve => setTimeout(resolve, 5))
      atOnce--
      return up
    })
    await putOff(here, 20)
    await here.pass(5)
    assert.deepEqual([listed(here), most], [20, 4])
    assert.equal(await here.registering.background.once(), 0)
  })

  test('a recovery that is noted while the store is made to hasten is not forgotten', async t => {
    const here = await scene(t, () => down)
    let afterHasten = async () => {}
    const store = { ...here.store, hasten: () => here.store.hasten().then(() => afterHasten()) }
    const registering = here.restarted(store)
    afterHasten = async () => {
      afterHasten = async () => {}
      await putOff(here, 3)
      for (const creation of [down, up]) {
        here.provider.answer = () => creation
        const admission = await store.admit(signup('Ada', `${creation.is}@example.com`))
        assert.ok(admission.is === 'pending now')
        await registering.attempt(admission.registration, deadline())
      }
    }
    await registering.background.once()
    for (let i = 0; i < 40; i++) {
      here.clock.now += 1_000
      while ((await registering.background.once()) > 0);
    }
    assert.equal(listed(here), 5)
  })

  test('a store that cannot hasten is asked again', async t => {
    const here = await scene(t, () => up)
    await putOff(here, 2)
    let refusals = 2
    const hasten = () => (refusals-- > 0 ? Promise.reject(new Error('busy')) : here.store.hasten())
    const { background } = here.restarted({ ...here.store, hasten })
    for (let i = 0; i < 2; i++) await assert.rejects(background.once(), /busy/)
    assert.equal(await background.once(), 2)
  })
})

describe('what the log says of the provider', { timeout: 60_000 }, () => {
  const errors = ({ lines }: Scene) => lines.filter(({ level }) => level === 'error').map(({ message }) => message)
  const infos = ({ lines }: Scene) => lines.filter(({ level }) => level === 'info').map(({ message }) => message)
  const silent = 'the provider does not answer: signups are kept and completed later'
  const refusing = 'the provider refuses our settings: signups are kept and completed later'
  const again = 'the provider answers again: what waited is completed now'

  test('an outage is told at once with its reason, then once a minute, and so is its end', async t => {
    const here = await scene(t, () => down)
    await here.visit('ada@example.com')
    assert.deepEqual(here.lines, [
      { level: 'error', message: silent, details: { provider: 'fake', why: 'connection refused' } },
    ])
    await here.pass(59)
    assert.equal(here.lines.length, 1)
    await here.pass(600)
    assert.ok(here.lines.length >= 8 && here.lines.length <= 11, `${here.lines.length} lines in eleven minutes`)
    here.provider.answer = () => up
    await here.pass(60)
    assert.deepEqual(infos(here), [again])
  })

  test('a refusal of our settings in the middle of an outage is told at once', async t => {
    const here = await scene(t, () => down)
    await here.visit('ada@example.com')
    here.provider.answer = () => ({ is: 'misconfigured', why: '401' })
    await here.visit('eve@example.com')
    assert.deepEqual(errors(here), [silent, refusing])
  })

  test('a provider that fails every other call does not fill the disk', async t => {
    const here = await scene(t)
    for (let i = 0; i < 300; i++) {
      here.provider.answer = () => (i % 2 === 0 ? down : up)
      await here.visit(`visitor-${i}@example.com`)
      here.clock.now += 1_000
    }
    assert.deepEqual([errors(here).length, infos(here).length], [5, 5])
  })
})
