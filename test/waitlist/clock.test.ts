/** The clock on the wall is set while the business goes on, which waits by the monotonic clock. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import { outbox } from './outbox.ts'
import { moment } from './scene.ts'

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
    })
  }
})
