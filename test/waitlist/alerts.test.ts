/** What the operator's channels are told of outages, of what is late and of what is held. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { HoldReason } from '../../src/signup/contact.ts'
import { StoreUnavailable, type Tx } from '../../src/store/database.ts'
import type { Store } from '../../src/store/store.ts'
import { type Counts, MINUTE } from '../../src/waitlist/alerts/counts.ts'
import { holding } from '../../src/waitlist/alerts/holding.ts'
import { outages } from '../../src/waitlist/alerts/outages.ts'
import { LATE, watch } from '../../src/waitlist/alerts/watch.ts'
import type { Alert, Channel, DeliveryResult, Outage } from '../../src/waitlist/ports/destination.ts'
import type { Creation } from '../../src/waitlist/ports/provider.ts'
import { keptLog } from './log.ts'
import { providerThat, scene, stay } from './scene.ts'

/** A channel that takes each message at once, or only when the test says so. */
function channel(name = 'chat', answersAtOnce = false) {
  const news: Alert[] = []
  const answers: ((result: DeliveryResult) => void)[] = []
  const port: Channel = {
    name,
    title: name,
    minInterval: MINUTE,
    withNames: false,
    tell(said) {
      news.push(said)
      return answersAtOnce ? Promise.resolve({ is: 'delivered' }) : new Promise(resolve => answers.push(resolve))
    },
    check: async () => null,
    close: async () => {},
  }
  const answer = async (result: DeliveryResult = { is: 'delivered' }) => {
    answers.shift()!(result)
    await turn()
  }
  return { port, news, told: () => news.map(({ is }) => is), answer, waits: () => answers.length }
}

/** A store that has only locks, which `acquire` gives. */
function locks(acquire: (name: string, until: number) => boolean = () => true): Pick<Store, 'transaction'> {
  const run = async (_: string, [name, until]: readonly unknown[] = []) =>
    acquire(name as string, until as number) ? 1 : 0
  return { transaction: use => use({ now: 0, run } as unknown as Tx) }
}
const alone = locks()
const unreached: DeliveryResult = { is: 'unreached', why: 'no connection' }

const loops = { name: 'loops', called: 'Loops', keeps: 'signups' } as const
const webhook = { name: 'webhook', called: 'the webhook', keeps: 'events' } as const

/** One instance; the outage takes its turns. */
function telling(channels: readonly Channel[], store: Pick<Store, 'transaction'> = alone) {
  const turned = outages({ store, channels, signal: stay() }).of(loops)
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
    assert.deepEqual(one.told(), ['unreachable', 'answering'])
    // The other one is slow: only when it has heard of the beginning is it told of the end.
    assert.deepEqual(other.told(), ['unreachable'])
    await other.answer()
    assert.deepEqual(other.told(), ['unreachable', 'answering'])
  })

  test('one message at a time, however often it comes and goes, and then what is so', async () => {
    const { port, told, answer } = channel()
    const turned = telling([port])
    await turned('unreachable')
    for (let i = 0; i < 1_000; i++) await turned('answering', 'misconfigured')
    assert.deepEqual(told(), ['unreachable'])
    await answer()
    assert.deepEqual(told(), ['unreachable', 'misconfigured'])
    await turned('unreachable', 'misconfigured')
    await answer()
    assert.equal(told().length, 2, 'what it was told last is so')
  })

  test('a message that does not arrive is not repeated, nor is its end told', async () => {
    const { port, told, answer } = channel()
    const turned = telling([port])
    await turned('unreachable')
    await answer(unreached)
    await turned('answering')
    assert.deepEqual(told(), ['unreachable'])
    await turned('unreachable')
    assert.deepEqual(told(), ['unreachable', 'unreachable'], 'the next outage is told')
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
    for (const { told } of [one, other]) assert.deepEqual(told(), ['unreachable', 'answering'])
  })

  test('it is told though the store does not answer', async () => {
    const { port, told } = channel()
    const away = { transaction: () => Promise.reject(new StoreUnavailable('no connection')) }
    await telling([port], away)('unreachable')
    assert.deepEqual(told(), ['unreachable'])
  })

  test('each destination by itself, and a channel is not told of itself', async () => {
    const [slack, discord] = [channel('slack'), channel('discord')]
    const { of } = outages({ store: alone, channels: [slack.port, discord.port], signal: stay() })
    const turns = [loops, webhook, { name: 'slack', called: 'Slack', keeps: 'events' } as const].map(of)
    for (const turned of turns) turned('unreachable')
    await turn()
    assert.deepEqual(slack.news.map(calledOf), ['Loops', 'the webhook'])
    assert.deepEqual(discord.news.map(calledOf), ['Loops', 'the webhook', 'Slack'])
  })

  for (const [what, creations, expected] of [
    ['when several hand-overs fail in a row, and when one succeeds', Array(8).fill(unreached), 'unreachable'],
    [
      'once when it comes and goes within a minute',
      [1, 2, 3].flatMap((): Creation[] => [{ is: 'misconfigured', why: 'answered with 401' }, { is: 'created' }]),
      'misconfigured',
    ],
  ] as const) {
    test(what, async t => {
      const { clock, visit, started } = await scene(t)
      let asked = 0
      const provider = providerThat(async () => creations[asked++] ?? { is: 'created' })
      const turns: string[] = []
      const handing = started({ provider, onStateChange: to => turns.push(to) })
      for (let i = 0; i < 20; i++) {
        await visit(`visitor-${i}@example.com`, handing)
        clock.now += 1_000
        while ((await handing.loop.once()) > 0);
      }
      assert.deepEqual(turns, [expected, 'answering'])
    })
  }
})

