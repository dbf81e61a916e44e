import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { conclude, type Registered } from '../../src/waitlist/conclude.ts'
import type { Conclusion, Creation, Registration } from '../../src/waitlist/ports.ts'
import { deadline, moment, scene } from './scene.ts'

const EMAIL = 'ada@example.com'
const kept = { is: 'kept', because: 'unreachable' } as const
const keptBySettings = { is: 'kept', because: 'misconfigured' } as const
const unclear: Creation = { is: 'unclear', why: 'no answer in time' }

interface Row {
  readonly creation: Creation
  readonly doubt: readonly boolean[]
  /** What is concluded; `wait` and `doubt` of what stays pending are looked at apart. */
  readonly concluded: Conclusion['is']
  readonly events: 0 | 1
  readonly doubtAfter?: (before: boolean) => boolean
  readonly hears: Registered
}
const either = [false, true]
const stays = (before: boolean) => before

/** The table of `conclude`, line by line. */
const table: readonly Row[] = [
  {
    ...{ creation: { is: 'created', providerId: 'p1' }, doubt: either, concluded: 'created' },
    ...{ events: 1, hears: { is: 'new', contactId: 'p1' } },
  },
  { creation: { is: 'created' }, doubt: either, concluded: 'created', events: 1, hears: { is: 'new' } },
  ...[undefined, true, false].map<Row>(ours => ({
    creation: { is: 'existing', providerId: 'p1', ...(ours === undefined ? {} : { ours }) },
    ...{ doubt: [false], concluded: 'existing', events: 0, hears: { is: 'known', contactId: 'p1' } },
  })),
  ...[undefined, true].map<Row>(ours => ({
    creation: { is: 'existing', ...(ours === undefined ? {} : { ours }) },
    ...{ doubt: [true], concluded: 'created', events: 1, hears: { is: 'new' } },
  })),
  {
    ...{ creation: { is: 'existing', ours: false }, doubt: [true], concluded: 'existing' },
    ...{ events: 0, hears: { is: 'known' } },
  },
  {
    ...{ creation: { is: 'refused', reason: 'it is blocked there' }, doubt: either, concluded: 'refused' },
    ...{ events: 0, hears: { is: 'refused', reason: 'it is blocked there' } },
  },
  {
    ...{ creation: { is: 'unreached', why: 'refused' }, doubt: either, concluded: 'pending' },
    ...{ events: 0, doubtAfter: stays, hears: kept },
  },
  {
    ...{ creation: { is: 'misconfigured', why: '401' }, doubt: either, concluded: 'pending' },
    ...{ events: 0, doubtAfter: stays, hears: keptBySettings },
  },
  {
    ...{ creation: unclear, doubt: either, concluded: 'pending' },
    ...{ events: 0, doubtAfter: () => true, hears: kept },
  },
]

const registration = (doubt: boolean, attempts = 0): Registration => ({
  contact: { id: 'c1', name: 'Ada', email: EMAIL, state: 'pending', createdAt: new Date(0) },
  ...{ token: 't', doubt, attempts },
})

for (const { creation, doubt: before, concluded, events, doubtAfter, hears } of table) {
  for (const doubt of before) {
    const ours = 'ours' in creation ? ` (ours: ${creation.ours})` : ''
    const id = 'providerId' in creation ? ' with an id' : ''
    describe(`${creation.is}${ours}${id}, ${doubt ? 'in doubt' : 'without doubt'}`, { timeout: 60_000 }, () => {
      test(`is concluded as ${concluded}`, () => {
        const conclusion = conclude(creation, registration(doubt), 0.5)
        const { providerId = undefined, why = '' } = creation as { providerId?: string; why?: string }
        if (concluded === 'pending') {
          assert.deepEqual(conclusion, { is: 'pending', wait: 2_000, doubt: doubtAfter!(doubt), why })
        } else if (concluded === 'refused') assert.deepEqual(conclusion, { is: 'refused' })
        else assert.deepEqual(conclusion, { is: concluded, ...(providerId === undefined ? {} : { providerId }) })
      })

      test(`leads to ${events} events, and the visitor hears ${hears.is}`, async t => {
        const here = await scene(t, () => unclear)
        if (doubt) {
          assert.deepEqual(await here.visit(EMAIL), kept)
          here.clock.now += 3_000
        }
        here.provider.answer = () => creation
        const joined = await here.visit(EMAIL)
        assert.deepEqual(joined, hears)
        assert.deepEqual(
          here.asked.map(each => each.doubt),
          doubt ? [false, true] : [false],
        )
        const left = here.contacts().map(contact => [contact.state, contact.events])
        const state = concluded === 'pending' ? 'pending' : 'listed'
        assert.deepEqual(left, concluded === 'refused' ? [] : [[state, events]])
        assert.equal(here.announced(), events)
        const after = doubtAfter?.(doubt) ? 1 : 0
        const pending = here.pending().map(each => [each.doubt, each.attempts])
        assert.deepEqual(pending, concluded === 'pending' ? [[after, doubt ? 2 : 1]] : [])
      })
    })
  }
}

test('what the provider asks us to wait for is waited for, and the schedule goes on', () => {
  const wait = (creation: Creation, attempts: number) => {
    const conclusion = conclude(creation, registration(false, attempts), 0.5)
    return conclusion.is === 'pending' ? conclusion.wait : null
  }
  assert.equal(wait({ is: 'unreached', why: '429', retryAfter: 40_000.5 }, 0), 40_001)
  assert.equal(wait({ is: 'unclear', why: '500', retryAfter: 40_000 }, 5), 1_800_000)
  assert.equal(wait({ is: 'misconfigured', why: '401' }, 100), 86_400_000)
})

test('nobody was called: it waits for a turn, in as much doubt as before, and the attempt does not count', () => {
  const uncalled = { why: 'many wait', uncalled: true } as const
  for (const doubt of either) {
    const conclusion = conclude({ is: 'unreached', ...uncalled }, registration(doubt, 100), 0.5)
    assert.deepEqual(conclusion, { is: 'pending', wait: 5_000, doubt, ...uncalled })
  }
})

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
    assert.deepEqual(await second, { is: 'new' })
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
    assert.deepEqual(await second, { is: 'new' })
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
    const background = here.registering.background.once()
    while (here.asked.length < 2) await new Promise(resolve => setTimeout(resolve, 5))
    const visitor = here.visit(EMAIL)
    end.resolve()
    assert.deepEqual([await visitor, await background], [{ is: 'known' }, 1])
    assert.equal(here.asked.length, 2)
    assert.equal(here.contacts()[0]!.events, 1)
  })

  test('whoever waits in vain is told that the signup is kept, and begins nothing after the deadline', async t => {
    const { here, first, end } = await underWay(t, { is: 'created' })
    const contactId = here.contacts()[0]!.id
    assert.deepEqual(await here.registering.again(contactId, AbortSignal.timeout(150)), kept)
    end()
    await first
    assert.deepEqual(await here.registering.again(contactId, AbortSignal.abort()), kept)
    assert.equal(here.asked.length, 1)
  })

  test('nobody knows a contact that is not there', async t => {
    const here = await scene(t)
    assert.equal(await here.registering.again('no such id', deadline()), 'gone')
  })
})
