import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Admission, Store } from '../../src/waitlist/ports/signups.ts'
import type { HoldRules } from '../../src/waitlist/rules/hold.ts'
import type { Proof, Signup } from '../../src/waitlist/rules/signup.ts'
import { isSlow } from '../harness/slow.ts'
import { agreesWithModel } from './store.gate.model.ts'
import { handClock, instances, type MakePlace, opened, signup } from './store.place.ts'

const HOUR = 3_600_000
const rules = (given: Partial<HoldRules> = {}): HoldRules => ({
  above: null,
  window: HOUR,
  suspicious: false,
  ...given,
})
const visitor = (i: number, domain = 'gmail.com') => signup(`Visitor ${i}`, `visitor${i}@${domain}`)
const crowd = (from: number, count: number) => Array.from({ length: count }, (_, i) => visitor(from + i))
const all = (store: Store, signups: readonly Signup[]) => Promise.all(signups.map(each => store.admit(each)))
const counted = (admissions: readonly Admission[]) => {
  const counts: Record<string, number> = {}
  for (const { is } of admissions) counts[is] = (counts[is] ?? 0) + 1
  return counts
}
const proof = (nonce: string, expires = new Date(Date.now() + 600_000)): Proof => ({ nonce, expires })

/** What a store promises about signups that are held, and about proofs. */
export function gateContract(name: string, place: MakePlace): void {
  describe(`the gate, kept by ${name}`, () => {
    test('beyond the limit new contacts are held, exactly, over all instances', async t => {
      const here = await place(t)
      const stores = await instances(here, t, 3, { holds: rules({ above: 30 }), destinations: ['webhook'] })
      const answers = await Promise.all(crowd(0, 100).map((each, i) => stores[i % stores.length]!.admit(each)))
      assert.deepEqual(counted(answers), { 'listed now': 30, 'held now': 70 })
      const [store] = stores
      assert.equal((await store!.claim('webhook', 100)).length, 30)
      assert.equal(await store!.countListed(), 30)
      const { pending, listed, held } = (await store!.counts()).contacts
      assert.deepEqual({ pending, listed, held }, { pending: 0, listed: 30, held: 70 })
    })

    for (const provider of [null, 'loops']) {
      test(`${provider ? 'with' : 'without'} a provider, who is held is still held when it comes again, has no event, and reaches nobody`, async t => {
        const here = await place(t)
        const store = await opened(here, t, { holds: rules({ above: 0 }), provider, destinations: ['webhook'] })
        assert.deepEqual(await store.admit(visitor(1)), { is: 'held now', reason: 'above-limit' })
        assert.deepEqual(await store.admit(visitor(1)), { is: 'still held' })
        for (const destination of ['webhook', 'loops']) assert.deepEqual(await store.claim(destination, 10), [])
        if (here.sql === undefined) return t.diagnostic('what is stored was not looked at')
        assert.deepEqual(
          (await here.sql('select state, reason, event_name from contact')).map(row => ({ ...row })),
          [{ state: 'held', reason: 'above-limit', event_name: null }],
        )
      })
    }

    test('a lower limit counts all who came within the window, whatever the higher one was', async t => {
      const here = await place(t)
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const clock = handClock()
      const open = (above: number) => opened(here, t, { holds: rules({ above }), clock: clock.read })
      const first = await open(5)
      await all(first, crowd(0, 2))
      clock.pass(HOUR / 2)
      assert.deepEqual(counted(await all(first, crowd(2, 5))), { 'listed now': 3, 'held now': 2 })
      await first.close()
      clock.pass(HOUR / 2)
      const lower = await open(3)
      assert.deepEqual(counted(await all(lower, crowd(10, 5))), { 'held now': 5 })
      clock.pass(HOUR / 2)
      assert.deepEqual(counted(await all(lower, crowd(20, 5))), { 'listed now': 3, 'held now': 2 })
      await lower.close()
      const higher = await open(4)
      assert.deepEqual(counted(await all(higher, crowd(30, 5))), { 'listed now': 1, 'held now': 4 })
    })

    test('health checks take no place', async t => {
      const here = await place(t)
      const clock = handClock()
      const store = await opened(here, t, {
        holds: rules({ above: 1, suspicious: true }),
        clock: clock.read,
      })
      for (let i = 0; i < 3; i++) await store.check()
      assert.equal((await store.admit(visitor(1))).is, 'listed now')
    })

    test('what looks like a bomb is held, each for its reason', async t => {
      const here = await place(t)
      const store = await opened(here, t, { holds: rules({ suspicious: true }) })
      const signups: readonly (readonly [Signup, string | null])[] = [
        [signup('Ada', 'ada.lovelace@gmail.com'), null],
        [signup('Ada', 'adalovelace+1@gmail.com'), 'same-mailbox'],
        [signup('Ada', 'A.DA.lovelace@googlemail.com'), 'same-mailbox'],
        [signup('Ada', 'ada.lovelace@outlook.com'), null],
        [signup('Ada', 'adalovelace@outlook.com'), null],
        [signup('Ada', 'adalovelace+x@outlook.com'), 'same-mailbox'],
        [signup('Win at www.example.net', 'eve@example.com'), 'link-in-name'],
        [signup('J.R. Smith', 'smith@example.com'), null],
        [{ ...signup('Bob', 'bob@example.org'), unverified: true }, 'unverified'],
      ]
      for (const [each, reason] of signups) {
        assert.equal((await store.admit(each)).is, reason === null ? 'listed now' : 'held now', each.email)
      }
      if (here.sql === undefined) return t.diagnostic('what is stored was not looked at')
      const rows = await here.sql('select email, reason from contact order by number')
      assert.deepEqual(
        rows.map(row => [row.email, row.reason]),
        signups.map(([{ email }, reason]) => [email, reason]),
      )
    })

    test('who came before signups were watched is known by the mailbox behind the address', async t => {
      const here = await place(t)
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const before = await opened(here, t, { destinations: ['webhook'] })
      for (const email of ['Ada.Lovelace@gmail.com', 'bob@example.com']) await before.admit(signup('Early', email))
      await before.close()
      const store = await opened(here, t, { holds: rules({ suspicious: true }) })
      for (const [email, is] of [
        ['a.dalovelace+1@googlemail.com', 'held now'],
        ['b.ob@example.com', 'listed now'],
        ['ada.lovelace@gmail.com', 'already listed'],
      ] as const) {
        assert.equal((await store.admit(signup('Late', email))).is, is, email)
      }
    })

    test('an instance that holds nobody lets everybody in, and is not counted by one that does', async t => {
      const here = await place(t)
      if (here.another === undefined) return t.skip('only one instance may be open')
      const holding = await opened(here, t, { holds: rules({ above: 10, suspicious: true }) })
      const open = await opened({ ...here, open: here.another }, t)
      const other = await opened({ ...here, open: here.another }, t, { holds: rules({ above: 4 }) })
      const signups = crowd(0, 60)
      const answers = await Promise.all(signups.map((each, i) => [holding, open][i % 2]!.admit(each)))
      assert.deepEqual(counted(answers.filter((_, i) => i % 2 === 1)), { 'listed now': 30 })
      assert.deepEqual(counted(answers.filter((_, i) => i % 2 === 0)), { 'listed now': 10, 'held now': 20 })
      // With a lower limit, beside it: those who came count.
      assert.deepEqual(counted(await all(other, crowd(100, 5))), { 'held now': 5 })
      assert.deepEqual(counted(await all(open, signups)), { 'already listed': 40, 'still held': 20 })
    })

    test('of 50 addresses with one proof, all at once at as many instances as there may be, one gets in', async t => {
      const here = await place(t)
      const stores = await instances(here, t, 2, { holds: rules() })
      const answers = await Promise.all(
        crowd(0, 50).map((each, i) => stores[i % stores.length]!.admit({ ...each, proof: proof('one') })),
      )
      assert.deepEqual(counted(answers), { 'listed now': 1, spent: 49 })
      const [store] = stores
      const winner = answers.findIndex(({ is }) => is === 'listed now')
      assert.deepEqual(await store!.admit({ ...visitor(winner), proof: proof('one') }), { is: 'already listed' })
      assert.deepEqual(await store!.admit({ ...visitor(99), proof: proof('two') }).then(({ is }) => is), 'listed now')
      // Nobody learns with one proof who is on the list.
      assert.deepEqual(await store!.admit({ ...visitor(99), proof: proof('one') }), { is: 'spent' })
    })

    test('a secret is random, and the same for all instances and after a restart', async t => {
      const here = await place(t)
      const stores = await instances(here, t, 3)
      const values = await Promise.all(stores.map(store => store.secret('challenge')))
      assert.match(values[0]!, /^[0-9a-f]{64}$/)
      assert.deepEqual(new Set(values).size, 1)
      assert.notEqual(await stores[0].secret('another'), values[0])
      if (here.forgets !== undefined) return
      await Promise.all(stores.map(({ close }) => close()))
      const store = await opened(here, t)
      assert.equal(await store.secret('challenge'), values[0])
    })

    test('a proof is kept for a minute after it has expired; then those who come later delete it', async t => {
      const here = await place(t)
      const { sql } = here
      if (sql === undefined) return t.skip('nobody can see what is stored')
      const clock = handClock()
      const store = await opened(here, t, { holds: rules(), clock: clock.read })
      const [early, late] = [600_000, HOUR].map(wait => new Date(clock.read() + wait))
      const claim = async (i: number, nonce: string, expires = late) =>
        (await store.admit({ ...visitor(i), proof: proof(nonce, expires) })).is
      for (let i = 0; i < 20; i++) await claim(i, `early ${i}`, early)
      clock.pass(660_000)
      assert.equal(await claim(20, 'late'), 'listed now')
      assert.equal(await claim(21, 'early 0', early), 'spent')
      clock.pass(1)
      assert.equal(await claim(22, 'later'), 'listed now')
      assert.deepEqual(
        (await sql('select nonce from spent order by nonce')).map(each => each.nonce),
        ['late', 'later'],
      )
    })
  })

  describe(`the gate beside its model, kept by ${name}`, () => {
    test('random signups are answered as the model answers them, over restarts', t =>
      agreesWithModel(place, isSlow ? 5 : 2, t))
  })
}
