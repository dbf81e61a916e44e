import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HoldRules } from '../../src/holds/rules.ts'
import type { Proof, Signup } from '../../src/signup/contact.ts'
import type { Admission } from '../../src/store/signups.ts'
import type { Store } from '../../src/store/store.ts'
import { forEachEngine, signup } from '../store/place.ts'

const HOUR = 3_600_000
const rules = (given: Partial<HoldRules> = {}): HoldRules => ({ above: null, suspicious: false, ...given })
const limit = (count: number) => ({ above: { count, time: HOUR } })
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
forEachEngine('holds', place => {
  test('beyond the limit new contacts are held, exactly where one asks after the other', async t => {
    const here = await place(t)
    const stores = await here.instances(3, { holds: rules(limit(30)), destinations: ['webhook'] })
    const answers: Admission[] = []
    for (const [i, each] of crowd(0, 40).entries()) answers.push(await stores[i % stores.length]!.admit(each))
    assert.deepEqual(counted(answers), { 'listed now': 30, 'held now': 10 })
    assert.deepEqual(counted(await all(stores[0], crowd(40, 50))), { 'held now': 50 })
    assert.equal((await stores[0].claim('webhook', 100)).length, 30)
    const { pending, listed, held } = (await stores[0].counts()).contacts
    assert.deepEqual({ pending, listed, held }, { pending: 0, listed: 30, held: 60 })
  })

  test('of a crowd at once no fewer than the limit get in, and nobody after it', async t => {
    const stores = await (await place(t)).instances(3, { holds: rules(limit(30)) })
    const at = (i: number) => stores[i % stores.length]!
    const first = await Promise.all(crowd(0, 100).map((each, i) => at(i).admit(each)))
    assert.ok(counted(first)['listed now']! >= 30)
    assert.deepEqual(counted(await Promise.all(crowd(100, 30).map((each, i) => at(i).admit(each)))), { 'held now': 30 })
  })

  for (const provider of [null, 'loops']) {
    test(`${provider ? 'with' : 'without'} a provider, who is held is still held when it comes again, has no event, and reaches nobody`, async t => {
      const here = await place(t)
      const store = await here.open({ holds: rules(limit(0)), provider, destinations: ['webhook'] })
      assert.deepEqual(await store.admit(visitor(1)), { is: 'held now', reason: 'above-limit' })
      assert.deepEqual(await store.admit(visitor(1)), { is: 'still held' })
      for (const destination of ['webhook', 'loops']) assert.deepEqual(await store.claim(destination, 10), [])
      assert.deepEqual(
        (await here.sql('select state, reason, event_name from contact')).map(row => ({ ...row })),
        [{ state: 'held', reason: 'above-limit', event_name: null }],
      )
    })
  }

  test('what looks like a bomb is held, each for its reason', async t => {
    const here = await place(t)
    const store = await here.open({ holds: rules({ suspicious: true }) })
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
    const rows = await here.sql('select email, reason from contact order by number')
    assert.deepEqual(
      rows.map(row => [row.email, row.reason]),
      signups.map(([{ email }, reason]) => [email, reason]),
    )
  })

  test('of 50 addresses with one proof, all at once at as many instances as there may be, one gets in', async t => {
    const here = await place(t)
    const stores = await here.instances(2, { holds: rules() })
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
    const stores = await here.instances(3)
    const values = await Promise.all(stores.map(store => store.secret('challenge')))
    assert.match(values[0]!, /^[0-9a-f]{64}$/)
    assert.deepEqual(new Set(values).size, 1)
    assert.notEqual(await stores[0].secret('another'), values[0])
    await Promise.all(stores.map(({ close }) => close()))
    const store = await here.open()
    assert.equal(await store.secret('challenge'), values[0])
  })
})
