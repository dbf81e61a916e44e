import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ERASURE, erasureHash } from '../../src/stores/operator/erasure.ts'
import { LEASE } from '../../src/waitlist/ports/outbox.ts'
import { type MakeDesk, openDesk } from './operator.desk.ts'
import { emailsOf, only, opened, pendingNow } from './store.place.ts'

const parts = { provider: 'provider', destinations: ['webhook', 'crm', 'mail'] }
const joined = { is: 'listed', joined: true } as const

export function erasureContract(name: string, make: MakeDesk): void {
  describe(`erasing people from ${name}`, () => {
    test('the contact goes with all deliveries, in any spelling; nobody else does; a keyed hash stays', async t => {
      const { store, operator, sql } = await openDesk(make, t, parts)
      for (const who of ['ada', 'bob']) await store.settle(await pendingNow(store, `${who}@example.com`), joined)
      assert.deepEqual((await operator.traces('ada@example.com'))?.deliveries, {
        waiting: 3,
        delivered: 0,
        abandoned: 0,
      })
      const erased = await operator.erase('ADA@Example.com')
      assert.equal(erased?.state, 'listed')
      assert.ok(Math.abs(Date.now() - erased.createdAt.getTime()) < 60_000)
      assert.deepEqual(
        (await sql('select email from contact')).map(({ email }) => email),
        ['bob@example.com'],
      )
      assert.equal((await sql('select 1 from delivery')).length, 3)
      const [secret, ...more] = await sql('select name, value from secret')
      assert.deepEqual([secret?.name, more], [ERASURE, []])
      assert.match(String(secret?.value), /^[0-9a-f]{64}$/)
      const kept = await sql('select hash from erased')
      assert.deepEqual(
        kept.map(({ hash }) => hash),
        [erasureHash(String(secret?.value), 'ada@example.com')],
      )
      assert.equal(await operator.traces('ada@example.com'), undefined)
      assert.equal(await operator.erase('ada@example.com'), undefined)
    })

    test('who leaves by a link in a mail leaves what a removal leaves', async t => {
      const { store, operator, sql } = await openDesk(make, t, parts)
      const erasures = () => sql('select hash from erased order by hash')
      await pendingNow(store, 'bob@example.com')
      const handOver = await pendingNow(store)
      await store.settle(handOver, joined)
      await operator.erase('ada@example.com')
      const removed = await erasures()
      await pendingNow(store)
      await sql('delete from erased')
      const left = [await store.leave('Ada@example.com'), await store.leave('ada@example.com')]
      assert.deepEqual(left, [true, false])
      assert.deepEqual(await erasures(), removed)
      const rows = await sql('select email from contact join delivery on delivery.contact = contact.number')
      assert.deepEqual(
        rows.map(({ email }) => email),
        ['bob@example.com'],
      )
    })

    test('it says who was told, where attempts were made, and which are under way', async t => {
      const { store, operator, sql, time } = await openDesk(make, t, parts)
      await store.settle(await pendingNow(store), joined)
      await store.settle(await only(store, 'webhook'), { is: 'delivered' })
      await store.settle(await only(store, 'crm'), { is: 'abandoned', why: 'HTTP 404' })
      const mail = await only(store, 'mail')
      const { deliveries, told, tried, underWay } = (await operator.traces('ada@example.com'))!
      assert.deepEqual(deliveries, { waiting: 1, delivered: 1, abandoned: 1 })
      assert.deepEqual([told, tried, underWay], [['webhook'], ['crm'], ['mail']])
      await sql(`update delivery set due_at = ${time(0)} where token is not null`)
      const died = await operator.traces('ada@example.com')
      assert.deepEqual([died?.tried, died?.underWay], [['crm', 'mail'], []], 'who had it died')
      assert.deepEqual(await operator.erase('ada@example.com'), died)
      assert.equal(await store.settle(mail, { is: 'delivered' }), false)
    })

    test('a hand-over under way comes to nothing, and who signs up again is new, with an event of their own', async t => {
      const { store, operator, sql } = await openDesk(make, t, parts)
      const handOver = await pendingNow(store)
      assert.deepEqual((await operator.erase('ada@example.com'))?.underWay, ['provider'])
      assert.equal(await store.settle(handOver, joined), false)
      assert.deepEqual(await sql('select 1 from contact union all select 1 from delivery'), [])
      const again = await pendingNow(store)
      assert.notEqual(again.contact.id, handOver.contact.id)
      assert.equal(await store.settle(handOver, joined), false)
      assert.equal(await store.settle(again, joined), true)
      assert.deepEqual(emailsOf(await store.claim('webhook', 9)), ['ada@example.com'])
    })

    test('numbers are not used again: the newest is erased, the service starts anew, and the next is new', async t => {
      const { place, operator, sql } = await make(t)
      const before = await opened(place, t, parts)
      const [, last] = [await pendingNow(before, 'ada@example.com'), await pendingNow(before, 'bob@example.com')]
      const numbers =
        'select (select max(number) from contact) as contact, (select max(number) from delivery) as delivery'
      const [highest] = await sql(numbers)
      await operator.erase('bob@example.com')
      await before.close()
      const store = await opened(place, t, parts)
      const next = await pendingNow(store, 'cyd@example.com')
      const [now] = await sql(numbers)
      assert.ok(Number(now?.contact) > Number(highest?.contact))
      assert.ok(Number(now?.delivery) > Number(highest?.delivery))
      assert.equal(await store.settle(last, joined), false)
      assert.equal(await store.settle(next, joined), true)
    })

    test('the time of an erasure is not before that of the signup, and grows with the next one', async t => {
      const ahead = Date.now() + LEASE
      const { store, operator, sql, time } = await openDesk(make, t, { ...parts, clock: () => ahead })
      await pendingNow(store)
      await operator.erase('ada@example.com')
      const erasedAt = async () => {
        const [row, ...more] = await sql('select erased_at from erased')
        assert.deepEqual(more, [])
        return Number(row?.erased_at)
      }
      const first = await erasedAt()
      assert.ok(first >= ahead - 1)
      await pendingNow(store)
      await sql(`update contact set created_at = ${time(0)}`)
      await operator.erase('ada@example.com')
      assert.equal(await erasedAt(), first, 'an earlier one does not bring anybody back')
    })
  })
}