const calledOf = (news: Alert) => ('called' in news ? news.called : null)

describe('what channels are told of deliveries that are late', () => {
  /** A channel, and two destinations. */
  function lateness() {
    const { port, news } = channel('chat', true)
    const { of, late } = outages({ store: alone, channels: [port], signal: stay() })
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
    assert.deepEqual(
      said(),
      ['misconfigured', 'answering', 'late', 'unreachable'].map(each => `the webhook ${each}`),
    )
  })

  test('when a hand-over has waited in a real store for more than an hour, and when it no longer does', async t => {
    const { store, clock, waiting, pass } = await scene(t)
    const { port, news } = channel('chat', true)
    const telling = outages({ store, channels: [port], signal: stay() })
    telling.of({ name: 'fake', called: 'Fake', keeps: 'signups' })
    const { checkOutbox } = watch({ store, outages: telling, lateAfter: () => LATE })
    const look = async (expected: number) => {
      await checkOutbox()
      await checkOutbox()
      while (news.length < expected) await turn()
    }
    await waiting(3)
    clock.now += 59 * MINUTE
    await look(0)
    clock.now += 2 * MINUTE
    await look(1)
    await pass(5)
    await look(2)
    assert.deepEqual(news, [
      { is: 'late', called: 'Fake' },
      { is: 'on time', called: 'Fake' },
    ])
  })
})

describe('watching the store', () => {
  const at = new Date('2026-11-21T12:00:00Z')
  const waiting = (destination: string, minutes: number): Counts['deliveries'][number] => ({
    destination,
    state: 'waiting',
    count: 1,
    oldest: new Date(at.getTime() - minutes * MINUTE),
    why: null,
  })

  /** A store that does what the test says, and what was said of it. */
  function watched() {
    const world = { check: async () => {}, deliveries: [] as Counts['deliveries'], counts: true }
    const takes: boolean[] = []
    const late: string[][] = []
    const counts = {
      at,
      contacts: { unconfirmed: 0, pending: 0, listed: 0, held: 0, invited: 0 },
      redeemed: 0,
      held: [],
      signups: [],
      sources: [],
      sourced: 0,
    }
    const watching = watch({
      store: {
        check: () => world.check(),
        counts: async () => {
          if (!world.counts) throw new StoreUnavailable('no connection')
          return { ...counts, deliveries: world.deliveries }
        },
      },
      outages: { store: does => void takes.push(does), late: names => void late.push([...names]) },
      lateAfter: destination => (destination === 'daily chat' ? 25 : 1) * LATE,
    })
    return { world, takes, late, ...watching }
  }

  test('one failure is nothing, two in a row are', async () => {
    const { world, takes, checkStore } = watched()
    const fail = async () => Promise.reject(new StoreUnavailable('the disk is full'))
    for (const check of [fail, async () => {}, fail, fail, fail, async () => {}]) {
      world.check = check
      await checkStore()
    }
    assert.deepEqual(takes, [true, false, false, true])
  })

  test('no answer is a failure, too', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { world, takes, checkStore } = watched()
    world.check = () => new Promise(() => {})
    for (let i = 0; i < 2; i++) {
      const looked = checkStore()
      t.mock.timers.tick(10_000)
      await looked
    }
    assert.deepEqual(takes, [false])
  })

  test('channels are told that it takes no signups, and that it takes them again; each once', async () => {
    const { port, told } = channel('chat', true)
    const { store } = outages({ store: alone, channels: [port], signal: stay() })
    for (const takes of [true, true, false, false, true]) {
      store(takes)
      await turn()
    }
    assert.deepEqual(told(), ['refusing', 'storing'])
  })

  test('what has waited for more than an hour, or what is meant for a destination, at two looks in a row is late', async () => {
    const { world, late, checkOutbox } = watched()
    world.deliveries = [waiting('webhook', 61), waiting('mail', 59), waiting('daily chat', 24 * 60)]
    await checkOutbox()
    world.deliveries = [waiting('webhook', 61), waiting('mail', 61), waiting('daily chat', 25 * 60)]
    await checkOutbox()
    await checkOutbox()
    world.counts = false
    await checkOutbox()
    world.counts = true
    world.deliveries = [{ destination: 'mail', state: 'abandoned', count: 7, oldest: null, why: 'refused' }]
    await checkOutbox()
    assert.deepEqual(late, [[], ['webhook'], ['webhook', 'mail'], []], 'a store that cannot count changes nothing')
  })
})

