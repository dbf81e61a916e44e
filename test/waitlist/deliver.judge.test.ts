import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JoinedEvent } from '../../src/waitlist/contact.ts'
import { judge } from '../../src/waitlist/deliver.ts'
import type { Delivery, Destination, Settlement, Told } from '../../src/waitlist/ports.ts'

const ALWAYS = Number.POSITIVE_INFINITY
const delivered: Told = { is: 'delivered' }
const unreached: Told = { is: 'unreached', why: 'refused' }
const unclear: Told = { is: 'unclear', why: 'no answer in time' }

describe('what an outcome means for a delivery', () => {
  const event = { name: 'waitlist.joined' } as JoinedEvent
  const delivery = (attempts: number, doubt: boolean): Delivery => ({ number: 1, token: 't', event, attempts, doubt })
  const settled = (told: Told | 'not asked', { attempts = 0, doubt = false, repeatable = ALWAYS } = {}): Settlement =>
    judge(told, delivery(attempts, doubt), { repeatable } as Destination, 0.5)
  const waits = (wait: number, doubt: boolean, why: string): Settlement => ({ is: 'waiting', wait, doubt, why })

  for (const doubt of [false, true]) {
    for (const repeatable of [0, 1, ALWAYS]) {
      for (const attempts of [0, 5, 9]) {
        const at = { attempts, doubt, repeatable }
        test(`after ${attempts} attempts, ${doubt ? 'in' : 'without'} doubt, repeatable for ${repeatable} ms`, () => {
          assert.deepEqual(settled(delivered, at), { is: 'delivered' })
          const wait = [5_000, 0, 0, 0, 0, 36_000_000][attempts]
          if (wait === undefined) {
            assert.equal(settled(unreached, at).is, 'abandoned')
            assert.equal(settled(unclear, at).is, 'abandoned')
          } else {
            assert.deepEqual(settled(unreached, at), waits(wait, doubt, 'refused'))
            if (repeatable === 0) assert.equal(settled(unclear, at).is, 'abandoned')
            else assert.deepEqual(settled(unclear, at), waits(wait, true, 'no answer in time'))
          }
          for (const is of ['misconfigured', 'gone'] as const) {
            const settlement = settled({ is, why: 'it said no' }, at)
            assert.ok(settlement.is === 'abandoned' && settlement.why.startsWith('it said no'))
          }
          assert.equal(settled('not asked', at).is, 'abandoned')
        })
      }
    }
  }

  test('nobody was called: it waits half a minute, in as much doubt as before, and the attempt does not count', () => {
    const told: Told = { is: 'unreached', why: 'too many wait', uncalled: true }
    for (const doubt of [false, true]) {
      for (const attempts of [0, 5, 9, 50]) {
        const expected = { ...waits(30_000, doubt, 'too many wait'), uncalled: true }
        assert.deepEqual(settled(told, { attempts, doubt, repeatable: 0 }), expected)
      }
    }
    assert.deepEqual(settled({ ...told, retryAfter: 60_000 }), { ...waits(60_000, false, told.why), uncalled: true })
  })

  test('it may ask us to wait', () => {
    assert.deepEqual(settled({ is: 'unreached', why: '503', retryAfter: 7_000 }), waits(7_000, false, '503'))
    assert.deepEqual(settled({ is: 'unclear', why: '500', retryAfter: 1 }), waits(5_000, true, '500'))
  })
})
