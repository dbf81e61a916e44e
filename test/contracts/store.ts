import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Digest } from '../../src/waitlist/ports/outbox.ts'
import { type Admission, StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { until } from '../harness/program.ts'
import { crowdContract } from './store.crowd.ts'
import { deliveryContract } from './store.deliveries.ts'
import { digestContract } from './store.digests.ts'
import { gateContract } from './store.gate.ts'
import { handOverContract } from './store.handovers.ts'
import { idOf, type MakePlace, opened, pendingNow, signup, stored, uuidV7 } from './store.place.ts'
import { sourceContract } from './store.sources.ts'

export { signup } from './store.place.ts'

const idsOf = (admissions: readonly Admission[]): string[] => admissions.map(idOf).filter(id => id !== '')

/** The same address in one of many spellings. */
const spelled = (email: string, variant: number): string =>
  [...email].map((letter, i) => ((variant >> (i % 12)) & 1 ? letter.toUpperCase() : letter)).join('')

/** Deterministic, so that a failure can be seen again. */
function shuffled<T>(items: readonly T[]): T[] {
  const result = [...items]
  let state = 42
  for (let i = result.length - 1; i > 0; i--) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    const j = state % (i + 1)
    ;[result[i], result[j]] = [result[j]!, result[i]!]
  }
  return result
}

