import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Joined } from '../../src/signup/join.ts'
import { LEASE } from '../../src/store/outbox.ts'
import type { HandedOver } from '../../src/waitlist/delivery/handover.ts'
import type { Creation } from '../../src/waitlist/ports/provider.ts'
import { moment, type Scene, scene, stay } from './scene.ts'

const EMAIL = 'ada@example.com'
const kept = { is: 'kept', because: 'unreachable' } as const
const keptBySettings = { is: 'kept', because: 'misconfigured' } as const
const unclear: Creation = { is: 'unclear', why: 'no answer in time' }
const unreached: Creation = { is: 'unreached', why: 'connection refused' }
const misconfigured: Creation = { is: 'misconfigured', why: 'answered with 401' }
const up: Creation = { is: 'created' }

type Becomes = 'listed with its event' | 'listed' | 'removed' | 'pending' | 'pending, in doubt'

const contactId = 'p1'
const named = { providerId: contactId } as const
const known = { is: 'known' } as const
const refused = { is: 'refused', reason: 'it is blocked there' } as const

/** The table of the hand-over, line by line; whether there was doubt before, if that matters. */
const table: readonly (readonly [Creation, before: readonly boolean[], Becomes, hears: HandedOver])[] = [
  [{ is: 'created', ...named }, [false, true], 'listed with its event', { is: 'new', contactId }],
  [{ is: 'created' }, [false, true], 'listed with its event', { is: 'new' }],
  [{ is: 'existing', ...named }, [false], 'listed', known],
  [{ is: 'existing', ...named, ours: true }, [false], 'listed', known],
  [{ is: 'existing', ...named, ours: false }, [false, true], 'listed', known],
  [{ is: 'existing', ...named }, [true], 'listed with its event', { is: 'new' }],
  [{ is: 'existing', ...named, ours: true }, [true], 'listed with its event', { is: 'new', contactId }],
  [refused, [false, true], 'removed', refused],
  [unreached, [false, true], 'pending', kept],
  [{ is: 'unreached', why: 'too many wait', notSent: true }, [false, true], 'pending', kept],
  [misconfigured, [false, true], 'pending', keptBySettings],
  [{ is: 'misconfigured', why: 'no such list', tookEffect: true }, [false, true], 'pending, in doubt', keptBySettings],
  [unclear, [false, true], 'pending, in doubt', kept],
]

for (const [creation, either, becomes, hears] of table) {
  for (const before of either) {
    test(`${JSON.stringify(creation)}, in doubt: ${before}: it is ${becomes}; the visitor hears ${hears.is}`, async t => {
      const here = await scene(t, () => unclear)
      if (before) assert.deepEqual(await here.visit(EMAIL), kept)
      here.provider.answer = () => creation
      assert.deepEqual(bare(await here.visit(EMAIL)), hears)
      assert.deepEqual(
        here.asked.map(({ doubt }) => doubt),
        before ? [false, true] : [false],
      )
      const events = becomes === 'listed with its event' ? 1 : 0
      const providerId = 'providerId' in creation ? contactId : null
      const [state] = becomes.split(/[ ,]/)
      assert.deepEqual(
        here.contacts().map(each => [each.state, each.events, each.providerId]),
        state === 'removed' ? [] : [[state, events, providerId]],
      )
      assert.equal(here.announced(), events)
      const doubt = before || becomes === 'pending, in doubt' ? 1 : 0
      assert.deepEqual(
        here.pending().map(each => [each.doubt, each.why]),
        state === 'pending' ? [[doubt, 'why' in creation && creation.why]] : [],
      )
    })
  }
}

/** Without the members that are undefined. */
const bare = (joined: Joined) => Object.fromEntries(Object.entries(joined).filter(([, value]) => value !== undefined))

