import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Creation } from '../../src/waitlist/ports/provider.ts'
import { isSlow } from '../harness/slow.ts'
import { type Scene, scene } from './scene.ts'

const MINUTE = 60
const HOUR = 60 * MINUTE
const down: Creation = { is: 'unreached', why: 'connection refused' }
const refusing: Creation = { is: 'misconfigured', why: '401' }
const up: Creation = { is: 'created' }
const POISON = 'poison@example.com'

const listed = ({ contacts }: Scene) => contacts().filter(({ state }) => state === 'listed').length
const born = ({ contacts }: Scene) => contacts().reduce((sum, { events }) => sum + events, 0)
const askedAbout = ({ asked }: Scene, email: string) => asked.filter(each => each.email === email)

/** Signups in a row that meet an outage, so that it is one beyond doubt. */
async function crowd({ visit }: Scene, what = 'visitor', count = 5): Promise<void> {
  for (let i = 0; i < count; i++) await visit(`${what}-${i}@example.com`)
}

describe('completing what is pending', { timeout: 60_000 }, () => {
  test('a contact for which the provider fails is tried again after seconds, then less and less often', async t => {
    const here = await scene(t)
    await here.visit('eve@example.com')
    here.provider.answer = () => down
    const start = here.clock.now
    await here.visit('ada@example.com')
    // Somebody else's signups show that the provider answers, so that nothing but the schedule counts.
    here.provider.answer = ({ email }) => (email === 'ada@example.com' ? down : up)
    for (let i = 0; i < 100; i++) {
      await here.visit(`visitor-${i}@example.com`)
      await here.pass(1)
    }
    const times = askedAbout(here, 'ada@example.com').map(({ at }) => (at - start) / 1_000)
    assert.deepEqual(times, [0, 2, 7, 22, 82])
  })

  const fewer = isSlow ? 2_000 : 300
  for (const [what, answer, pending] of [
    ['does not answer', down, fewer],
    ['refuses our settings', refusing, fewer],
    ['asked to be left alone for ten seconds', { ...down, retryAfter: 10_000 }, fewer],
  ] as const) {
    test(`the provider ${what} for an hour, with ${pending} pending and one of them poisoned: 30 s later all are completed`, {
      skip: answer === refusing && !isSlow && 'it runs in .ci/run, as the same with another failure',
      timeout: 300_000,
    }, async t => {
      const here = await scene(t, ({ email }) => (email === POISON ? refusing : up))
      await here.visit('eve@example.com')
      await here.visit(POISON)
      here.provider.answer = () => answer
      await crowd(here)
      await here.waiting(pending)
      await here.pass(HOUR)
      assert.equal(listed(here), 1)
      here.provider.answer = ({ email }) => (email === POISON ? refusing : up)
      const before = here.asked.length
      await here.pass(30)
      const all = 1 + 5 + pending
      assert.deepEqual([listed(here), born(here), here.announced()], [all, all, all])
      assert.deepEqual(
        here.pending().map(({ email }) => email),
        [POISON],
      )
      const others = here.asked.slice(before).filter(({ email }) => email !== POISON)
      assert.equal(others.length, 5 + pending, 'each is asked about once')
    })
  }

  test('an outage counts for no contact, and none of their rows is written when it ends', async t => {
    const here = await scene(t)
    await here.visit('eve@example.com')
    here.provider.answer = () => down
    await crowd(here)
    await here.waiting(20)
    await here.pass(600)
    assert.deepEqual([...new Set(here.pending().map(({ attempts }) => attempts))].sort(), [0, 1])
    assert.equal(here.pending().filter(({ attempts }) => attempts === 1).length, 1, 'that which met it first')
    for (const { due_at } of here.pending()) assert.ok(due_at <= here.clock.now + 30_000)
    const before = here.pending()
    here.provider.answer = () => up
    here.clock.now += 5_000
    await here.visit('gil@example.com')
    assert.deepEqual(here.pending(), before)
  })

  test('while it does not answer it is asked about one contact in five seconds, due or not', async t => {
    const here = await scene(t, () => down)
    await crowd(here)
    await here.waiting(20)
    await here.pass(60)
    const before = here.asked.length
    await here.pass(600)
    assert.equal(here.asked.length - before, 120)
  })

  test('the provider is told what a visitor waits for, and what nobody does', async t => {
    const told: [email: string, forVisitor: boolean | undefined][] = []
    const here = await scene(t, ({ email }, _doubt, _leave, forVisitor) => {
      told.push([email, forVisitor])
      return up
    })
    await here.waiting(1)
    await here.visit('ada@example.com')
    await here.pass(1)
    assert.deepEqual(
      new Map(told),
      new Map([
        ['ada@example.com', true],
        [told[1]![0], false],
      ]),
    )
  })

  test('while it asks to be left alone for an hour, nobody is asked about for a minute; then one, and all when that one is well', async t => {
    const here = await scene(t, () => ({ ...down, retryAfter: HOUR * 1_000 }))
    await here.visit('ada@example.com')
    await here.waiting(5)
    assert.deepEqual(await here.visit('eve@example.com'), { is: 'kept', because: 'unreachable' })
    await here.pass(59)
    assert.equal(here.asked.length, 1)
    here.provider.answer = () => down
    await here.pass(1)
    assert.equal(here.asked.length, 2)
    here.provider.answer = () => up
    await here.pass(30)
    assert.equal(listed(here), 7)
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
    await here.waiting(20)
    await here.pass(5)
    assert.deepEqual([listed(here), most], [20, 4])
    assert.equal(await here.handing.loop.once(), 0)
  })
})

