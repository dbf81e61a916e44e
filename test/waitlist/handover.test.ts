import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { HandedOver } from '../../src/waitlist/delivery/handover.ts'
import type { Joined } from '../../src/waitlist/join.ts'
import { LEASE } from '../../src/waitlist/ports/outbox.ts'
import type { Creation } from '../../src/waitlist/ports/provider.ts'
import { moment, scene, stay } from './scene.ts'

const EMAIL = 'ada@example.com'
const kept = { is: 'kept', because: 'unreachable' } as const
const keptBySettings = { is: 'kept', because: 'misconfigured' } as const
const unclear: Creation = { is: 'unclear', why: 'no answer in time' }

interface Row {
  readonly creation: Creation
  readonly doubt: readonly boolean[]
  /** What becomes of the contact. */
  readonly contact: 'listed' | 'removed' | 'pending'
  readonly events: 0 | 1
  readonly doubtAfter?: (before: boolean) => boolean
  readonly hears: HandedOver
}
const either = [false, true]
const stays = (before: boolean) => before
const always = () => true
const contactId = 'p1'
const named = { providerId: contactId } as const

/** The table of the hand-over, line by line. */
const table: readonly Row[] = [
  {
    creation: { is: 'created', ...named },
    doubt: either,
    contact: 'listed',
    events: 1,
    hears: { is: 'new', contactId },
  },
  { creation: { is: 'created' }, doubt: either, contact: 'listed', events: 1, hears: { is: 'new' } },
  ...[undefined, true, false].map<Row>(ours => ({
    creation: { is: 'existing', ...named, ours },
    doubt: [false],
    contact: 'listed',
    events: 0,
    hears: { is: 'known' },
  })),
  ...[undefined, true].map<Row>(ours => ({
    creation: { is: 'existing', ...named, ours },
    doubt: [true],
    contact: 'listed',
    events: 1,
    hears: ours ? { is: 'new', contactId } : { is: 'new' },
  })),
  {
    creation: { is: 'existing', ...named, ours: false },
    doubt: [true],
    contact: 'listed',
    events: 0,
    hears: { is: 'known' },
  },
  {
    creation: { is: 'refused', reason: 'it is blocked there' },
    doubt: either,
    contact: 'removed',
    events: 0,
    hears: { is: 'refused', reason: 'it is blocked there' },
  },
  {
    creation: { is: 'unreached', why: 'refused' },
    doubt: either,
    contact: 'pending',
    events: 0,
    doubtAfter: stays,
    hears: kept,
  },
  {
    creation: { is: 'unreached', why: 'too many wait', notSent: true },
    doubt: either,
    contact: 'pending',
    events: 0,
    doubtAfter: stays,
    hears: kept,
  },
  {
    creation: { is: 'misconfigured', why: '401' },
    doubt: either,
    contact: 'pending',
    events: 0,
    doubtAfter: stays,
    hears: keptBySettings,
  },
  {
    creation: { is: 'misconfigured', why: 'there is no such list', tookEffect: true },
    doubt: either,
    contact: 'pending',
    events: 0,
    doubtAfter: always,
    hears: keptBySettings,
  },
  { creation: unclear, doubt: either, contact: 'pending', events: 0, doubtAfter: always, hears: kept },
]

for (const { creation, doubt: before, contact, events, doubtAfter, hears } of table) {
  for (const doubt of before) {
    const ours = 'ours' in creation ? ` (ours: ${creation.ours})` : ''
    const id = 'providerId' in creation ? ' with an id' : ''
    const why = 'why' in creation ? ` (${creation.why})` : ''
    const says = `${creation.is}${ours}${id}${why}, ${doubt ? 'in doubt' : 'without doubt'}`
    test(`${says}: ${contact}, ${events} events, and the visitor hears ${hears.is}`, async t => {
      const here = await scene(t, () => unclear)
      if (doubt) assert.deepEqual(await here.visit(EMAIL), kept)
      here.provider.answer = () => creation
      assert.deepEqual(bare(await here.visit(EMAIL)), hears)
      assert.deepEqual(
        here.asked.map(each => each.doubt),
        doubt ? [false, true] : [false],
      )
      const left = here.contacts().map(each => [each.state, each.events, each.providerId])
      const providerId = 'providerId' in creation ? contactId : null
      const states = { listed: [['listed', events, providerId]], pending: [['pending', 0, null]], removed: [] }
      assert.deepEqual(left, states[contact])
      assert.equal(here.announced(), events)
      const expected = contact === 'pending' ? [[doubtAfter!(doubt) ? 1 : 0, 'why' in creation && creation.why]] : []
      assert.deepEqual(
        here.pending().map(each => [each.doubt, each.why]),
        expected,
      )
    })
  }
}

/** Without the members that are undefined. */
const bare = (joined: Joined) => Object.fromEntries(Object.entries(joined).filter(([, value]) => value !== undefined))

describe('a pending contact and more than one who asks', { timeout: 60_000 }, () => {
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
    const here = await scene(t, () => ({ is: 'unreached', why: 'refused' }))
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
    const { here, first, end } = await underWay(t, { is: 'unreached', why: 'refused' })
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
        await here.restarted().loop.once()
        return late
      }
      assert.deepEqual(await here.visit(EMAIL), { is: 'lost' })
      const left = here.contacts().map(each => [each.state, each.events, each.providerId])
      assert.deepEqual([left, here.announced()], [[['listed', 1, 'second']], 1])
    })
  }

  test('a bug in the provider is an unclear outcome', async t => {
    const here = await scene(t, () => Promise.reject(new TypeError('undefined is not a function')))
    assert.deepEqual(await here.visit(EMAIL), kept)
    const [row] = here.pending()
    assert.deepEqual([row!.doubt, row!.leased], [1, 0])
    assert.match(row!.why!, /TypeError/)
  })
})