describe('a pending contact and more than one who asks', () => {
  /** A visitor whose call to the provider is under way until `end`. */
  async function underWay(t: TestContext, creation: Creation) {
    const begun = moment()
    const end = moment()
    const here = await scene(t, async () => {
      begun.resolve()
      await end.promise
      return creation
    })
    const first = here.visit(EMAIL)
    await begun.promise
    return { here, first, end: end.resolve }
  }

  test('two visitors at once: one call, one event; the second hears what is true then', async t => {
    const { here, first, end } = await underWay(t, { is: 'created', providerId: 'p1' })
    const second = here.visit(EMAIL.toUpperCase())
    setTimeout(end, 250)
    assert.deepEqual(await first, { is: 'new', contactId: 'p1' })
    assert.deepEqual(await second, { is: 'known' })
    assert.equal(here.asked.length, 1)
    assert.deepEqual([here.contacts()[0]!.events, here.announced()], [1, 1])
  })

  test('the first fails: the second asks, with the doubt that the first has left', async t => {
    const { here, first, end } = await underWay(t, unclear)
    const second = here.visit(EMAIL)
    here.provider.answer = () => ({ is: 'existing' })
    end()
    assert.deepEqual(await first, kept)
    assert.deepEqual(bare(await second), { is: 'new' })
    assert.deepEqual(
      here.asked.map(({ doubt }) => doubt),
      [false, true],
    )
    assert.equal(here.contacts()[0]!.events, 1)
  })

  test('the address is refused while another waits: that one is the first signup again', async t => {
    const { here, first, end } = await underWay(t, { is: 'refused', reason: 'blocked' })
    const second = here.visit(EMAIL)
    here.provider.answer = () => ({ is: 'created' })
    end()
    assert.deepEqual(await first, { is: 'refused', reason: 'blocked' })
    assert.deepEqual(bare(await second), { is: 'new' })
    assert.deepEqual(
      here.asked.map(({ doubt }) => doubt),
      [false, false],
    )
    assert.equal(here.contacts().length, 1)
  })

  test('a visitor tries again while the background asks: no second call', async t => {
    const here = await scene(t, () => unreached)
    assert.deepEqual(await here.visit(EMAIL), kept)
    const end = moment()
    here.provider.answer = () => end.promise.then(() => ({ is: 'created' }))
    here.clock.now += 5_000
    const background = here.handing.loop.once()
    while (here.asked.length < 2) await new Promise(resolve => setTimeout(resolve, 5))
    const visitor = here.visit(EMAIL)
    end.resolve()
    assert.deepEqual([await visitor, await background], [{ is: 'known' }, 1])
    assert.equal(here.asked.length, 2)
    assert.equal(here.contacts()[0]!.events, 1)
  })

  test('who waits in vain is told that the signup is kept, and begins nothing after the deadline', async t => {
    const { here, first, end } = await underWay(t, unreached)
    assert.deepEqual(await here.visit(EMAIL, here.handing, stay(), 150), kept)
    assert.deepEqual(await here.visit(EMAIL, here.handing, AbortSignal.abort()), kept)
    end()
    await first
    assert.equal(here.asked.length, 1)
  })

  test('who comes when the service stops is kept, and nobody is asked', async t => {
    const here = await scene(t)
    assert.deepEqual(await here.visit(EMAIL, here.handing, AbortSignal.abort()), kept)
    const [row] = here.pending()
    assert.deepEqual([here.asked, row!.leased, row!.doubt, row!.attempts], [[], 0, 0, 0])
  })

  test('who waits for a call that is cut, because the service stops, is answered', async t => {
    const here = await scene(
      t,
      (_, __, leave) => new Promise(resolve => leave.addEventListener('abort', () => resolve(unclear))),
    )
    const stopping = new AbortController()
    const visit = here.visit(EMAIL, here.handing, stopping.signal)
    const other = here.visit(EMAIL, here.handing, stopping.signal)
    while (here.asked.length < 1) await new Promise(resolve => setTimeout(resolve, 5))
    stopping.abort()
    assert.deepEqual([await visit, await other], [kept, kept])
    assert.equal(here.pending()[0]!.doubt, 1)
  })

  for (const late of [
    { is: 'created', providerId: 'first' },
    { is: 'refused', reason: 'late' },
  ] satisfies Creation[]) {
    test(`who slept for longer than the lease changes nothing, and says nothing untrue (${late.is})`, async t => {
      const here = await scene(t)
      here.provider.answer = async () => {
        here.clock.now += LEASE
        here.provider.answer = () => ({ is: 'existing', providerId: 'second', ours: true })
        await here.started().loop.once()
        return late
      }
      assert.deepEqual(await here.visit(EMAIL), { is: 'lost' })
      const left = here.contacts().map(each => [each.state, each.events, each.providerId])
      assert.deepEqual([left, here.announced()], [[['listed', 1, 'second']], 1])
    })
  }
})

