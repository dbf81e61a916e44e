import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Counts, MINUTE } from '../../src/waitlist/alerts/counts.ts'
import { outages } from '../../src/waitlist/alerts/outages.ts'
import { LATE, watch } from '../../src/waitlist/alerts/watch.ts'
import type { Alert, Channel } from '../../src/waitlist/ports/channel.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { scene, stay } from './scene.ts'

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
  const counts = { at, contacts: { pending: 0, listed: 0, held: 0 }, held: [], signups: [], sources: [], sourced: 0 }
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

describe('whether the store takes signups', () => {
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
})

describe('whether something has waited for too long', () => {
  test('for more than an hour, or what is meant for a destination, at two looks in a row, each destination by itself', async () => {
    const { world, late, checkOutbox } = watched()
    world.deliveries = [waiting('webhook', 61), waiting('mail', 59), waiting('daily chat', 24 * 60)]
    await checkOutbox()
    world.deliveries = [waiting('webhook', 61), waiting('mail', 61), waiting('daily chat', 25 * 60)]
    await checkOutbox()
    await checkOutbox()
    world.deliveries = [{ destination: 'mail', state: 'abandoned', count: 7, oldest: null, why: 'refused' }]
    await checkOutbox()
    assert.deepEqual(late, [[], ['webhook'], ['webhook', 'mail'], []])
  })

  test('a store that cannot count changes nothing', async () => {
    const { world, late, checkOutbox } = watched()
    world.counts = false
    await checkOutbox()
    assert.deepEqual(late, [])
  })
})

test('a hand-over that has waited in a real store for more than an hour is told, and that it no longer does', async t => {
  const { store, clock, waiting, pass } = await scene(t)
  const news: Alert[] = []
  const channel: Channel = {
    name: 'chat',
    title: 'Chat',
    async tell(said) {
      news.push(said)
      return { is: 'delivered' }
    },
    check: async () => null,
    close: async () => {},
  }
  const telling = outages({ store, channels: [channel], signal: stay() })
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
