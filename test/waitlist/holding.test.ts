import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Counts } from '../../src/waitlist/alerts/counts.ts'
import { holding } from '../../src/waitlist/alerts/holding.ts'
import { outages } from '../../src/waitlist/alerts/outages.ts'
import type { Alert } from '../../src/waitlist/ports/channel.ts'
import type { HoldReason } from '../../src/waitlist/rules/contact.ts'
import { recordingLog } from '../harness/service.ts'

const HOUR = 3_600_000
const leave = new AbortController().signal

/** A database that instances share, with a clock that moves their timers too, and a channel that is told by all. */
function scene(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  let now = Date.UTC(2030, 0, 1)
  let counted = 0
  const rows: { reason: HoldReason; at: number }[] = []
  const turns = new Map<string, number>()
  const news: Alert[] = []
  const store = {
    async counts(): Promise<Counts> {
      counted++
      const held = (['above-limit', 'same-mailbox'] as const).flatMap(reason => {
        const times = rows.filter(row => row.reason === reason).map(({ at }) => at)
        const [oldest, newest] = [new Date(Math.min(...times)), new Date(Math.max(...times))]
        return times.length === 0 ? [] : [{ reason, count: times.length, oldest, newest }]
      })
      const contacts = { listed: 0, pending: 0, held: rows.length }
      return { at: new Date(now), contacts, held, signups: [], sources: [], sourced: 0, deliveries: [] }
    },
    async acquireInterval(name: string, distance: number) {
      if (now < (turns.get(name) ?? 0)) return false
      turns.set(name, now + distance)
      return true
    },
  }
  const channel = {
    name: 'slack',
    title: 'Slack',
    async tell(said: Alert) {
      news.push(said)
      return { is: 'delivered' } as const
    },
    check: async () => null,
    close: async () => {},
  }
  const pass = async (milliseconds: number) => {
    for (let left = milliseconds; left > 0; left -= 10_000) {
      now += Math.min(left, 10_000)
      t.mock.timers.tick(Math.min(left, 10_000))
      for (let i = 0; i < 10; i++) await turn()
    }
  }
  async function instance(window = HOUR) {
    const { log, logged: lines } = recordingLog()
    const { holding: telling } = outages({ store, channels: [channel], signal: leave })
    const one = holding({ store, log, window, command: 'npx waitlist held', telling })
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
  return { instance, pass, news, rows, looks: () => counted, told: () => news.map(({ is }) => is) }
}

describe('the news that signups are held', () => {
  test('is told once, with how many and why; and once that it is over', async t => {
    const { instance, pass, news, told, rows } = scene(t)
    const { hold, lines } = await instance()
    for (let i = 0; i < 10; i++) hold()
    for (let i = 0; i < 2; i++) hold('same-mailbox')
    assert.deepEqual(told(), [], 'what follows within seconds is of the same news')
    await pass(10_000)
    const [first] = news
    assert.ok(first?.is === 'holding')
    assert.deepEqual(
      first.held.map(({ reason, count }) => [reason, count]),
      [
        ['above-limit', 10],
        ['same-mailbox', 2],
      ],
    )
    for (let i = 0; i < 8; i++) {
      await pass(HOUR / 2)
      hold()
    }
    assert.deepEqual(told(), ['holding'])
    rows.splice(0, 15)
    await pass(2 * HOUR)
    assert.deepEqual(told(), ['holding', 'not holding'])
    const [, last] = news
    assert.ok(last?.is === 'not holding')
    assert.deepEqual(
      last.held.map(({ count }) => count),
      [5],
    )
    assert.deepEqual(
      lines.map(({ level, msg, held, reasons }) => [level, msg, held, reasons]),
      [
        [40, 'signups are being held: see npx waitlist held', 12, { 'above-limit': 10, 'same-mailbox': 2 }],
        [30, 'no more signups are being held', 5, undefined],
      ],
    )
    hold()
    await pass(10_000)
    assert.deepEqual(told(), ['holding', 'not holding', 'holding'])
  })

  test('is told once by all instances, and not over while one of them holds', async t => {
    const { instance, pass, told } = scene(t)
    const all = [await instance(), await instance(), await instance()]
    for (const { hold } of all) hold()
    await pass(HOUR / 2)
    for (let i = 0; i < 6; i++) {
      all[2]!.hold()
      await pass(HOUR / 2)
    }
    assert.deepEqual(told(), ['holding'])
    for (const { lines } of all) assert.equal(lines.length, 1)
    await pass(2 * HOUR)
    assert.deepEqual(told(), ['holding', 'not holding'])
  })

  test('is known to an instance that starts meanwhile, which tells of the end alone', async t => {
    const { instance, pass, told } = scene(t)
    const before = await instance()
    before.hold()
    await pass(HOUR / 2)
    before.stop()
    const after = await instance()
    assert.deepEqual(
      after.lines.map(({ level }) => level),
      [40],
    )
    after.hold()
    await pass(3 * HOUR)
    assert.deepEqual(told(), ['holding', 'not holding'])
  })

  test('does not come and go with a short window, and a stop ends its timers', async t => {
    const { instance, pass, told, looks } = scene(t)
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
