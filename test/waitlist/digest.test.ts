import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { claimDigest, LAG, openChannel } from '../../src/notify/cursor.ts'
import { digests } from '../../src/waitlist/delivery/digest.ts'
import type { Alert, Channel, DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import { stage } from './scene.ts'

const INTERVAL = 60_000
const joined = (people: number, total: number | null, doubt = false, names: readonly string[] = []) =>
  ({ is: 'digest', joined: people, invited: 0, doubt, names, total }) satisfies Alert

/** Processes that tell a channel by a clock that a test steps; the channel says what the test wants. */
async function scene(t: TestContext) {
  const { parts, joins, ...here } = await stage(t, [])
  await here.store.transaction(tx => openChannel(tx, 'chat'))
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
        minInterval: INTERVAL,
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
  }
}

const unreached: DeliveryResult = { is: 'unreached', why: 'tell the chat: no connection' }
const unclear: DeliveryResult = { is: 'unclear', why: 'tell the chat: no answer in time' }

describe('a channel that is told', () => {
  test('the first is told of in seconds, and all who join within the interval share the next message', async t => {
    const here = await scene(t)
    const loop = here.process()
    await here.joins()
    await here.pass(12, loop)
    assert.deepEqual(here.news(), [joined(1, 1)])
    for (let second = 0; second < 120; second++) {
      await here.joins(2)
      await here.pass(1, loop)
    }
    await here.pass(120, loop)
    const counts = here.news().map(each => (each.is === 'digest' ? each.joined : 0))
    assert.equal(
      counts.reduce((sum, each) => sum + each),
      241,
      'each of them once',
    )
    const times = here.told.map(({ at }) => at)
    for (const [i, at] of times.slice(1).entries()) assert.ok(at - times[i]! >= INTERVAL)
    const { length } = here.told
    assert.ok(length <= 4, `${length} messages`)
    await here.pass(200, loop)
    assert.equal(here.told.length, length, 'nobody joined: nothing is said')
  })

  test('names are told only if they are asked for', async t => {
    const here = await scene(t)
    await here.joins(12)
    await here.pass(12, here.process({}, undefined, true))
    await here.joins()
    await here.pass(62, here.process())
    assert.deepEqual(here.news(), [joined(12, 12, false, Array(10).fill('Ada Lovelace')), joined(1, 13)])
  })

  test('if the total cannot be counted, or not in time, the message goes without it', async t => {
    const here = await scene(t)
    const counts = [() => Promise.reject(new Error('the disk is slow')), () => new Promise<never>(() => {})]
    let counted = 0
    const loop = here.process({ store: { ...here.store, read: () => counts[counted++]!() } })
    for (let i = 0; i < 2; i++) {
      await here.joins()
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const passed = here.pass(72, loop)
      while (here.told.length <= i) {
        t.mock.timers.tick(1_000)
        await new Promise(resolve => setImmediate(resolve))
      }
      t.mock.timers.reset()
      await passed
    }
    assert.deepEqual(here.news(), Array(2).fill(joined(1, null)))
  })
})

describe('a channel that fails', () => {
  test('what did not arrive comes with a later message; nobody is in doubt', async t => {
    const here = await scene(t)
    here.answers.push({ is: 'delivered' }, unreached)
    const loop = here.process()
    await here.joins()
    await here.pass(12, loop)
    await here.joins(2)
    await here.pass(60, loop)
    await here.joins(3)
    await here.pass(100, loop)
    assert.deepEqual(here.news(), [joined(1, 1), joined(2, 3), joined(2, 6), joined(3, 6)])
  })

  test('what may have arrived is told again, and the message says so', async t => {
    const here = await scene(t)
    here.answers.push(unclear)
    const loop = here.process()
    await here.joins(3)
    await here.pass(30, loop)
    assert.deepEqual(here.news(), [joined(3, 3), joined(3, 3, true)])
  })

  test('after a crash the message is sent once more, and says so', async t => {
    const here = await scene(t)
    await here.joins(3)
    here.clock.now += LAG
    // It dies with the message under way.
    assert.ok(await here.store.transaction(tx => claimDigest(tx, 'chat')))
    await here.pass(60, here.process())
    assert.deepEqual(here.news(), [joined(3, 3, true)])
  })

  test('a long outage: rare probes, nobody is given up, one message at the end', async t => {
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

  test('what is refused for good is not told again, and the log says why', async t => {
    const here = await scene(t)
    here.answers.push({ is: 'refused', why: 'tell the chat: too long' })
    const loop = here.process()
    await here.joins(4)
    await here.pass(100, loop)
    await here.joins()
    await here.pass(30, loop)
    assert.deepEqual(here.news(), [joined(4, 4), joined(1, 5)])
    assert.match(JSON.stringify(here.lines), /too long/)
  })
})
