import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countListed } from '../../src/store/counts.ts'
import { type Bar, MINUTE, QUARTER, SOURCES } from '../../src/store/stats.ts'
import { DAY, forEachEngine, type Place, pendingNow } from './place.ts'

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

const sum = (bars: readonly Bar[]) => bars.reduce((sum, { count }) => sum + count, 0)

forEachEngine('counts', place => {
  test('nothing in an empty list; all who ask at the same time share one count, and the next one counts anew', async t => {
    const here = await place(t)
    const store = await here.open()
    const { at, ...counts } = await here.operator.counts()
    assert.ok(Math.abs(Date.now() - at.getTime()) < 60_000)
    const none = { unconfirmed: 0, pending: 0, listed: 0, held: 0, invited: 0 }
    const lists = { held: [], signups: [], sources: [], sourced: 0, deliveries: [] }
    assert.deepEqual(counts, { contacts: none, redeemed: 0, ...lists })
    const [one, other] = await Promise.all([store.counts(), store.counts()])
    assert.equal(one, other)
    assert.notEqual(await store.counts(), one)
  })

  test('contacts by their state, and each in the minute or quarter of an hour in which it signed up', async t => {
    const here = await place(t)
    await pendingNow(await here.open({ provider: 'provider' }))
    const now = Date.now()
    const ages = [5 * MINUTE, 5 * MINUTE, 100 * MINUTE, 3 * 60 * MINUTE, 31 * DAY]
    await contacts(
      here,
      ages.map(age => now - age),
    )
    // Neither old nor future ones are in reach, but all are contacts.
    await contacts(here, [now - 40 * DAY, now + DAY])
    const counts = await here.operator.counts()
    assert.deepEqual(counts.contacts, { unconfirmed: 0, pending: 1, listed: 7, held: 0, invited: 0 })
    assert.equal(await here.command(database => database.read(countListed)), 7)
    const froms = counts.signups.map(({ from }) => from.getTime())
    assert.deepEqual(
      froms,
      froms.toSorted((a, b) => a - b),
    )
    for (const age of ages) {
      const length = age < 120 * MINUTE ? MINUTE : QUARTER
      assert.ok(froms.includes(Math.floor((now - age) / length) * length), `${age} ms ago`)
    }
    assert.equal(sum(counts.signups), 6)
    assert.ok(counts.signups.some(({ count }) => count === 2))
  })

  test('who is held is counted apart: by reason, and among neither signups nor sources', async t => {
    const here = await place(t)
    await here.open()
    const now = Math.floor(Date.now() / MINUTE) * MINUTE
    await contacts(here, [now, now - 5 * MINUTE, now - 9 * MINUTE], 'friend')
    await here.sql("update contact set state = 'held', reason = 'same-mailbox' where created_at < $1", [now])
    const { contacts: states, held, signups, sources, sourced } = await here.operator.counts()
    assert.deepEqual(states, { unconfirmed: 0, pending: 0, listed: 1, held: 2, invited: 0 })
    const [oldest, newest] = [new Date(now - 9 * MINUTE), new Date(now - 5 * MINUTE)]
    assert.deepEqual(held, [{ reason: 'same-mailbox', count: 2, oldest, newest }])
    assert.deepEqual(signups, [{ from: new Date(now), count: 1 }])
    assert.deepEqual([sources.map(each => ({ ...each })), sourced], [[{ source: 'friend', count: 1 }], 1])
  })

  test(`the ${SOURCES} largest sources, by their label`, async t => {
    const here = await place(t)
    await here.open()
    const now = Date.now()
    for (let i = 1; i <= SOURCES + 1; i++) await contacts(here, [now], `small-${i}`)
    await contacts(here, [now, now, now], 'large')
    await contacts(here, [now])
    const { sources, sourced } = await here.operator.counts()
    assert.equal(sources.length, SOURCES)
    assert.deepEqual({ ...sources[0] }, { source: 'large', count: 3 })
    assert.ok(sources.slice(1).every(({ source, count }) => source.startsWith('small-') && count === 1))
    assert.equal(sourced, SOURCES + 1 + 3)
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
    await store.settle(bob!, { is: 'retry', wait: MINUTE, doubt: false, why: 'HTTP 503', counts: true })
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