describe('a contact that always fails', { timeout: 60_000 }, () => {
  for (const poisoned of [down, refusing]) {
    test(`among others that do not is asked less and less often (${poisoned.is})`, {
      skip: poisoned === refusing && !isSlow && 'it runs in .ci/run, as the same with another failure',
    }, async t => {
      const here = await scene(t, ({ email }) => (email === POISON ? poisoned : up))
      await here.visit('eve@example.com')
      await here.visit(POISON)
      for (let i = 0; i < 720; i++) {
        here.clock.now += 10_000
        assert.equal((await here.visit(`visitor-${i}@example.com`)).is, 'new', 'nobody waits for it')
        await here.handing.loop.once()
      }
      const times = askedAbout(here, POISON).length
      assert.ok(times >= 5 && times <= 10, `${times} times in two hours`)

      // Nor after the next outage.
      const before = listed(here)
      here.provider.answer = () => down
      await crowd(here, 'late')
      await here.waiting(10)
      await here.pass(60)
      here.provider.answer = ({ email }) => (email === POISON ? poisoned : up)
      await here.pass(30)
      assert.equal(listed(here) - before, 15)
    })
  }
})

describe('a visitor while the provider is out', { timeout: 60_000 }, () => {
  for (const [answer, because] of [
    [down, 'unreachable'],
    [refusing, 'misconfigured'],
  ] as const) {
    test(`is answered without a call (${because}), also for trying again; the signup is completed later`, async t => {
      const here = await scene(t, () => answer)
      await crowd(here)
      const before = here.asked.length
      for (let time = 1; time <= 2; time++) {
        assert.deepEqual(await here.visit('ada@example.com'), { is: 'kept', because })
      }
      assert.equal(here.asked.length, before)
      const row = here.pending().find(({ email }) => email === 'ada@example.com')
      assert.deepEqual([row?.attempts, row?.doubt, row?.leased], [0, 0, 0])
      here.provider.answer = () => up
      await here.pass(30)
      assert.equal(listed(here), here.contacts().length)
    })
  }
})

describe('what the log says of the provider', { timeout: 60_000 }, () => {
  test('a contact that fails alone: that it failed, and when it is tried again', async t => {
    const here = await scene(t)
    await here.visit('eve@example.com')
    here.provider.answer = () => down
    await here.visit('ada@example.com')
    const [line, ...none] = here.lines
    assert.deepEqual([line?.level, line?.message, none], ['warn', 'a delivery failed', []])
    const contact = here.contacts()[1]!.id
    assert.deepEqual(line?.details, { destination: 'fake', contact, attempt: 1, why: down.why, again: 'in 2 s' })
  })

  test('a signup that is dropped in the background, with the reason', async t => {
    const here = await scene(t, () => ({ is: 'refused', reason: 'it is blocked there' }))
    await here.waiting(1)
    await here.pass(1)
    assert.deepEqual(here.contacts(), [])
    const [line, ...none] = here.lines
    const message = 'the provider refuses the address of a saved signup: the signup is dropped'
    assert.deepEqual([line?.level, line?.message, none], ['warn', message, []])
  })
})
