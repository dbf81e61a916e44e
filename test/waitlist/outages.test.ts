import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { outages } from '../../src/waitlist/alerts/outages.ts'
import { handOver } from '../../src/waitlist/delivery/handover.ts'
import type { Alert, Channel, Outage } from '../../src/waitlist/ports/channel.ts'
import type { DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import type { Creation, Provider } from '../../src/waitlist/ports/provider.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import type { Store } from '../../src/waitlist/ports/store.ts'
import { scene } from './scene.ts'

/** A channel that answers each message only when the test says so. */
function channel(name = 'chat') {
  const news: Alert[] = []
  const told: Alert['is'][] = []
  const answers: ((result: DeliveryResult) => void)[] = []
  const port: Channel = {
    name,
    title: name,
    tell(said) {
      news.push(said)
      told.push(said.is)
      return new Promise(resolve => answers.push(resolve))
    },
    check: async () => null,
    close: async () => {},
  }
  const answer = async (result: DeliveryResult = { is: 'delivered' }) => {
    answers.shift()!(result)
    await turn()
  }
  return { port, news, told, answer, waits: () => answers.length }
}

const leave = new AbortController().signal
/** Whoever asks gets the turn. */
const alone = { acquireInterval: async () => true }
const unreached: DeliveryResult = { is: 'unreached', why: 'no connection' }

const loops = { name: 'loops', called: 'Loops', keeps: 'signups' } as const
const webhook = { name: 'webhook', called: 'the webhook', keeps: 'events' } as const

/** One instance; the outage takes its turns. */
function telling(channels: readonly Channel[], store: Pick<Store, 'acquireInterval'> = alone) {
  const turned = outages({ store, channels, signal: leave }).of(loops)
  return async (...states: (Outage | 'answering')[]) => {
    for (const state of states) turned(state)
    await turn()
  }
}

describe('what channels are told of an outage', () => {
  test('that it began and that it ended, each channel by itself', async () => {
    const [one, other] = [channel('one'), channel('other')]
    const turned = telling([one.port, other.port])
    await turned('unreachable')
    await one.answer()
    await turned('answering')
    await one.answer()
    assert.deepEqual(one.told, ['unreachable', 'answering'])
    // The other one is slow: only when it has heard of the beginning is it told of the end.
    assert.deepEqual(other.told, ['unreachable'])
    await other.answer()
    assert.deepEqual(other.told, ['unreachable', 'answering'])
  })

  test('one message at a time, however often it comes and goes, and then what is so', async () => {
    const { port, told, answer } = channel()
    const turned = telling([port])
    await turned('unreachable')
    for (let i = 0; i < 1_000; i++) await turned('answering', 'misconfigured')
    assert.deepEqual(told, ['unreachable'])
    await answer()
    assert.deepEqual(told, ['unreachable', 'misconfigured'])
    await turned('unreachable', 'misconfigured')
    await answer()
    assert.equal(told.length, 2, 'what it was told last is so')
  })

  test('a message that does not arrive is not repeated, nor is its end told', async () => {
    const { port, told, answer } = channel()
    const turned = telling([port])
    await turned('unreachable')
    await answer(unreached)
    await turned('answering')
    assert.deepEqual(told, ['unreachable'])
    await turned('unreachable')
    assert.deepEqual(told, ['unreachable', 'unreachable'], 'the next outage is told')
  })

  test('of several instances the first one says it, and each channel hears it', async t => {
    const { store } = await scene(t)
    const [one, other] = [channel('one'), channel('other')]
    const instances = [1, 2, 3].map(() => telling([one.port, other.port], store))
    for (const state of ['unreachable', 'answering'] as const) {
      await Promise.all(instances.map(turned => turned(state)))
      while (one.waits() + other.waits() < 2) await turn()
      await Promise.all([one.answer(), other.answer()])
    }
    assert.deepEqual(one.told, ['unreachable', 'answering'])
    assert.deepEqual(other.told, ['unreachable', 'answering'])
  })

  test('it is told though the store does not answer', async () => {
    const { port, told } = channel()
    await telling([port], { acquireInterval: () => Promise.reject(new StoreUnavailable('no connection')) })(
      'unreachable',
    )
    assert.deepEqual(told, ['unreachable'])
  })

  test('each destination by itself, and a channel is not told of itself', async () => {
    const [slack, discord] = [channel('slack'), channel('discord')]
    const { of } = outages({ store: alone, channels: [slack.port, discord.port], signal: leave })
    const turns = [loops, webhook, { name: 'slack', called: 'Slack', keeps: 'events' } as const].map(of)
    for (const turned of turns) turned('unreachable')
    await turn()
    assert.deepEqual(slack.news.map(calledOf), ['Loops', 'the webhook'])
    assert.deepEqual(discord.news.map(calledOf), ['Loops', 'the webhook', 'Slack'])
  })
})

const calledOf = (news: Alert) => ('called' in news ? news.called : null)

describe('what channels are told of deliveries that are late', () => {
  /** One channel that hears all at once, and two destinations. */
  function lateness(store: Pick<Store, 'acquireInterval'> = alone) {
    const { port, news } = channel()
    port.tell = async said => {
      news.push(said)
      return { is: 'delivered' }
    }
    const { of, late } = outages({ store, channels: [port], signal: leave })
    const turned = of(webhook)
    of(loops)
    const look = async (...names: string[]) => {
      late(new Set(names))
      await turn()
    }
    return { look, turned, said: () => news.map(one => `${calledOf(one)} ${one.is}`) }
  }

  test('once that they are, and once that they no longer are', async () => {
    const { look, said } = lateness()
    for (let i = 0; i < 3; i++) await look('webhook')
    await look('webhook', 'loops')
    for (let i = 0; i < 3; i++) await look('webhook')
    await look()
    assert.deepEqual(said(), ['the webhook late', 'Loops late', 'Loops on time', 'the webhook on time'])
  })

  test('not while the destination is out, which was told, but when it answers and they still are', async () => {
    const { look, turned, said } = lateness()
    turned('misconfigured')
    await look('webhook')
    await look()
    await look('webhook')
    turned('answering')
    await turn()
    await look('webhook')
    turned('unreachable')
    await turn()
    assert.deepEqual(said(), [
      'the webhook misconfigured',
      'the webhook answering',
      'the webhook late',
      'the webhook unreachable',
    ])
  })
})

describe('what channels are told of the store', () => {
  test('that it takes no signups, and that it takes them again; each once', async () => {
    const { port, told, answer } = channel()
    const { store } = outages({ store: alone, channels: [port], signal: leave })
    for (const takes of [true, true, false, false]) store(takes)
    await turn()
    await answer()
    store(true)
    await turn()
    assert.deepEqual(told, ['refusing', 'storing'])
  })
})

/** The provider says these, one after the other, to visitors who come one after the other. */
async function turnsOf(t: TestContext, ...creations: Creation[]): Promise<string[]> {
  const here = await scene(t)
  const turns: string[] = []
  const provider: Provider = {
    name: 'fake',
    timeout: 1_000,
    createContact: async () => creations.shift() ?? { is: 'created' },
    automation: null,
    remove: async () => ({ is: 'absent' }),
    check: async () => null,
    close: async () => {},
  }
  const { store, clock, lines } = here
  const log = { info() {}, warn() {}, error() {} }
  const parts = { store, log, announce() {}, clock: () => clock.now, random: () => 0.5 }
  const handing = handOver({ ...parts, provider, onStateChange: to => turns.push(to) })
  for (let i = 0; i < 20; i++) {
    await here.visit(`visitor-${i}@example.com`, handing)
    clock.now += 1_000
    while ((await handing.loop.once()) > 0);
  }
  assert.deepEqual(lines, [])
  return turns
}

describe('when the hand-over says so', { timeout: 60_000 }, () => {
  const failed: Creation = { is: 'unreached', why: 'no connection' }
  const refused: Creation = { is: 'misconfigured', why: 'answered with 401' }
  test('when several fail in a row, and when one succeeds', async t => {
    assert.deepEqual(await turnsOf(t, ...Array(8).fill(failed)), ['unreachable', 'answering'])
  })
  test('once for an outage that comes and goes within a minute', async t => {
    const again = [refused, { is: 'created' }, refused, { is: 'created' }, refused] satisfies Creation[]
    assert.deepEqual(await turnsOf(t, ...again), ['misconfigured', 'answering'])
  })
})
