import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Breaker, breaker } from '../../src/waitlist/delivery/breaker.ts'
import type { DeliveryResult, Failure } from '../../src/waitlist/ports/destination.ts'
import { keptLog } from './log.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const delivered: DeliveryResult = { is: 'delivered' }
const down: Failure = { is: 'unreached', why: 'connection refused' }
const refusing: Failure = { is: 'misconfigured', why: '401' }
const notSent: Failure = { is: 'unreached', why: 'too many wait', notSent: true }
const asking = (milliseconds: number): Failure => ({ is: 'unreached', why: '429', retryAfter: milliseconds })

const alone: Failure = { is: 'unreached', why: 'not this one', alone: true }

type Bench = ReturnType<typeof bench>

function bench(longestPause = 8 * SECOND) {
  const clock = { now: 1_000_000 }
  const { log, lines } = keptLog()
  let closings = 0
  let deliveries = 1_000
  const made = breaker({
    name: 'hook',
    called: 'the destination',
    meanwhile: 'events are kept',
    longestPause,
    log,
    closed: () => void closings++,
    clock: () => clock.now,
  })
  /** One attempt, of a delivery that nobody met before unless it is named. */
  const attempt = (result: DeliveryResult, delivery = deliveries++) => {
    made.begin()
    return made.note(result, delivery)
  }
  return {
    ...made,
    clock,
    lines,
    /** How often it closed. */
    closings: () => closings,
    attempt,
    /** So many attempts that end like this, each for another delivery. */
    attempts(count: number, result: DeliveryResult) {
      for (let i = 0; i < count; i++) attempt(result)
    },
  }
}

const isOpen = ({ refusal, permits }: Breaker): boolean => {
  assert.equal(refusal() === null, permits(4) > 0, 'visitors and the background see the same')
  return refusal() !== null
}

describe('a breaker opens', () => {
  test('on five failures in a row, and on no fewer', () => {
    const here = bench()
    here.attempts(4, down)
    assert.deepEqual([here.refusal(), here.permits(4)], [null, 4])
    here.attempt({ is: 'unclear', why: 'cut off' })
    assert.deepEqual([here.refusal(), here.permits(4)], ['unreachable', 0])
  })

  test('not on failures with an answer between them', () => {
    const here = bench()
    for (let i = 0; i < 10; i++) {
      here.attempts(4, down)
      here.attempt(i % 2 === 0 ? delivered : { is: 'refused', why: 'no such field' })
    }
    assert.equal(isOpen(here), false)
  })

  test('on credentials that are refused, and says that it is our settings', () => {
    const here = bench()
    here.attempts(2, refusing)
    assert.deepEqual([here.refusal(), here.permits(4)], ['misconfigured', 0])
  })

  test('when it is asked to wait, for the longest time that anybody asked for', () => {
    const here = bench()
    here.attempt(asking(MINUTE))
    here.attempt(asking(SECOND))
    here.attempt(down)
    here.clock.now += MINUTE - 1
    assert.equal(isOpen(here), true)
    here.clock.now += 1
    assert.deepEqual([here.refusal(), here.permits(4)], [null, 1])
  })

  test('for a minute at most, whatever it is asked and however often', () => {
    const here = bench(HOUR)
    here.attempts(12, down)
    for (let i = 0; i < 20; i++) {
      here.attempt(asking(24 * HOUR))
      here.clock.now += MINUTE
      assert.equal(here.permits(4), 1)
    }
    here.attempt(delivered)
    assert.equal(here.permits(4), 4)
  })

  test('for good when the receiver is gone, even if another attempt is still answered', () => {
    const here = bench()
    here.attempt({ is: 'gone', why: '410' })
    here.attempt(delivered)
    here.clock.now += 1_000 * HOUR
    assert.deepEqual([here.refusal(), here.permits(4), here.closings()], ['unreachable', 0, 0])
  })

  test('not when nothing was sent, however often: but no more is claimed for five seconds', () => {
    const here = bench()
    here.attempts(100, notSent)
    here.attempts(100, { is: 'unclear', why: 'too many wait', notSent: true })
    assert.deepEqual([here.refusal(), here.permits(4)], [null, 0])
    here.clock.now += 5 * SECOND
    assert.equal(here.permits(4), 4)
    assert.deepEqual(here.lines, [])
  })
})

describe('while a breaker is open', () => {
  test('there is one probe at its time: after a second, then after twice as long, up to the longest pause', () => {
    const here = bench(8 * SECOND)
    here.attempts(5, down)
    for (const pause of [1, 2, 4, 8, 8, 8]) {
      here.clock.now += pause * SECOND - 1
      assert.equal(isOpen(here), true, `${pause} s`)
      here.clock.now += 1
      assert.equal(here.permits(4), 1, `${pause} s`)
      here.attempt(down)
    }
  })

  test('the probe is under way: nobody else is, until the next one, which does not wait for a probe that hangs', () => {
    const here = bench()
    here.attempts(5, down)
    here.clock.now += SECOND
    here.begin()
    assert.equal(isOpen(here), true)
    here.clock.now += SECOND
    assert.equal(here.permits(4), 1)
  })

  test('an answer closes it, and due deliveries continue', () => {
    const here = bench()
    here.attempts(5, down)
    here.clock.now += SECOND
    here.attempt(delivered)
    assert.deepEqual([here.refusal(), here.permits(4), here.closings()], [null, 4, 1])
    here.attempts(4, down)
    assert.equal(isOpen(here), false, 'the count starts again')
  })

  test('an answer within the time that was asked for does not close it; the next one does', () => {
    const here = bench()
    here.attempt(asking(MINUTE))
    here.attempt(delivered)
    assert.deepEqual([isOpen(here), here.closings()], [true, 0])
    here.clock.now += MINUTE
    assert.equal(here.permits(4), 1, 'one probe, and not a crowd')
    here.attempt(delivered)
    assert.deepEqual([here.permits(4), here.closings()], [4, 1])
  })
})

