import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Counts, countListed, QUARTER, statsOf } from '../../src/store/counts.ts'
import { DAY, forEachEngine, type Place, pendingNow } from './place.ts'

const HOUR = 60 * 60_000

/** Contacts that signed up at these times, from these sources. */
async function contacts({ sql }: Place, times: readonly number[], label: string | null = null): Promise<void> {
  for (const time of times) {
    await sql(
      'insert into contact (id, name, email, email_key, state, created_at, source_label)' +
        " select max_number, 'Ada', max_number, max_number, 'listed', $1, $2" +
        " from (select 'a' || (select count(*) from contact) as max_number) as made",
      [time, label],
    )
  }
}

const quarterOf = (time: number) => Math.floor(time / QUARTER) * QUARTER

forEachEngine('counts', place => {
  test('nothing in an empty list; all who ask at the same time share one count, and the next one counts anew', async t => {
    const here = await place(t)
    const store = await here.open()
    const { at, ...counts } = await here.operator.counts()
    assert.ok(Math.abs(Date.now() - at.getTime()) < 60_000)
    const none = { unconfirmed: 0, pending: 0, listed: 0, held: 0, invited: 0 }
    assert.deepEqual(counts, { contacts: none, redeemed: 0, held: [], signups: [], sources: [], deliveries: [] })
    const [one, other] = await Promise.all([store.counts(), store.counts()])
    assert.equal(one, other)
    assert.notEqual(await store.counts(), one)
  })

  test('contacts by their state, reason and source, and each in the quarter of an hour in which it signed up', async t => {
    const here = await place(t)
    await pendingNow(await here.open({ provider: 'provider' }))
    const now = Date.now()
    const times = [now - HOUR, now - HOUR, now - 3 * HOUR, now - 31 * DAY]
    // Neither old nor future ones are in reach, but all are contacts.
    await contacts(here, [...times, now - 40 * DAY, now + DAY], 'friend')
    for (let i = 1; i <= 21; i++) await contacts(here, [now - 50 * DAY], `small-${i}`)
    const held = [now - 5 * HOUR, now - 6 * HOUR]
    await contacts(here, held, 'friend')
    await here.sql(`update contact set state = 'held', reason = 'same-mailbox' where created_at in (${held.join()})`)
    const counts = await here.operator.counts()
    assert.deepEqual(counts.contacts, { unconfirmed: 0, pending: 1, listed: 27, held: 2, invited: 0 })
    assert.equal(await here.command(database => database.read(countListed)), 27)
    assert.deepEqual({ ...counts.held[0] }, { reason: 'same-mailbox', count: 2 })
    const expected = Map.groupBy([...times, counts.at.getTime()].map(quarterOf), time => time)
    assert.deepEqual(
      counts.signups.map(({ from, count }) => [from.getTime(), count]),
      [...expected].map(([from, all]) => [from, all.length]).toSorted(([a], [b]) => a! - b!),
    )
    const sources = counts.sources.map(({ source, count }) => `${source} ${count}`)
    assert.equal(sources.length, 20)
    assert.deepEqual(sources.slice(0, 2), ['friend 6', 'small-1 1'])
  })

  test('deliveries by destination and state, since when the oldest waits, and why', async t => {
    const here = await place(t)
    const store = await here.open({ provider: 'provider', destinations: ['webhook', 'crm'] })
    for (const who of ['ada', 'bob', 'cyd', 'dot'])
      await store.settle(await pendingNow(store, `${who}@example.com`), { is: 'listed', joined: true })
    const then = Date.now() - 5 * DAY
    await here.sql("update contact set event_at = $1 where email = 'bob@example.com'", [then])
    const [ada, bob, cyd] = await store.claim('webhook', 3)
    await store.settle(ada!, { is: 'delivered' })
    await store.settle(bob!, { is: 'retry', wait: 60_000, doubt: false, why: 'HTTP 503', counts: true })
    await store.settle(cyd!, { is: 'abandoned', why: 'HTTP 404' })
    await pendingNow(store, 'eve@example.com')
    const { deliveries } = await here.operator.counts()
    const waits = (name: string) => deliveries.find(each => each.destination === name && each.state === 'waiting')
    assert.equal(waits('webhook')?.oldest?.getTime(), then)
    assert.ok(Date.now() - waits('provider')!.oldest!.getTime() < 60_000)
    assert.deepEqual(
      deliveries.map(({ destination, state, count, why }) => [destination, state, count, why]),
      [
        ['crm', 'waiting', 4, null],
        ['webhook', 'waiting', 2, 'HTTP 503'],
        ['webhook', 'delivered', 1, null],
        ['webhook', 'abandoned', 1, 'HTTP 404'],
        ['provider', 'waiting', 1, null],
      ],
    )
    assert.ok(deliveries.every(({ state, oldest }) => (oldest === null) === (state !== 'waiting')))
  })
})

