import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Failure } from '../../src/http-client/call.ts'
import { alerts, recoverySentence } from '../../src/notify/alerts.ts'
import type { Channel } from '../../src/notify/channel.ts'
import { keptLog } from '../harness/log.ts'
import { until } from '../harness/program.ts'
import { forEachEngine, signup } from '../store/place.ts'

const watched = { name: 'webhook', label: 'the webhook', keeps: 'event' } as const
const BROKE = 'The webhook refuses our settings: events are kept and delivered later. Answered with 401'
const RECOVERED = 'The webhook answers again after 5 min: 1 event was kept and is delivered now'

/** Channels that keep what they are told, and fail as long as the test wants it. */
function channelsOf(...names: string[]) {
  const told: string[] = []
  const state = { failure: null as Failure | null, told }
  const channels = names.map(
    (name): Channel => ({
      ...{ name, label: name, minInterval: 60_000 },
      async send(sentence) {
        if (state.failure === null) told.push(`${name}: ${sentence}`)
        return state.failure
      },
    }),
  )
  return { channels, state }
}

test('the end of an outage is told with its length and what was kept', () => {
  const loops = { name: 'loops', label: 'Loops', keeps: 'signup' } as const
  const ends = 'Loops answers again after'
  assert.equal(recoverySentence(loops, 9_000_000, 1_234), `${ends} 3 h: 1,234 signups were kept and are completed now`)
  assert.equal(recoverySentence(loops, 0, null), `${ends} 1 min: what was kept is completed now`)
})

forEachEngine('alerts', place => {
  async function stage(t: TestContext, ...names: string[]) {
    t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
    let monotonic = 0
    t.mock.method(performance, 'now', () => monotonic)
    let now = Date.UTC(2030, 0, 1)
    const here = await place(t)
    const holds = { above: { count: 1, time: 3_600_000 }, suspicious: false }
    const [store] = await here.instances(1, { clock: () => now, holds, destinations: ['webhook'] })
    const { channels, state } = channelsOf(...names)
    const { signal } = new AbortController()
    const open = () => alerts({ store, channels, log: keptLog().log, signal })
    const pass = (milliseconds: number) => {
      monotonic += milliseconds
      now += milliseconds
      t.mock.timers.tick(milliseconds)
    }
    return { store, state, open, pass }
  }

  test('a destination broke and recovered: each channel is told once by all instances, but not of itself', async t => {
    const { store, state, open, pass } = await stage(t, 'slack', 'webhook')
    await store.admit(signup('Ada', 'ada@example.com'))
    const instances = [open(), open(), open()]
    const change = instances.map(each => each.watch(watched))
    pass(60_000)
    await Promise.all(change.map(each => each('misconfigured', 'answered with 401')))
    pass(300_000)
    await Promise.all(change.map(each => each(null, '')))
    for (const each of instances) each.stop()
    assert.deepEqual(state.told, [`slack: ${BROKE}`, `slack: ${RECOVERED}`])
  })

  test('an alert that did not arrive is told later, as long as it is true; what is over soon is told once', async t => {
    const { state, open, pass } = await stage(t, 'slack')
    state.failure = { is: 'unreachable', why: 'down' }
    const alert = open()
    const change = alert.watch(watched)
    await change('misconfigured', 'answered with 401')
    state.failure = null
    pass(61_000)
    await until(async () => state.told.length > 0)
    // It comes and goes within a minute.
    await change(null, '')
    await change('misconfigured', 'answered with 401')
    pass(61_000)
    await change('misconfigured', 'answered with 401')
    alert.stop()
    assert.deepEqual(state.told, [`slack: ${BROKE}`])
  })

  test('signups that are held are told after ten seconds, with their reasons, once an hour', async t => {
    const { store, state, open, pass } = await stage(t, 'slack')
    const alert = open()
    for (let i = 0; i < 4; i++) {
      if ((await store.admit(signup('Ada', `${i}@example.com`))).is === 'held now') alert.held()
    }
    assert.equal(state.told.length, 0)
    pass(10_000)
    await until(async () => state.told.length > 0)
    alert.held()
    pass(10_000)
    await store.counts()
    alert.stop()
    assert.deepEqual(state.told, ['slack: Signups are being held: 3 need review (above-limit 3)'])
  })
})
