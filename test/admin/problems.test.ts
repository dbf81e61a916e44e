import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { problemsIn } from '../../src/admin/problems.ts'
import type { Reading } from '../../src/admin/reading.ts'
import { LATE } from '../../src/waitlist/alerts/watch.ts'
import type { Outage } from '../../src/waitlist/ports/channel.ts'
import { ago, delivery, empty, few, million, now } from './readings.ts'

const MINUTE = 60_000

/** One destination, which is set, with these deliveries. */
const having = (outage: Outage | null, ...deliveries: ReturnType<typeof delivery>[]) => ({
  ...few,
  destinations: [{ name: 'webhook', outage, lateAfter: LATE }],
  counts: { ...few.counts!, deliveries },
})

const waiting = (count: number, minutes: number, why: string | null = null) =>
  delivery('webhook', 'waiting', count, { oldest: ago(minutes * MINUTE), why })

const waitingOnes = 'waitlist deliveries --state waiting --destination webhook'

const cases: readonly {
  readonly what: string
  readonly reading: Reading
  readonly urgent?: true
  readonly title: string
  readonly text: string
  readonly why?: string
  readonly commands?: readonly string[]
}[] = [
  {
    what: 'a store that takes no signups',
    reading: { ...few, store: { takesSignups: false, triedAt: now } },
    urgent: true,
    title: 'Signups cannot be stored',
    text: 'Visitors are asked to try again later. The log says why.',
    commands: ['waitlist check'],
  },
  {
    what: 'a key that is refused, before anybody waits',
    reading: having('misconfigured'),
    urgent: true,
    title: 'webhook refuses our key or settings',
    text: 'Nothing waits for it. Nothing is lost: correct the key or the setting, and restart the service.',
    commands: ['waitlist check', waitingOnes],
  },
  {
    what: 'a key that is refused, with what waits and why',
    reading: having('misconfigured', waiting(1_204, 121, 'answered with 401')),
    urgent: true,
    title: 'webhook refuses our key or settings',
    text: '1,204 contacts wait, the oldest for 2 h. Nothing is lost: correct the key or the setting, and restart the service.',
    why: 'answered with 401',
    commands: ['waitlist check', waitingOnes],
  },
  {
    what: 'a destination that is away, however long: that is told as such',
    reading: having('unreachable', waiting(1, 90)),
    title: 'webhook does not answer',
    text: '1 contact waits, the oldest for 90 min. Nothing is lost: it goes on when the other side answers.',
    commands: ['waitlist check', waitingOnes],
  },
  {
    what: 'deliveries that are late',
    reading: having(null, waiting(2, 61, 'no answer in time')),
    title: 'Deliveries to webhook are late',
    text: '2 contacts wait, the oldest for 61 min.',
    why: 'no answer in time',
    commands: ['waitlist check', waitingOnes],
  },
  {
    what: 'abandoned deliveries',
    reading: having(null, delivery('webhook', 'abandoned', 1, { why: 'answered with 400' })),
    title: '1 delivery to webhook abandoned',
    text: 'When the cause is gone, they can be replayed.',
    why: 'answered with 400',
    commands: [
      'waitlist deliveries --state abandoned --destination webhook',
      'waitlist deliveries replay --abandoned --destination webhook',
    ],
  },
  {
    what: 'what waits for a destination that is not set',
    reading: { ...few, destinations: [], counts: { ...few.counts!, deliveries: [waiting(7, 1)] } },
    title: 'webhook is not set',
    text: '7 contacts wait, and will until it is set again.',
    commands: [waitingOnes],
  },
  {
    what: 'a disk that is almost full',
    reading: { ...few, freeSpace: 512_000_000 },
    title: 'The disk is almost full',
    text: '512 MB are free where the database is. When the disk is full, signups are refused.',
  },
  {
    what: 'a count that failed after others',
    reading: { ...few, countsFailed: 'no connection' },
    title: 'The contacts could not be counted',
    text: 'What this page counts is old; signups are not concerned.',
    why: 'no connection',
  },
]

describe('what needs the owner', () => {
  for (const { what, reading, urgent = false, title, text, why = null, commands = [] } of cases) {
    test(what, () => {
      assert.deepEqual(problemsIn(reading), [{ isUrgent: urgent, title, text, why, commands }])
    })
  }

  test('nothing: a healthy service, one that has not looked yet, and what waits for a while', () => {
    for (const reading of [empty, few, { ...few, store: null, counts: null, freeSpace: null }]) {
      assert.deepEqual(problemsIn(reading), [])
    }
    assert.deepEqual(problemsIn(having(null, waiting(9, 59), delivery('webhook', 'delivered', 9))), [])
  })

  test('nothing: what is meant to wait for longer', () => {
    const reading = having(null, waiting(9, 61))
    const destinations = reading.destinations.map(each => ({ ...each, lateAfter: 2 * LATE }))
    assert.deepEqual(problemsIn({ ...reading, destinations }), [])
  })

  test('the urgent comes first', () => {
    assert.deepEqual(
      problemsIn({ ...million, store: { takesSignups: false, triedAt: now } }).map(({ isUrgent }) => isUrgent),
      [true, true, false, false, false, false],
    )
  })

  test('a name that a shell would read otherwise is in no command', () => {
    const [problem] = problemsIn({
      ...few,
      destinations: [],
      counts: { ...few.counts!, deliveries: [{ ...waiting(1, 1), destination: 'x; rm -rf .' }] },
    })
    assert.deepEqual(problem!.commands, ['waitlist deliveries --state waiting'])
  })
})
