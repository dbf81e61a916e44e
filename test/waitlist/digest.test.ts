import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { digests } from '../../src/waitlist/delivery/digest.ts'
import type { Alert, Channel, DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { withDatabase } from '../harness/database.ts'
import { stage } from './scene.ts'

const DISTANCE = 60_000
const joined = (people: number, total: number | null, doubtful = 0, names: readonly string[] = []) =>
  ({ is: 'digest', joined: people, invited: 0, doubtful, names, total }) satisfies Alert

/** Processes that tell a channel by a clock that a test steps; the channel says what the test wants. */
async function scene(t: TestContext) {
  const { parts, joins, ...here } = await stage(t, ['chat'])
  const told: { readonly at: number; readonly news: Alert }[] = []
  /** What the channel says next, and then: delivered. */
  const answers: DeliveryResult[] = []
  return {
    ...here,
    told,
    answers,
    joins: (count = 1) => Promise.all(Array.from({ length: count }, joins)),
    process(more: Partial<Parameters<typeof digests>[0]> = {}, tell?: Channel['tell'], withNames = false) {
      const channel: Channel = {
        name: 'chat',
        title: 'The chat',
        distance: DISTANCE,
        withNames,
        async tell(...all) {
          told.push({ at: here.clock.now, news: all[0] })
          return tell === undefined ? (answers.shift() ?? { is: 'delivered' }) : tell(...all)
        },
        check: async () => null,
        close: async () => {},
      }
      const { loop } = digests({ ...parts, channel, ...more })
      t.after(() => loop.stop(0))
      return loop
    },
    news: () => told.map(({ news }) => news),
    rows: () => here.rows('chat').map(({ state, doubt, why, attempts }) => ({ state, doubt, why, attempts })),
  }
}

const unreached: DeliveryResult = { is: 'unreached', why: 'tell the chat: no connection' }
const unclear: DeliveryResult = { is: 'unclear', why: 'tell the chat: no answer in time' }

describe('a channel that is told', () => {
  test('the first is told of at once, and all who join within the interval share the next message', async t => {
    const here = await scene(t)
    const loop = here.process()
    await here.joins()
    await here.pass(1, loop)
    for (let second = 1; second < 120; second++) {
      await here.joins(2)
      await here.pass(1, loop)
    }
    assert.deepEqual(here.news(), [joined(1, 1), joined(120, 121)])
    await here.pass(120, loop)
    assert.deepEqual(here.news().slice(2), [joined(118, 239)])
    const times = here.told.map(({ at }) => at)
    assert.deepEqual(
      times.slice(1).map((at, i) => at - times[i]!),
      [DISTANCE, DISTANCE],
    )
    await here.pass(200, loop)
    assert.equal(here.told.length, 3, 'nobody joined: nothing is said')
  })

  test('names are told only if they are asked for', async t => {
    const here = await scene(t)
    await here.joins(12)
    await here.pass(1, here.process({}, undefined, true))
    await here.joins()
    await here.pass(60, here.process())
    assert.deepEqual(here.news(), [joined(12, 12, 0, Array(10).fill('Ada Lovelace')), joined(1, 13)])
  })

  test('the total has everybody whose signup was answered before the message', async t => {
    const here = await scene(t)
    const store: Store = {
      ...here.store,
      claimDigest: async (...all) => {
        const digest = await here.store.claimDigest(...all)
        if (digest !== null) await here.joins(3)
        return digest
      },
    }
    await here.joins(2)
    await here.pass(1, here.process({ store }))
    assert.deepEqual(here.news(), [joined(2, 5)])
  })

  test('if they cannot be counted, or not in time, the message goes without the total', async t => {
    const here = await scene(t)
    const counts = [
      () => Promise.reject(new Error('the disk is slow')),
      () => new Promise<number>(() => {}),
      () => Promise.reject(new Error('asked again while the last count has not ended')),
    ]
    let counted = 0
    const loop = here.process({ store: { ...here.store, countListed: () => counts[counted++]!() } })
    for (let i = 0; i < 3; i++) {
      await here.joins()
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const passed = here.pass(60, loop)
      while (here.told.length <= i) {
        t.mock.timers.tick(1_000)
        await new Promise(resolve => setImmediate(resolve))
      }
      t.mock.timers.reset()
      await passed
    }
    assert.deepEqual(here.news(), Array(3).fill(joined(1, null)))
    assert.equal(counted, 2)
  })
})

describe('a channel that fails', () => {
  test('what did not arrive holds up nobody, and comes with a later message; nobody is in doubt', async t => {
    const here = await scene(t)
    here.answers.push({ is: 'delivered' }, unreached)
    const loop = here.process()
    await here.joins()
    await here.pass(1, loop)
    await here.joins(2)
    await here.pass(60, loop)
    await here.joins(3)
    await here.pass(10, loop)
    assert.deepEqual(here.news(), [joined(1, 1), joined(2, 3), joined(3, 6)])
    await here.joins(4)
    await here.pass(120, loop)
    assert.deepEqual(here.news().slice(3), [joined(6, 10)])
    assert.deepEqual(new Set(here.rows().map(({ state }) => state)), new Set(['delivered']))
  })

  test('what may have arrived is told again after the interval, and the message says so', async t => {
    const here = await scene(t)
    here.answers.push(unclear)
    const loop = here.process()
    await here.joins(3)
    await here.pass(1, loop)
    await here.joins(2)
    await here.pass(59, loop)
    assert.deepEqual(here.news(), [joined(3, 3)])
    await here.pass(1, loop)
    assert.deepEqual(here.news().slice(1), [joined(5, 5, 3)])
    assert.ok(here.rows().every(({ state, doubt }) => state === 'delivered' && doubt === 0))
  })

  test('a long outage: rare probes, nobody abandoned, one message at the end', async t => {
    const here = await scene(t)
    let isOut = true
    const loop = here.process({}, async () => (isOut ? unreached : { is: 'delivered' }))
    await here.joins(5)
    await here.pass(1_200, loop)
    assert.ok(here.told.length < 20, `${here.told.length} probes in 20 minutes`)
    await here.joins(5)
    isOut = false
    const before = here.told.length
    await here.pass(400, loop)
    assert.deepEqual(here.news().slice(before), [joined(10, 10)])
  })

  test('one that is refused for good is abandoned with its reason, and told when the operator replays it', async t => {
    const here = await scene(t)
    here.answers.push({ is: 'refused', why: 'tell the chat: too long' })
    const loop = here.process()
    await here.joins(4)
    await here.pass(100, loop)
    const given = { state: 'abandoned', doubt: 0, why: 'tell the chat: too long', attempts: 1 }
    assert.deepEqual(here.rows(), Array(4).fill(given))
    assert.equal((await sqliteOperator(here.path).replay({ abandoned: true })).replayed, 4)
    // The operator works by the clock of the machine.
    withDatabase(here.path, database => database.exec('update delivery set due_at = 0'))
    await here.pass(60, loop)
    assert.deepEqual(here.news().slice(1), [joined(4, 4)])
  })
})