const POISON = 'poison@example.com'
const listed = ({ contacts }: Scene) => contacts().filter(({ state }) => state === 'listed').length

/** Signups in a row that meet an outage, so that it is one beyond doubt. */
async function crowd({ visit }: Scene, what = 'visitor'): Promise<void> {
  for (let i = 0; i < 5; i++) await visit(`${what}-${i}@example.com`)
}

describe('completing what is pending', () => {
  test('one for which alone the provider fails holds up nobody, is told of, and is tried again less and less often', async t => {
    const here = await scene(t, ({ email }) => (email === POISON ? unreached : up))
    await here.visit('eve@example.com')
    const start = here.clock.now
    await here.visit(POISON)
    for (let i = 0; i < 100; i++) {
      assert.equal((await here.visit(`visitor-${i}@example.com`)).is, 'new')
      await here.pass(1)
    }
    const times = here.asked.filter(({ email }) => email === POISON).map(({ at }) => (at - start) / 1_000)
    assert.deepEqual(times, [0, 2, 7, 22, 82])
    const contact = here.contacts()[1]!.id
    const details = { destination: 'fake', contact, attempt: 1, why: 'connection refused', again: 'in 2 s' }
    assert.deepEqual(here.lines[0], { level: 'warn', message: 'a delivery failed', details })
  })

  test('after an outage all are completed in 30 s, each asked about once, though one of them is poisoned', async t => {
    const here = await scene(t, ({ email }) => (email === POISON ? misconfigured : up))
    await here.visit('eve@example.com')
    await here.visit(POISON)
    here.provider.answer = () => unreached
    await crowd(here)
    await here.waiting(100)
    await here.pass(200)
    const earlier = here.asked.length
    await here.pass(300)
    assert.equal(here.asked.length - earlier, 60, 'one contact in five seconds')
    assert.deepEqual([...new Set(here.pending().map(({ attempts }) => attempts))].toSorted(), [0, 1])
    here.provider.answer = ({ email }) => (email === POISON ? misconfigured : up)
    const before = here.asked.length
    await here.pass(30)
    const all = 1 + 5 + 100
    assert.deepEqual([listed(here), here.announced()], [all, all])
    assert.deepEqual(
      here.pending().map(({ email }) => email),
      [POISON],
    )
    assert.equal(here.asked.slice(before).filter(({ email }) => email !== POISON).length, all - 1)
  })

  test('the provider is told what a visitor waits for, and what nobody does', async t => {
    const told: [email: string, forVisitor: boolean | undefined][] = []
    const here = await scene(t, ({ email }, _doubt, _leave, forVisitor) => {
      told.push([email, forVisitor])
      return up
    })
    await here.waiting(1)
    await here.visit(EMAIL)
    await here.pass(1)
    assert.deepEqual(told, [
      [EMAIL, true],
      ['waiting-0@example.com', false],
    ])
  })

  for (const [answer, because] of [
    [unreached, 'unreachable'],
    [misconfigured, 'misconfigured'],
  ] as const) {
    test(`a visitor during an outage is answered without a call (${because}), also for trying again`, async t => {
      const here = await scene(t, () => answer)
      await crowd(here)
      const before = here.asked.length
      for (let time = 1; time <= 2; time++) assert.deepEqual(await here.visit(EMAIL), { is: 'kept', because })
      assert.equal(here.asked.length, before)
      const row = here.pending().find(({ email }) => email === EMAIL)
      assert.deepEqual([row?.attempts, row?.doubt, row?.leased], [0, 0, 0])
      here.provider.answer = () => up
      await here.pass(30)
      assert.equal(listed(here), here.contacts().length)
    })
  }

  test('one whose address is refused is dropped, with a line in the log', async t => {
    const here = await scene(t, () => refused)
    await here.waiting(1)
    await here.pass(1)
    assert.deepEqual(here.contacts(), [])
    assert.deepEqual(
      here.lines.map(({ level, details }) => [level, (details as { why: string }).why]),
      [['warn', refused.reason]],
    )
  })
})