/** The promises of `Store` (waitlist/ports/signups.ts). */
export function storeContract(name: string, place: MakePlace): void {
  describe(`signups, kept by ${name}`, () => {
    test('a new address is listed now under a UUIDv7, with its event; a known one is already listed', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      const first = await store.admit(signup('Ada', 'ada@example.com'))
      assert.match(idOf(first), uuidV7)
      assert.deepEqual(await store.admit(signup('Ada', 'ada@example.com')), { is: 'already listed' })
      const contacts = await stored(here, t)
      if (contacts !== null) {
        const expected = { name: 'Ada', email: 'ada@example.com', state: 'listed', providerId: null }
        assert.deepEqual(contacts, [{ id: idOf(first), ...expected, events: 1, deliveries: 0 }])
      }
    })

    test('of 400 addresses sent 8 times each, all at once and mixed, each is listed now once', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      const addresses = Array.from({ length: 400 }, (_, i) => `visitor-${i}@example.com`)
      const crowd = shuffled(addresses.flatMap(email => Array.from({ length: 8 }, (_, i) => spelled(email, i * 31))))
      const answers = await Promise.all(crowd.map(email => store.admit(signup('Visitor', email))))
      const now = crowd.filter((_, i) => answers[i]!.is === 'listed now').map(email => email.toLowerCase())
      assert.deepEqual(now.sort(), addresses.toSorted())
      assert.equal(new Set(idsOf(answers)).size, 400)
      assert.ok(idsOf(answers).every(id => uuidV7.test(id)))
      const contacts = await stored(here, t)
      if (contacts !== null) {
        assert.deepEqual(contacts.map(({ id }) => id).sort(), idsOf(answers).sort())
        assert.ok(contacts.every(({ events }) => events === 1))
      }
    })

    test('the name and the spelling of the first stay, whether the second comes later or at the same time', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      await Promise.all([
        store.admit(signup('First', 'One@Example.com')),
        store.admit(signup('Second', 'one@example.com')),
        store.admit(signup('Third', 'ONE@EXAMPLE.COM')),
      ])
      await store.admit(signup('Fourth', 'onE@example.com'))
      const contacts = await stored(here, t)
      if (contacts !== null) {
        const kept = contacts.map(({ name, email, events }) => ({ name, email, events }))
        assert.deepEqual(kept, [{ name: 'First', email: 'One@Example.com', events: 1 }])
      }
    })

    test('every name and address that the rules allow is kept as it is', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      const names = [
        '🦀'.repeat(100),
        `O'Brien "x" \\ ; drop table contact; --`,
        '%s $1 ? :name @name',
        'नमस्ते שלום',
        '\u{1F469}\u200D\u{1F4BB}',
        'e\u0301',
      ]
      const label = 'a'.repeat(63)
      const longest = `${'x'.repeat(59)}@${label}.${label}.${label}.com`
      assert.equal(longest.length, 255)
      const emails = names.map((_, i) => (i === 0 ? longest : `!#$%&'*+/=?^_\`{|}~-${i}@example.com`))
      for (const [i, text] of names.entries()) await store.admit(signup(text, emails[i]!))
      const contacts = await stored(here, t)
      if (contacts !== null) {
        assert.deepEqual(
          contacts.map(({ name, email }) => [name, email]),
          names.map((text, i) => [text, emails[i]]),
        )
      }
    })

    test('the tables refuse a second contact of an address, and a second delivery of its event', async t => {
      const here = await place(t)
      const { sql } = here
      if (sql === undefined) return t.skip('nobody else can reach the rows')
      const store = await opened(here, t, { destinations: ['webhook'] })
      await store.admit(signup('Ada', 'ada@example.com'))
      const id = `${'f'.repeat(8)}-ffff-7fff-bfff-${'f'.repeat(12)}`
      const columns = 'name, email, email_key, state, created_at'
      await assert.rejects(
        sql(`insert into contact (id, ${columns}) select '${id}', ${columns} from contact`),
        /unique/i,
      )
      await assert.rejects(
        sql('insert into delivery (contact, destination, due_at) select contact, destination, due_at from delivery'),
        /unique/i,
      )
    })

    test('check resolves on a store that works, and leaves nothing behind', async t => {
      const here = await place(t)
      const store = await opened(here, t, { provider: 'provider', destinations: ['webhook'] })
      for (let i = 0; i < 10; i++) await store.check()
      await pendingNow(store)
      await Promise.all(Array.from({ length: 20 }, () => store.check()))
      assert.equal((await stored(here, t))?.length ?? 1, 1)
      assert.equal((await here.sql?.('select 1 from delivery'))?.length ?? 1, 1)
      for (const destination of ['provider', 'webhook']) assert.deepEqual(await store.claim(destination, 10), [])
    })

    test('a check tells, within a second and though nobody signs up, whether one could be stored', async t => {
      const here = await place(t)
      if (here.hold === undefined) return t.skip('nobody else can keep it from writing')
      const store = await opened(here, t)
      const isAble = () =>
        Promise.race([
          store.check().then(
            () => true,
            () => false,
          ),
          new Promise<boolean>(resolve => setTimeout(resolve, 1_000, false)),
        ])
      // A machine that stands still is not the store's doing: it is asked again.
      await until(isAble)
      const release = await here.hold()
      assert.equal(await isAble(), false)
      await release()
      await until(isAble)
      assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    })

    test('close completes what was accepted and refuses what comes later; opened again it finds every contact', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      const emails = Array.from({ length: 1_000 }, (_, i) => `v${i}@example.com`)
      const accepted = emails.map(email => store.admit(signup('Visitor', email)))
      const closed = store.close()
      await assert.rejects(store.admit(signup('Late', 'late@example.com')), StoreUnavailable)
      const ids = idsOf(await Promise.all(accepted))
      assert.equal(new Set(ids).size, 1_000)
      await closed
      await assert.rejects(store.admit(signup('Late', 'later@example.com')), StoreUnavailable)
      if (here.forgets !== undefined) return t.diagnostic(here.forgets)
      const contacts = await stored(here, t)
      assert.deepEqual(contacts?.map(({ id }) => id).sort() ?? ids.sort(), ids.sort())
      assert.ok(contacts?.every(({ events }) => events === 1) ?? true)

      const after = await opened(here, t)
      const again = await Promise.all(emails.map(email => after.admit(signup('Visitor', email.toUpperCase()))))
      assert.ok(again.every(({ is }) => is === 'already listed'))
      assert.match(idOf(await after.admit(signup('New', 'new@example.com'))), uuidV7)
    })

    test('everything is refused once the store is closed', async t => {
      const store = await opened(await place(t), t, { provider: 'provider', destinations: ['webhook'] })
      const listed = { is: 'listed', joined: true } as const
      const handOver = await pendingNow(store)
      await store.settle(handOver, listed)
      const [delivery] = await store.claim('webhook', 10)
      await store.settle(delivery!, { is: 'waiting', wait: 0, doubt: false, why: 'HTTP 503' })
      const digest = (await store.claimDigest('webhook', 10, 1)) as Digest
      await store.close()
      const calls = [
        store.check(),
        store.admit(signup('Bob', 'bob@example.com')),
        store.claim('provider', 10),
        store.claim('provider', 10, 1),
        store.settle(handOver, listed),
        store.claim('webhook', 10),
        store.settle(delivery!, { is: 'delivered' }),
        store.claimDigest('webhook', 10, 1),
        store.settleDigest(digest, { is: 'delivered' }, 1),
        store.acquireInterval('chat', 1),
        store.countListed(),
        store.counts(),
      ]
      for (const call of calls) await assert.rejects(call, StoreUnavailable)
    })
  })
  handOverContract(name, place)
  deliveryContract(name, place)
  digestContract(name, place)
  crowdContract(name, place)
  sourceContract(name, place)
  gateContract(name, place)
}