describe('the news that signups are held', () => {
  const HOUR = 60 * MINUTE

  /** A database that instances share, with a clock that moves their timers too, and a channel that is told by all. */
  function shared(t: TestContext) {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    let now = Date.UTC(2030, 0, 1)
    let counted = 0
    const rows: { reason: HoldReason; at: number }[] = []
    const turns = new Map<string, number>()
    const { port, news, told } = channel('slack', true)
    const store = {
      async counts(): Promise<Counts> {
        counted++
        const held = (['above-limit', 'same-mailbox'] as const).flatMap(reason => {
          const times = rows.filter(row => row.reason === reason).map(({ at }) => at)
          const [oldest, newest] = [new Date(Math.min(...times)), new Date(Math.max(...times))]
          return times.length === 0 ? [] : [{ reason, count: times.length, oldest, newest }]
        })
        const contacts = { unconfirmed: 0, listed: 0, pending: 0, held: rows.length, invited: 0 }
        return { at: new Date(now), contacts, redeemed: 0, held, signups: [], sources: [], sourced: 0, deliveries: [] }
      },
      ...locks((name, ttl) => {
        if (now < (turns.get(name) ?? 0)) return false
        turns.set(name, now + ttl)
        return true
      }),
    }
    const pass = async (milliseconds: number) => {
      for (let left = milliseconds; left > 0; left -= 10_000) {
        now += Math.min(left, 10_000)
        t.mock.timers.tick(Math.min(left, 10_000))
        for (let i = 0; i < 10; i++) await turn()
      }
    }
    async function instance(window = HOUR) {
      const { log, lines } = keptLog()
      const { holding: telling } = outages({ store, channels: [port], signal: stay() })
      const one = holding({ store, log, window, telling })
      await one.start()
      return {
        lines,
        stop: one.stop,
        hold(reason: HoldReason = 'above-limit') {
          rows.push({ reason, at: now })
          one.note()
        },
      }
    }
    /** What was said, and of how many for each reason. */
    const counts = () =>
      news.map(one => ('held' in one ? [one.is, ...one.held.map(each => `${each.count} ${each.reason}`)] : one))
    return { instance, pass, counts, rows, looks: () => counted, told }
  }

  test('is told once, with how many and why; and once that it is over', async t => {
    const { instance, pass, counts, told, rows } = shared(t)
    const { hold, lines } = await instance()
    for (let i = 0; i < 10; i++) hold()
    for (let i = 0; i < 2; i++) hold('same-mailbox')
    assert.deepEqual(told(), [], 'what follows within seconds is of the same news')
    await pass(10_000)
    for (let i = 0; i < 8; i++) {
      await pass(HOUR / 2)
      hold()
    }
    assert.deepEqual(counts(), [['holding', '10 above-limit', '2 same-mailbox']])
    rows.splice(0, 15)
    await pass(2 * HOUR)
    assert.deepEqual(counts().slice(1), [['not holding', '5 above-limit']])
    assert.deepEqual(
      lines.map(({ level, details }) => [level, (details as { held: number }).held]),
      [
        ['warn', 12],
        ['info', 5],
      ],
    )
    hold()
    await pass(10_000)
    assert.deepEqual(told(), ['holding', 'not holding', 'holding'])
  })

  test('is told once by all instances, and not over while one of them holds, even one that started meanwhile', async t => {
    const { instance, pass, told } = shared(t)
    const all = [await instance(), await instance()]
    for (const { hold } of all) hold()
    await pass(HOUR / 2)
    for (const { stop } of all) stop()
    const last = await instance()
    for (const { lines } of [...all, last]) assert.equal(lines.length, 1)
    for (let i = 0; i < 6; i++) {
      last.hold()
      await pass(HOUR / 2)
    }
    assert.deepEqual(told(), ['holding'])
    await pass(2 * HOUR)
    assert.deepEqual(told(), ['holding', 'not holding'])
  })

  test('does not come and go with a short window, and a stop ends its timers', async t => {
    const { instance, pass, told, looks } = shared(t)
    const { hold, stop } = await instance(1_000)
    for (let i = 0; i < 10; i++) {
      hold()
      await pass(60_000)
    }
    assert.deepEqual(told(), ['holding'])
    stop()
    const before = looks()
    await pass(HOUR)
    assert.equal(looks(), before)
  })
})
