import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { DeliveryFilter } from '../../src/stores/operator/deliveries.ts'
import type { Operator } from '../../src/stores/operator/operator.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { LEASE, type Settlement } from '../../src/waitlist/ports/outbox.ts'
import { eventId } from '../../src/waitlist/rules/contact.ts'
import { confirmingContract } from './operator.confirming.ts'
import { contactsContract } from './operator.contacts.ts'
import { countingContract } from './operator.counting.ts'
import { course, type Desk, type MakeDesk, type OpenDesk, openDesk } from './operator.desk.ts'
import { erasureContract } from './operator.erasure.ts'
import { holdingContract } from './operator.holding.ts'
import { importContract } from './operator.imports.ts'
import { invitingContract } from './operator.inviting.ts'
import { DAY, emailsOf, numberOf, numbersOf, only, pendingNow } from './store.place.ts'

const provider = 'provider'
const abandoned = { is: 'abandoned', why: 'HTTP 404' } as const
const later = (wait: number, doubt: boolean) => ({ is: 'waiting', wait, doubt, why: 'HTTP 503' }) satisfies Settlement

/** Three contacts are listed, so there are six deliveries; a fourth is pending, and being handed over. */
async function busyDesk(make: MakeDesk, t: TestContext): Promise<OpenDesk> {
  const desk = await openDesk(make, t)
  const { store } = desk
  for (const who of ['ada', 'bob', 'cyd']) {
    const listed = { is: 'listed', joined: true, providerId: `id-${who}` } as const
    await store.settle(await pendingNow(store, `${who}@example.com`), listed)
  }
  await pendingNow(store, 'dot@example.com')
  return desk
}

/** What a process that died leaves behind is due: a lease that has ended. */
const endLeases = ({ sql, time }: Desk) => sql(`update delivery set due_at = ${time(0)} where token is not null`)