describe('who is to blame for a failure', () => {
  test('before the first answer the destination, right after one perhaps the delivery, then the destination', () => {
    const here = bench()
    assert.equal(here.attempt(down), 'destination')
    here.attempt(delivered)
    assert.deepEqual(
      Array.from({ length: 8 }, () => here.attempt(down)),
      ['delivery', ...Array(7).fill('destination')],
    )
    here.attempt(delivered)
    assert.equal(here.attempt(refusing), 'delivery')
  })

  test('the destination where it asks to wait, or nothing was sent', () => {
    const here = bench()
    here.attempt(delivered)
    assert.equal(here.attempt(notSent), 'destination')
    assert.equal(here.attempt(asking(SECOND)), 'destination')
  })

  test('what was not sent neither clears the destination nor counts', () => {
    const here = bench()
    here.attempts(4, down)
    here.attempts(3, notSent)
    assert.equal(here.refusal(), null)
    assert.equal(here.attempt(down), 'destination')
    assert.equal(here.refusal(), 'unreachable')
  })
})

describe('one delivery that alone fails', () => {
  const POISON = 1

  for (const result of [down, refusing]) {
    test(`holds up nobody (${result.is}); the next delivery tells whose fault it is`, () => {
      const here = bench()
      for (let i = 0; i < 20; i++) here.attempt(result, POISON)
      assert.deepEqual([here.refusal(), here.permits(4)], [null, 4])
      here.attempt(delivered)
      assert.equal(here.closings(), 1)

      for (let i = 0; i < 20; i++) here.attempt(result, POISON)
      here.attempts(2, result)
      assert.equal(isOpen(here), true)
    })
  }

  test('of many that were refused while another one was accepted, each is to blame itself, until it is accepted', () => {
    const here = bench()
    const odd = [1, 2, 3, 4, 5]
    for (const delivery of odd) assert.equal(here.attempt(refusing, delivery), 'destination')
    assert.equal(isOpen(here), true)
    here.attempt(delivered)
    for (const delivery of odd) assert.equal(here.attempt(refusing, delivery), 'delivery')
    assert.equal(isOpen(here), false)

    for (const delivery of odd) here.attempt(delivered, delivery)
    for (const delivery of odd) here.attempt(refusing, delivery)
    assert.equal(isOpen(here), true)
  })

  test('one that is to blame itself is no probe for the others: the next one is', () => {
    const here = bench()
    here.attempt(refusing, POISON)
    here.attempt(delivered)
    here.attempts(2, refusing)
    assert.equal(here.permits(4), 0)
    here.clock.now += 2 * SECOND
    assert.equal(here.permits(4), 1)
    here.attempt(refusing, POISON)
    assert.equal(here.permits(4), 1)
  })

  test('what fails alone shows that the destination answers, and is to blame by itself', () => {
    const here = bench()
    here.attempts(4, down)
    assert.equal(here.attempt(alone), 'delivery')
    here.attempts(100, alone)
    assert.equal(isOpen(here), false)
    here.attempts(5, down)
    assert.equal(isOpen(here), true)
    here.clock.now += 2 * SECOND
    here.attempt(alone)
    assert.equal(isOpen(here), false)
  })
})

describe('what the operator sees', () => {
  const silent = 'the destination does not answer: events are kept'
  const refused = 'the destination refuses our settings: events are kept'
  const again = 'the destination answers again: due deliveries continue'
  const messages = ({ lines }: Bench) => lines.map(({ message }) => message)

  test('one line with the reason when it opens, one when it closes, however many rows there are', () => {
    const here = bench()
    here.attempts(1_000, down)
    for (let i = 0; i < 1_000; i++) {
      here.clock.now += 10 * SECOND
      here.attempt(down)
    }
    here.attempts(1_000, delivered)
    const details = { destination: 'hook' }
    assert.deepEqual(here.lines, [
      { level: 'error', message: silent, details: { ...details, why: 'connection refused' } },
      { level: 'info', message: again, details },
    ])
  })

  test('of an outage that comes and goes at most one pair a minute', () => {
    const here = bench()
    for (let second = 0; second < 300; second++) {
      here.attempts(5, down)
      here.attempt(delivered)
      here.clock.now += SECOND
    }
    assert.deepEqual(messages(here), Array(5).fill([silent, again]).flat())
  })

  test('an outage that began within that minute is told when the minute is over', () => {
    const here = bench()
    here.attempts(5, down)
    here.attempt(delivered)
    here.attempts(5, down)
    assert.equal(here.lines.length, 2)
    here.clock.now += MINUTE
    here.attempt(down)
    here.attempt(delivered)
    assert.deepEqual(messages(here), [silent, again, silent, again])
  })

  test('a refusal of our settings in the middle of an outage, at once and once', () => {
    const here = bench()
    here.attempts(5, down)
    for (let i = 0; i < 10; i++) {
      here.attempt(refusing)
      assert.equal(here.refusal(), 'misconfigured')
      here.attempt(down)
      assert.equal(here.refusal(), 'unreachable')
    }
    assert.deepEqual(messages(here), [silent, refused])
  })
})