/** What a store counts of signups at these times. */
function countsOf(at: number, times: readonly number[]): Counts {
  const signups = [...Map.groupBy(times, quarterOf)]
    .map(([from, all]) => ({ from: new Date(from), count: all.length }))
    .toSorted((a, b) => a.from.getTime() - b.from.getTime())
  const contacts = { unconfirmed: 0, pending: 1, listed: 2, held: 0, invited: 0 }
  return { at: new Date(at), signups, contacts, redeemed: 0, held: [], sources: [], deliveries: [] }
}

/** What the figures are where the process is in this time zone. */
function statsIn(timezone: string, counts: Counts) {
  process.env.TZ = timezone
  return statsOf(counts)
}

/** Clocks are set at night and at midnight, by an hour and by half of one; some are apart from UTC by quarters of an hour. */
const zones = ['UTC', 'Europe/Berlin', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'Africa/Cairo']

describe('what counts amount to', () => {
  test('a signup is of the day that the calendar of the time zone says, whatever was done to its clocks', () => {
    const at = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2027, 11, 31) })
    const ages = fc.array(fc.integer({ min: 0, max: 32 * DAY - QUARTER }), { maxLength: 30 })
    fc.assert(
      fc.property(fc.constantFrom(...zones), at, ages, (timezone, at, ages) => {
        const calendar = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' })
        const dayOf = (time: number) => calendar.format(time)
        const times = ages.map(age => at - age)
        const { perDay, today, last7Days, last30Days } = statsIn(timezone, countsOf(at, times))
        assert.equal(perDay.length, 30)
        assert.equal(perDay.at(-1)!.day, dayOf(at))
        for (const { day, from, count } of perDay) {
          assert.equal(dayOf(from.getTime()), day)
          assert.notEqual(dayOf(from.getTime() - 1), day)
          assert.equal(times.filter(time => dayOf(time) === day).length, count, `${day} in ${timezone}`)
        }
        const ofDays = (days: number) => {
          const names = perDay.slice(-days).map(({ day }) => day)
          return times.filter(time => names.includes(dayOf(time))).length
        }
        assert.deepEqual([today, last7Days, last30Days], [ofDays(1), ofDays(7), ofDays(30)])
      }),
      { numRuns: 300 },
    )
  })

  test('hours begin as on the wall, the last one is under way, and a clock that is a little ahead signs up now', () => {
    const at = Date.parse('2026-11-22T15:13:55.304Z')
    const times = [at + 30_000, at - 60_000, at - 59 * 60_000, at - 60 * 60_000, at - 47 * HOUR]
    const { perHour } = statsIn('Asia/Kathmandu', countsOf(at, times))
    assert.equal(perHour.length, 48)
    // 20:58 there.
    assert.deepEqual(perHour.at(-1), { from: new Date('2026-11-22T14:15:00Z'), count: 2 })
    assert.deepEqual(perHour.at(-2), { from: new Date('2026-11-22T13:15:00Z'), count: 2 })
    assert.equal(perHour[0]!.count, 1)
  })
})
