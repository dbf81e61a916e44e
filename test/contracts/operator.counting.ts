import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Counts, MINUTE, QUARTER, SOURCES } from '../../src/waitlist/alerts/counts.ts'
import { type Desk, type MakeDesk, type OpenDesk, openDesk } from './operator.desk.ts'
import { DAY, pendingNow } from './store.place.ts'

/** What the store and the operator count, which must be the same but for the moment. */
async function counted({ store, operator }: OpenDesk): Promise<Counts> {
  const [one, other] = [await store.counts(), await operator.counts()]
  const apart = other.at.getTime() - one.at.getTime()
  assert.ok(apart >= 0 && apart < MINUTE, `${apart} ms apart`)
  const { at: _, signups, ...rest } = one
  const { at: __, signups: later, ...others } = other
  assert.deepEqual(rest, others)
  // An hour's quarter may begin between the two.
  const sum = (spans: Counts['signups']) => spans.reduce((sum, { count }) => sum + count, 0)
  assert.equal(sum(signups), sum(later))
  return other
}

let made = 0

/** A contact that was written by hand; `time` and `source` are SQL. */
const contact = ({ sql }: Desk, time: string, source = 'null', state = 'listed') => {
  const id = `00000000-0000-7000-8000-${String(++made).padStart(12, '0')}`
  return sql(
    'insert into contact (id, name, email, email_key, state, created_at, source) values' +
      ` ('${id}', 'Ada', 'a${made}@example.com', 'a${made}@example.com', '${state}', ${time}, ${source})`,
  )
}

export function countingContract(name: string, make: MakeDesk): void {
  describe(`what is counted in ${name}`, () => {
    test('nothing in an empty list', async t => {
      const { at, ...counts } = await counted(await openDesk(make, t))
      assert.ok(Math.abs(Date.now() - at.getTime()) < 60_000)
      const none = {
        contacts: { unconfirmed: 0, pending: 0, listed: 0, held: 0, invited: 0 },
        redeemed: 0,
        held: [],
        signups: [],
        sources: [],
        sourced: 0,
        deliveries: [],
      }
      assert.deepEqual(counts, none)
    })

    test('all who ask the store at the same time share one count; the next one counts anew', async t => {
      const { store } = await openDesk(make, t)
      const [one, other] = await Promise.all([store.counts(), store.counts()])
      assert.equal(one, other)
      assert.notEqual(await store.counts(), one)
    })

    test('contacts by their state, and each in the minute or quarter of an hour in which it signed up', async t => {
      const desk = await openDesk(make, t)
      await pendingNow(desk.store)
      const now = Date.now()
      const ages = [5 * MINUTE, 5 * MINUTE, 100 * MINUTE, 3 * 60 * MINUTE, 31 * DAY]
      for (const age of ages) await contact(desk, desk.time(now - age))
      // Neither old nor future ones are in reach, but all are contacts.
      for (const age of [40 * DAY, -DAY]) await contact(desk, desk.time(now - age))
      const { contacts, signups } = await counted(desk)
      assert.deepEqual(contacts, { unconfirmed: 0, pending: 1, listed: 7, held: 0, invited: 0 })
      const froms = signups.map(({ from }) => from.getTime())
      assert.deepEqual(
        froms,
        froms.toSorted((a, b) => a - b),
      )
      for (const age of ages) {
        const length = age < 120 * MINUTE ? MINUTE : QUARTER
        assert.ok(froms.includes(Math.floor((now - age) / length) * length), `${age} ms ago`)
      }
      assert.equal(
        signups.reduce((sum, { count }) => sum + count, 0),
        6,
      )
      assert.ok(signups.some(({ count }) => count === 2))
    })

    test('who is held is counted apart: by reason, and among neither signups nor sources', async t => {
      const desk = await openDesk(make, t)
      const now = Math.floor(Date.now() / MINUTE) * MINUTE
      for (const age of [0, 5, 9]) await contact(desk, desk.time(now - age * MINUTE), `'{"ref": "friend"}'`)
      await desk.sql(
        `update contact set state = 'held', reason = 'same-mailbox' where created_at <= ${desk.time(now - 5 * MINUTE)}`,
      )
      const { contacts, held, signups, sources, sourced } = await counted(desk)
      assert.deepEqual(contacts, { unconfirmed: 0, pending: 0, listed: 1, held: 2, invited: 0 })
      const [oldest, newest] = [new Date(now - 9 * MINUTE), new Date(now - 5 * MINUTE)]
      assert.deepEqual(held, [{ reason: 'same-mailbox', count: 2, oldest, newest }])
      assert.deepEqual(signups, [{ from: new Date(now), count: 1 }])
      assert.deepEqual([sources, sourced], [[{ source: 'friend', count: 1 }], 1])
    })

    test(`the ${SOURCES} largest sources, by their label`, async t => {
      const desk = await openDesk(make, t)
      const time = desk.time(Date.now())
      for (let i = 1; i <= SOURCES + 3; i++) await contact(desk, time, `'{"utm_source": "small-${i}", "ref": "no"}'`)
      for (let i = 1; i <= 3; i++) await contact(desk, time, `'{"utm_source": "large", "utm_term": "${i}"}'`)
      for (let i = 1; i <= 2; i++) await contact(desk, time, `'{"ref": "friend"}'`)
      for (const source of ['null', `'{"utm_term": "no label"}'`]) await contact(desk, time, source)
      const { sources, sourced } = await counted(desk)
      assert.equal(sources.length, SOURCES)
      assert.deepEqual(sources.slice(0, 2), [
        { source: 'large', count: 3 },
        { source: 'friend', count: 2 },
      ])
      assert.ok(sources.slice(2).every(({ source, count }) => source.startsWith('small-') && count === 1))
      assert.equal(sourced, SOURCES + 3 + 3 + 2)
    })

    test('deliveries by destination and state, since when the oldest waits, and why', async t => {
      const desk = await openDesk(make, t)
      const { store, sql } = desk
      for (const who of ['ada', 'bob', 'cyd', 'dot']) {
        await store.settle(await pendingNow(store, `${who}@example.com`), { is: 'listed', joined: true })
      }
      const then = Date.now() - 5 * DAY
      await sql(`update contact set event_at = ${desk.time(then)} where email = 'bob@example.com'`)
      const [ada, bob, cyd] = await store.claim('webhook', 3)
      await store.settle(ada!, { is: 'delivered' })
      await store.settle(bob!, { is: 'waiting', wait: MINUTE, doubt: false, why: 'HTTP 503' })
      await store.settle(cyd!, { is: 'abandoned', why: 'HTTP 404' })
      await pendingNow(store, 'eve@example.com')
      const { deliveries } = await counted(desk)
      const waits = (destination: string) =>
        deliveries.find(count => count.destination === destination && count.state === 'waiting')?.oldest
      assert.equal(waits('webhook')?.getTime(), then)
      assert.ok(Date.now() - waits('provider')!.getTime() < 60_000)
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
}
