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

  const fewer = isSlow ? 10_000 : 300
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

  test('contacts that the provider does not take for now keep nobody else waiting, however many', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const blocked: Creation = { ...down, alone: true }
    const here = await scene(t, ({ email }) => (email.startsWith('blocked') ? blocked : up))
    await crowd(here, 'blocked', 30)
    for (let i = 0; i < 60; i++) {
      assert.equal((await here.visit(`ada-${i}@example.com`)).is, 'new')
      await here.pass(60)
    }
    assert.ok(!here.lines.some(({ message }) => /does not answer|refuses our settings/.test(message)))
    const times = askedAbout(here, 'blocked-0@example.com').map(({ at }) => at - here.asked[0]!.at)
    assert.deepEqual(
      times,
      [0, 2, 7, 22, 82, 382, 2182].map(seconds => seconds * 1_000),
      'by its schedule alone',
    )
    here.provider.answer = () => up
    await here.pass(2 * HOUR)
    assert.deepEqual([here.pending(), born(here)], [[], 90])
  })

  test('what a visitor left is completed, whoever finds that the provider answers again', async t => {
    const here = await scene(t, () => down)
    await crowd(here)
    await here.waiting(30)
    await here.pass(300)
    here.provider.answer = () => up
    here.clock.now += 10_000
    assert.equal((await here.visit('eve@example.com')).is, 'new', 'a visitor makes the probe')
    await here.pass(30)
    assert.deepEqual([listed(here), born(here), here.announced()], [36, 36, 36])
  })

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

  test('the same after each of many outages, one right after the other', async t => {
    const here = await scene(t)
    for (let round = 1; round <= 6; round++) {
      here.provider.answer = () => down
      await crowd(here, `visitor-${round}`)
      await here.waiting(5, `waiting-${round}`)
      await here.pass(5)
      here.provider.answer = () => up
      await here.pass(30)
      assert.equal(listed(here), 10 * round, `round ${round}`)
    }
  })

  test('one contact that is alone with an outage of an hour is completed within 30 s of its end, whoever restarts', async t => {
    const here = await scene(t)
    await here.visit('eve@example.com')
    here.provider.answer = () => down
    await here.visit('ada@example.com')
    for (let i = 0; i < 60; i++) await here.pass(60, here.restarted())
    here.provider.answer = () => up
    await here.pass(30, here.restarted())
    assert.equal(listed(here), 2)
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

  test('an answer does not end the time for which it asked to be left alone', async t => {
    const here = await scene(t)
    here.provider.answer = async () => {
      here.provider.answer = () => ({ ...down, retryAfter: 60_000 })
      await here.visit('eve@example.com')
      here.provider.answer = () => up
      return up
    }
    assert.equal((await here.visit('ada@example.com')).is, 'new')
    await here.pass(59)
    assert.equal(here.asked.length, 2)
    await here.pass(1)
    assert.equal(listed(here), 2)
  })

  test('our own bounds keep calls back: nothing is claimed for a few seconds, and the provider is not blamed', async t => {
    const here = await scene(t, () => ({ ...down, notSent: true }))
    await here.waiting(20)
    await here.pass(1)
    assert.equal(here.asked.length, 4, 'as many as may be under way at once')
    await here.pass(4)
    assert.equal(here.asked.length, 4)
    here.provider.answer = () => up
    assert.equal((await here.visit('ada@example.com')).is, 'new', 'a visitor has a turn')
    await here.pass(10)
    assert.deepEqual([listed(here), here.lines], [21, []])
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

    test(`alone for hours holds up none who come now and then (${poisoned.is})`, {
      skip: !isSlow && 'it runs in .ci/run',
    }, async t => {
      const here = await scene(t, ({ email }) => (email === POISON ? poisoned : up))
      await here.visit(POISON)
      for (let i = 0; i < 12; i++) {
        await here.pass(10 * MINUTE)
        assert.equal((await here.visit(`visitor-${i}@example.com`)).is, 'new')
      }
      const before = askedAbout(here, POISON).length
      for (let i = 12; i < 24; i++) {
        await here.pass(10 * MINUTE)
        assert.equal((await here.visit(`visitor-${i}@example.com`)).is, 'new')
      }
      const after = askedAbout(here, POISON).length - before
      assert.ok(after < before / 4, `${before} times in two hours, then ${after}`)
    })
  }
})

test('many that are refused for reasons of their own hold up nobody, once one was accepted', async t => {
  const here = await scene(t, ({ email }) => (email.startsWith('odd') ? refusing : up))
  for (let i = 0; i < 20; i++) await here.visit(`odd-${i}@example.com`)
  assert.deepEqual(await here.visit('first@example.com'), { is: 'kept', because: 'misconfigured' })
  await here.pass(5 * MINUTE)
  assert.equal(listed(here), 1, 'a probe among the others')
  const before = here.asked.length
  for (let i = 0; i < 60; i++) {
    assert.equal((await here.visit(`visitor-${i}@example.com`)).is, 'new')
    await here.pass(MINUTE)
  }
  assert.ok(here.asked.length - before < 60 + 20 * 8, `${here.asked.length - before} calls in an hour`)
  assert.equal(here.pending().length, 20, 'each is kept')
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

  test('has an attempt that counts like any other: five of them open the breaker', async t => {
    const here = await scene(t, () => down)
    await crowd(here, 'visitor', 20)
    assert.equal(here.asked.length, 5)
  })
})

describe('several instances over one store', { timeout: 60_000 }, () => {
  test('nothing is told twice, and an outage that each of them sees ends for all', async t => {
    const here = await scene(t, () => down)
    const instances = [here.handing, here.restarted(), here.restarted()]
    for (let i = 0; i < 30; i++) await here.visit(`visitor-${i}@example.com`, instances[i % 3])
    await here.waiting(60)
    await here.pass(600, ...instances)
    assert.equal(listed(here), 0)
    here.provider.answer = async () => {
      await new Promise(resolve => setTimeout(resolve, 1))
      return up
    }
    const before = here.asked.length
    await here.pass(30, ...instances)
    assert.deepEqual([listed(here), born(here), here.announced()], [90, 90, 90])
    assert.equal(here.asked.length - before, 90)
  })

  test('what one of them holds no other takes, until its lease ends', async t => {
    const here = await scene(t)
    const end = Promise.withResolvers<Creation>()
    here.provider.answer = () => end.promise
    const visit = here.visit('ada@example.com')
    const other = here.restarted()
    while (here.asked.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
    await here.pass(50, other)
    assert.equal(here.asked.length, 1)
    end.resolve(up)
    assert.equal((await visit).is, 'new')
    await here.pass(60, other)
    assert.equal(here.asked.length, 1)
  })
})

describe('what the log says of the provider', { timeout: 60_000 }, () => {
  const messages = ({ lines }: Scene, level: string) =>
    lines.filter(line => line.level === level).map(({ message }) => message)
  const silent = 'the provider does not answer: signups are kept and completed later'
  const settings = 'the provider refuses our settings: signups are kept and completed later'
  const again = 'the provider answers again: due deliveries continue'

  test('one line when an outage begins, with the reason, and one when it ends, however many wait', async t => {
    const here = await scene(t, () => down)
    await here.waiting(100)
    await here.pass(HOUR)
    const details = { destination: 'fake', why: 'connection refused' }
    assert.deepEqual(here.lines, [{ level: 'error', message: silent, details }])
    here.provider.answer = () => up
    await here.pass(30)
    assert.deepEqual(here.lines.slice(1), [{ level: 'info', message: again, details: { destination: 'fake' } }])
  })

  test('a refusal of our settings is told at once, also in the middle of an outage', async t => {
    const here = await scene(t, () => down)
    await crowd(here)
    here.provider.answer = () => refusing
    await here.pass(2)
    assert.deepEqual(messages(here, 'error'), [silent, settings])
  })

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

  test('a provider that comes and goes does not fill the disk', async t => {
    const here = await scene(t)
    const minutes = isSlow ? 10 : 3
    for (let i = 0; i < minutes * 30; i++) {
      here.provider.answer = () => down
      await crowd(here, `visitor-${i}`)
      here.provider.answer = () => up
      await here.pass(2)
    }
    const lines = [messages(here, 'error').length, messages(here, 'info').length]
    assert.deepEqual(lines, [minutes, minutes], 'one a minute')
  })
})