/** The promises of `Operator` (stores/operator/operator.ts). `nowhere`: where the first start has yet to make a list. */
export function operatorContract(
  name: string,
  make: MakeDesk,
  nowhere: (t: TestContext) => Promise<Operator>,
  /** Whether an import makes the store, instead of asking for a first start. */
  isMade: boolean,
): void {
  describe(`what an operator asks, of ${name}`, () => {
    test('deliveries: the newest first; state, destination and limit say which; and one with its contact', async t => {
      const { store, operator } = await busyDesk(make, t)
      const [claimed] = await store.claim('webhook', 1)
      await store.settle(claimed!, abandoned)
      const [told] = await store.claim('crm', 1)
      await store.settle(told!, { is: 'delivered' })
      const all = await operator.deliveries({ limit: 50 })
      assert.deepEqual(
        all.map(({ number }) => number),
        all.map(({ number }) => number).toSorted((a, b) => b - a),
      )
      assert.equal(all.length, 7)
      assert.deepEqual(await operator.deliveries({ limit: 2 }), all.slice(0, 2))
      for (const [expected, filter] of [
        [3, { destination: 'crm' }],
        [5, { state: 'waiting' }],
        [2, { state: 'waiting', destination: 'crm' }],
        [1, { state: 'waiting', destination: 'crm', limit: 1 }],
        [1, { state: 'delivered' }],
        [0, { state: 'abandoned', destination: 'crm' }],
        [0, { destination: 'nobody' }],
      ] satisfies [number, Partial<DeliveryFilter>][]) {
        assert.equal((await operator.deliveries({ limit: 50, ...filter })).length, expected, JSON.stringify(filter))
      }
      const [given, ...more] = await operator.deliveries({ state: 'abandoned', destination: 'webhook', limit: 50 })
      assert.deepEqual(more, [])
      const { due, settledAt, ...record } = given!
      assert.deepEqual(record, {
        number: claimed!.number,
        contactId: claimed!.contact.id,
        event: 'joined',
        eventId: eventId(claimed!.contact, 'joined'),
        destination: 'webhook',
        state: 'abandoned',
        attempts: 1,
        why: 'HTTP 404',
      })
      assert.ok(Math.abs(Date.now() - settledAt!.getTime()) < 60_000)
      assert.ok(due instanceof Date)
      assert.deepEqual(await operator.delivery(claimed!.number), { record: given, contact: claimed!.contact })
      assert.equal(await operator.delivery(999_999), undefined)
    })

    test('hand-overs that wait are listed, and why; they have no event', async t => {
      const { store, operator } = await openDesk(make, t)
      const delivery = await pendingNow(store)
      const { number, contact } = delivery
      const wish = { destination: provider, limit: 50 }
      const record = {
        number,
        contactId: contact.id,
        event: 'joined',
        eventId: null,
        destination: provider,
        state: 'waiting',
        attempts: 1,
      }
      const [leased, ...none] = await operator.deliveries(wish)
      const { due: end, ...under } = leased!
      assert.deepEqual([under, none], [{ ...record, why: null, settledAt: null }, []])
      assert.ok(end.getTime() > Date.now() + LEASE - 60_000)

      await store.settle(delivery, later(DAY, true))
      const [{ due, ...waits }] = (await operator.deliveries(wish)) as [NonNullable<typeof leased>]
      assert.deepEqual(waits, { ...record, why: 'HTTP 503', settledAt: null })
      assert.ok(Math.abs(due.getTime() - Date.now() - DAY) < 60_000)
      const shown = await operator.delivery(number)
      assert.deepEqual([shown?.contact.email, shown?.contact.state], ['ada@example.com', 'pending'])
      assert.equal(shown?.contact.event, undefined)

      const again = await only(store, provider, await numberOf(store))
      await store.settle(again, { is: 'listed', joined: true })
      assert.deepEqual(await operator.deliveries(wish), [])
    })

    test('what is replayed is as new, and due now, whatever came of it before', async t => {
      const { store, operator } = await busyDesk(make, t)
      const [one, two, three] = await store.claim('webhook', 3)
      await store.settle(one!, abandoned)
      await store.settle(two!, { is: 'delivered' })
      await store.settle(three!, later(DAY, true))
      const numbers = numbersOf([one!, two!, three!])
      assert.deepEqual(await operator.replay({ numbers: [...numbers, one!.number] }), {
        replayed: 3,
        underWay: [],
        unknown: [],
      })
      const records = await operator.deliveries({ destination: 'webhook', limit: 9 })
      assert.deepEqual(records.map(({ number }) => number).sort(), numbers.toSorted())
      for (const { due, state, attempts, why, settledAt } of records) {
        assert.ok(due.getTime() <= Date.now() + 1_000)
        assert.deepEqual([state, attempts, why, settledAt], ['waiting', 0, null, null])
      }
      const again = await store.claim('webhook', 9)
      assert.deepEqual(numbersOf(again).sort(), numbers.toSorted())
      assert.ok(
        again.every(({ attempts, doubt }) => attempts === 0 && !doubt),
        'nothing is in doubt any more',
      )
      for (const each of [one!, two!, three!]) {
        assert.equal(await store.settle(each, { is: 'delivered' }), false, 'an old token is worth nothing')
      }
      assert.equal((await store.claim('crm', 9)).length, 3, 'the others are untouched')
    })

    test('the doubt about a hand-over stays when it is replayed, since the provider can be asked', async t => {
      const desk = await openDesk(make, t)
      const { store, operator, sql } = desk
      const doubts = { abandoned: true, doubtful: true, clear: false, died: true }
      const deliveries = await Promise.all(Object.keys(doubts).map(who => pendingNow(store, `${who}@example.com`)))
      const [given, doubtful, clear] = deliveries
      await store.settle(doubtful!, later(20_000, true))
      await store.settle(clear!, later(20_000, false))
      await store.settle(given!, later(0, true))
      await store.settle(await only(store, provider), abandoned)
      await sql("update delivery set doubt = (1 = 1) where state = 'abandoned'")
      await endLeases(desk)
      const { replayed } = await operator.replay({ numbers: numbersOf(deliveries) })
      assert.equal(replayed, 4)
      const again = await store.claim(provider, 9)
      assert.deepEqual(
        Object.fromEntries(again.map(({ contact, doubt }) => [contact.email.split('@')[0], doubt])),
        doubts,
      )
      assert.ok(again.every(({ attempts }) => attempts === 0))
    })

    test('one that is under way is left alone, and told; so is what does not exist', async t => {
      const desk = await busyDesk(make, t)
      const { store, operator } = desk
      const [first, second] = await store.claim('webhook', 2)
      const [handed] = await operator.deliveries({ destination: provider, limit: 1 })
      const handOver = handed!.number
      await store.settle(first!, abandoned)
      const numbers = [first!.number, second!.number, handOver, 999_999]
      const { replayed, underWay, unknown } = await operator.replay({ numbers })
      assert.deepEqual([replayed, unknown], [1, [999_999]])
      assert.deepEqual(underWay.toSorted(), [second!.number, handOver].sort())
      assert.equal(await store.settle(second!, { is: 'delivered' }), true, 'it holds its lease')

      // Its lease has ended: the process that had it died, and what came of it is the operator's decision.
      const died = (await store.claim('webhook', 9)).find(({ number }) => number === first!.number)
      await endLeases(desk)
      assert.equal((await operator.replay({ numbers: [died!.number] })).replayed, 1)
      assert.equal(await store.settle(died!, { is: 'delivered' }), false)
      const again = (await store.claim('webhook', 9)).find(({ number }) => number === died!.number)
      assert.deepEqual([again?.attempts, again?.doubt], [0, false])
    })

    test('what is due next year, or leased until then, as the clock was set back since, is replayed', async t => {
      const desk = await busyDesk(make, t)
      const { store, operator, sql } = desk
      const [held, waits] = await store.claim('webhook', 2)
      await store.settle(waits!, later(DAY, false))
      const numbers = numbersOf([held!, waits!])
      await sql(`update delivery set due_at = ${desk.time(Date.now() + 365 * DAY)} where number in (${numbers})`)
      assert.deepEqual(await operator.replay({ numbers }), { replayed: 2, underWay: [], unknown: [] })
      assert.equal(await store.settle(held!, { is: 'delivered' }), false)
      assert.equal((await store.claim('webhook', 9)).length, 3)
    })

    test('very many are replayed in several steps', async t => {
      const { store, operator } = await openDesk(make, t)
      const handOvers = await Promise.all(
        Array.from({ length: 250 }, (_, i) => pendingNow(store, `visitor-${i}@example.com`)),
      )
      await Promise.all(handOvers.map(each => store.settle(each, abandoned)))
      const seen: number[] = []
      const progress = (done: number) => void seen.push(done)
      assert.equal((await operator.replay({ abandoned: true }, progress)).replayed, 250)
      assert.ok(seen.length > 1)
      assert.equal(seen.at(-1), 250)
      assert.equal((await store.claim(provider, 300)).length, 250)
    })

    test('all that are abandoned, or those to one destination; nothing else', async t => {
      const { store, operator } = await busyDesk(make, t)
      for (const destination of ['webhook', 'crm']) {
        const [one, ...rest] = await store.claim(destination, 9)
        await store.settle(one!, { is: 'delivered' })
        for (const each of rest) await store.settle(each, abandoned)
      }
      const replay = async (destination?: string) => (await operator.replay({ abandoned: true, destination })).replayed
      assert.equal(await replay('nobody'), 0)
      assert.equal(await replay('crm'), 2)
      assert.deepEqual(await store.claim('webhook', 9), [])
      assert.deepEqual(emailsOf(await store.claim('crm', 9)).sort(), ['bob@example.com', 'cyd@example.com'])
      assert.equal(await replay(), 2)
      assert.equal((await store.claim('webhook', 9)).length, 2)
      assert.equal(await replay(), 0)
    })

    test('the backlog counts what has not come to its end; a look says what is there', async t => {
      const { store, operator } = await busyDesk(make, t)
      const [one, two] = await store.claim('webhook', 2)
      await store.settle(one!, abandoned)
      await store.settle(two!, later(DAY, false))
      await store.settle((await store.claim('crm', 1))[0]!, { is: 'delivered' })
      assert.deepEqual(await operator.backlog(), {
        unconfirmed: 0,
        pending: 1,
        waiting: { crm: 2, webhook: 2, [provider]: 1 },
        abandoned: 1,
      })
      assert.match(await operator.look(), /./)
    })

    test('where there is no list it says so', async t => {
      const operator = await nowhere(t)
      const email = 'ada@example.com'
      const announcement = { eventName: 'waitlist.joined', provider: null, destinations: [], asks: null }
      for (const asked of [
        () => operator.contacts(),
        () => operator.addedLast({}, 1),
        () => operator.person(email),
        () => operator.counts(),
        () => operator.deliveries({ limit: 1 }),
        () => operator.delivery(1),
        () => operator.replay({ numbers: [1] }),
        () => operator.replay({ abandoned: true }),
        () => operator.traces(email),
        () => operator.erase(email),
        () => operator.countHeld({}),
        () => operator.release({}, announcement, course),
        () => operator.discard({}, course),
      ]) {
        await assert.rejects(asked(), OperatorError, String(asked))
      }
      assert.deepEqual(await operator.backlog(), { unconfirmed: 0, pending: 0, waiting: {}, abandoned: 0 })
      assert.equal(await operator.checkIntegrity(), null)
      assert.match(await operator.look(), /made at the first start/)
    })

    test('the integrity check finds nothing in a list that is sound', async t => {
      const { store, operator } = await openDesk(make, t)
      await store.settle(await pendingNow(store, 'ada@example.com'), { is: 'listed', joined: true })
      await pendingNow(store, 'bob@example.com')
      const { size, free, ...found } = (await operator.checkIntegrity())!
      assert.deepEqual(found, { damage: null, staleLeases: 0 })
      assert.ok(size > 10_000)
      assert.ok(free === null || free.bytes > 0)
    })

    test('it finds what a dead process has left', async t => {
      const desk = await openDesk(make, t)
      for (const who of ['ada', 'bob', 'cyd']) await pendingNow(desk.store, `${who}@example.com`)
      await endLeases(desk)
      assert.equal((await desk.operator.checkIntegrity())?.staleLeases, 3)
    })
  })
  confirmingContract(name, make)
  contactsContract(name, make)
  countingContract(name, make)
  erasureContract(name, make)
  holdingContract(name, make)
  invitingContract(name, make)
  importContract(name, make, nowhere, isMade)
}
