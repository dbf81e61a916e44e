/** The clock on the wall is set while the business goes on, which waits by the monotonic clock. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import { outbox } from './outbox.ts'
import { moment, scene } from './scene.ts'

const YEAR = 365 * 86_400_000
const jumps = { 'back by a year': -YEAR, 'forward by a year': YEAR }
const delivered: DeliveryResult = { is: 'delivered' }
const unreached: DeliveryResult = { is: 'unreached', why: 'refused' }

describe('a clock that is set', { timeout: 60_000, concurrency: true }, () => {
  for (const [title, jump] of Object.entries(jumps)) {
    describe(title, { concurrency: true }, () => {
      test('while an attempt is under way: there is no second one, and the outcome of the first is stored', async t => {
        const here = await outbox(t)
        await here.joins()
        const [begun, end] = [moment(), Promise.withResolvers<DeliveryResult>()]
        const loop = here.to(() => {
          begun.resolve()
          return end.promise
        })
        const attempt = loop.once()
        await begun.promise
        for (let i = 0; i < 3; i++) {
          here.clock.ahead += jump
          here.clock.now += 1_000
          // It resolves with those that are under way.
          void loop.once()
          await here.store.claim('nobody', 1)
        }
        end.resolve(delivered)
        await attempt
        assert.equal(here.told.length, 1)
        assert.deepEqual(
          here.rows().map(({ state }) => state),
          ['delivered'],
        )
      })

      test('while an attempt is under way that fails: it is tried again when it is due, without doubt', async t => {
        const here = await outbox(t)
        await here.to(() => delivered, { name: 'crm' }).once()
        await here.joins()
        const loop = here.to(async () => {
          if (here.told.length > 2) return delivered
          here.clock.ahead += jump
          void loop.once()
          await here.store.claim('nobody', 1)
          return unreached
        })
        await loop.once()
        const [row] = here.rows()
        assert.deepEqual([row!.state, row!.doubt], ['waiting', 0])
        assert.equal(row!.due_at, here.clock.now + here.clock.ahead + 5_000)
        assert.equal(here.told.length, 1)
        here.clock.now += 5_000
        await loop.once()
        assert.equal(here.told.length, 2)
      })

      test('during an outage: it is tried as often as before, and all is told when it ends', async t => {
        const here = await outbox(t)
        let answer: DeliveryResult = unreached
        const loop = here.to(() => answer)
        for (let i = 0; i < 5; i++) await here.joins()
        await here.pass(1_800, loop)
        here.clock.ahead += jump
        const before = here.told.length
        for (let i = 0; i < 5; i++) await here.joins()
        await here.pass(3_600, loop)
        const tries = here.told.length - before
        assert.ok(tries >= 11 && tries <= 13, `${tries} in an hour`)
        answer = delivered
        await here.pass(330, loop)
        assert.deepEqual(new Set(here.rows().map(({ state }) => state)), new Set(['delivered']))
      })

      test('while a visitor waits for the provider: it is asked once, and the visitor is told', async t => {
        const [asked, answer] = [moment(), moment()]
        const here = await scene(t, async () => {
          asked.resolve()
          await answer.promise
          return { is: 'created' }
        })
        const visit = here.visit('ada@example.com')
        await asked.promise
        here.clock.ahead += jump
        assert.equal((await here.visit('ada@example.com', here.handing, undefined, 0)).is, 'kept')
        here.clock.ahead += jump
        void here.handing.loop.once()
        await here.store.claim('nobody', 1)
        answer.resolve()
        assert.equal((await visit).is, 'new')
        assert.equal(here.asked.length, 1)
        assert.deepEqual(
          here.contacts().map(({ state, events }) => [state, events]),
          [['listed', 1]],
        )
      })
    })
  }
})
