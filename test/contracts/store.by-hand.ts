import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Settlement } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import {
  DAY,
  emailsOf,
  handClock,
  type MakePlace,
  numberOf,
  only,
  opened,
  type Place,
  type PlaceOptions,
  pendingNow,
  type RunSql,
  signup,
} from './store.place.ts'

const provider = 'provider'
const listed = { is: 'listed', joined: true } as const
const settlements: readonly Settlement[] = [
  listed,
  { is: 'listed', joined: false },
  { is: 'removed', why: 'no such domain' },
  { is: 'waiting', wait: 0, doubt: true, why: 'no connection' },
  { is: 'abandoned', why: 'given up' },
  { is: 'delivered' },
]

/** What the operator does by hand is no more than one row's trouble: this goes on as if nothing had been. */
async function goesOn(store: Store, who: string): Promise<void> {
  await store.check()
  const delivery = await pendingNow(store, `${who}@example.com`, 'Next')
  assert.equal(await store.settle(delivery, listed), true)
  const told = emailsOf(await store.claim('webhook', 100))
  assert.equal(told.filter(email => email === `${who}@example.com`).length, 1)
}

/** What a store promises to those who edit its rows in SQL. */
export function byHandContract(name: string, place: MakePlace): void {
  interface Edited {
    readonly here: Place
    readonly sql: RunSql
    readonly clock: ReturnType<typeof handClock>
    open(options?: PlaceOptions): Promise<Store>
  }
  /** Skips where nobody can reach the rows. */
  const edits = (title: string, body: (edited: Edited, t: TestContext) => Promise<void>) =>
    test(title, async t => {
      const [here, clock] = [await place(t), handClock()]
      const { sql } = here
      if (sql === undefined) return t.skip('nobody else can reach the rows')
      const options = { provider, destinations: ['webhook'], clock: clock.read }
      await body({ here, sql, clock, open: more => opened(here, t, { ...options, ...more }) }, t)
    })

  describe(`rows edited by hand, kept by ${name}`, { timeout: 180_000 }, () => {
    edits('the tables refuse what is no list', async ({ sql, open }) => {
      const store = await open()
      await pendingNow(store, 'pending@example.com')
      await store.settle(await pendingNow(store, 'known@example.com'), { is: 'listed', joined: false })
      await store.settle(await pendingNow(store, 'joined@example.com'), listed)
      const event = "event_name = 'waitlist.joined', event_at = created_at"
      const contact = 'id, name, email, email_key, state, created_at'
      const who = (name: string) => `where email = '${name}@example.com'`
      for (const [statement, why] of [
        // Half an event, or the event of a pending contact.
        [`update contact set event_name = 'waitlist.joined' ${who('pending')}`, /check/i],
        [`update contact set event_at = created_at ${who('known')}`, /check/i],
        [`update contact set ${event} ${who('pending')}`, /check/i],
        [`update contact set state = 'pending' ${who('joined')}`, /check/i],
        [`update contact set event_at = null ${who('joined')}`, /check/i],
        [`update contact set event_name = null ${who('joined')}`, /check/i],
        [`update contact set state = 'invited' ${who('known')}`, /check/i],
        ["update delivery set state = 'lost'", /check/i],
        // Two contacts of one address, and two deliveries of a contact for one destination.
        [
          `insert into contact (${contact}) select '${'f'.repeat(8)}-ffff-7fff-bfff-${'f'.repeat(12)}'` +
            ", name, email, email_key, 'pending', created_at from contact",
          /unique/i,
        ],
        [
          'insert into delivery (contact, destination, due_at) select contact, destination, due_at from delivery',
          /unique/i,
        ],
        // What no program can read.
        [`update contact set number = ${2n ** 60n}`, /check|identity|DEFAULT/i],
        [`update delivery set number = ${2n ** 60n}`, /check|identity|DEFAULT/i],
        ['update delivery set attempts = -1', /check/i],
        ['update delivery set attempts = 2000000000', /check/i],
      ] as const) {
        await assert.rejects(sql(statement, 'unchecked'), why, statement)
      }
      await sql(`update contact set ${event} ${who('known')}`)
      await goesOn(store, 'next')
    })

    edits(
      'a contact that is deleted leaving its deliveries behind, at any moment, is gone, and nobody else is',
      async ({ sql, clock, open }) => {
        const store = await open()
        const forget = (who: string) => sql(`delete from contact where email = '${who}@example.com'`, 'unchecked')
        // While its event is told, and while it waits for that.
        for (const who of ['told', 'waits']) await store.settle(await pendingNow(store, `${who}@example.com`), listed)
        const [told] = await store.claim('webhook', 1)
        for (const who of ['told', 'waits']) await forget(who)
        assert.deepEqual(await store.claim('webhook', 10), [])
        await store.settle(told!, { is: 'waiting', wait: 0, doubt: true, why: 'HTTP 503' })
        // While it is handed over, however that ends; and while it waits to be.
        for (const [i, settlement] of settlements.entries()) {
          const delivery = await pendingNow(store, `handed-${i}@example.com`)
          await forget(`handed-${i}`)
          await store.settle(delivery, settlement)
        }
        const waiting = await pendingNow(store, 'pending@example.com')
        const contact = await numberOf(store, 'pending@example.com')
        await store.settle(waiting, { is: 'waiting', wait: 0, doubt: true, why: 'no connection' })
        await forget('pending')
        assert.deepEqual(await store.claim(provider, 10, contact), [])
        clock.pass(DAY)
        assert.deepEqual(await store.claim(provider, 10), [])
        assert.deepEqual(await store.claim('webhook', 10), [])
        assert.equal((await sql('select 1 from contact')).length, 0)
        await goesOn(store, 'next')
        await store.close()

        // What is left behind belongs to nobody, whoever joins next, and however the service is started.
        for (const options of [{}, { provider: 'other' }, { provider: null, destinations: ['webhook', provider] }]) {
          const again = await open(options)
          await again.check()
          const { is } = await again.admit(signup('Again', 'told@example.com'))
          assert.ok(is === 'pending now' || is === 'listed now', is)
          await forget('told')
          await again.close()
        }
        const after = await open()
        await goesOn(after, 'last')
      },
    )

    edits('a hand-over that is deleted is made anew by the next start', async ({ sql, open }) => {
      const before = await open()
      const first = await pendingNow(before)
      await sql('delete from delivery')
      for (const settlement of settlements) assert.equal(await before.settle(first, settlement), false)
      const contact = await numberOf(before)
      assert.deepEqual(await before.claim(provider, 10, contact), [])
      await goesOn(before, 'next')
      await before.close()
      const after = await open()
      const again = await only(after, provider, contact)
      assert.deepEqual([again.contact.email, again.attempts, again.doubt], ['ada@example.com', 0, false])
      assert.equal(await after.settle(again, listed), true)
      await goesOn(after, 'last')
    })

    edits(
      'a contact that is listed by hand is not handed over any more, however its attempt ends',
      async ({ sql, clock, open }) => {
        for (const [i, settlement] of [undefined, listed, settlements[3]].entries()) {
          const store = await open()
          const email = `visitor-${i}@example.com`
          const delivery = await pendingNow(store, email)
          const contact = await numberOf(store, email)
          await sql(`update contact set state = 'listed' where email = '${email}'`)
          if (settlement !== undefined) await store.settle(delivery, settlement)
          clock.pass(DAY)
          assert.deepEqual(await store.claim(provider, 10), [])
          assert.deepEqual(await store.claim(provider, 10, contact), [])
          assert.deepEqual(await store.claim('webhook', 10), [])
          assert.deepEqual(await store.admit(signup('Again', email)), { is: 'already listed' })
          await goesOn(store, `next-${i}`)
          clock.pass(DAY)
          for (const each of await store.claim('webhook', 10)) await store.settle(each, { is: 'delivered' })
          await store.close()
        }
        const [kept] = await sql("select count(*) as n from contact where email like 'visitor-%' and state = 'listed'")
        assert.equal(Number(kept?.n), 3)
      },
    )
  })
}
