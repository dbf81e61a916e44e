import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { HoldRules } from '../../src/holds/rules.ts'
import { discard, type HeldFilter } from '../../src/holds/store.ts'
import type { Proof, Signup } from '../../src/signup/contact.ts'
import type { SignupTargets } from '../../src/store/activate.ts'
import type { Database } from '../../src/store/database.ts'
import type { Admission } from '../../src/store/signups.ts'
import type { Store } from '../../src/store/store.ts'
import { emailsOf, forEachEngine, type Place, signup } from '../store/place.ts'

const HOUR = 3_600_000
const rules = (given: Partial<HoldRules> = {}): HoldRules => ({ above: null, suspicious: false, ...given })
const limit = (count: number) => ({ above: { count, time: HOUR } })
const visitor = (i: number) => signup('Visitor', `visitor-${i}@example.com`)
const crowd = (from: number, count: number) => Array.from({ length: count }, (_, i) => visitor(from + i))
const emails = (count: number) => crowd(0, count).map(({ email }) => email)
const all = (store: Store, signups: readonly Signup[]) => Promise.all(signups.map(each => store.admit(each)))
const counted = (admissions: readonly Admission[]) => {
  const counts: Record<string, number> = {}
  for (const { is } of admissions) counts[is] = (counts[is] ?? 0) + 1
  return counts
}
const proof = (nonce: string, expires = new Date(Date.now() + 600_000)): Proof => ({ nonce, expires })

forEachEngine('holding', place => {
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
    // Who is held counts towards nothing.
    await here.sql("update contact set created_at = created_at - $1 where state <> 'held'", [HOUR])
    assert.deepEqual(counted(await all(stores[0], crowd(100, 50))), { 'listed now': 30, 'held now': 20 })
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

  const suspects: readonly (readonly [Signup, string | null])[] = [
    [signup('Ada', 'ada.lovelace@gmail.com'), null],
    [signup('Ada', 'adalovelace+1@gmail.com'), 'same-mailbox'],
    [signup('Ada', 'A.DA.lovelace@googlemail.com'), 'same-mailbox'],
    [signup('Ada', 'ada.lovelace@outlook.com'), null],
    [signup('Ada', 'adalovelace@outlook.com'), null],
    [signup('Ada', 'adalovelace+x@outlook.com'), 'same-mailbox'],
    [signup('Win at www.example.net', 'eve@example.com'), 'link-in-name'],
    [signup('J.R. Smith', 'smith@example.com'), null],
    [{ ...signup('Bob', 'bob@example.org'), unverified: true }, 'unverified'],
    // Of several reasons the worst: who is released after an outage of the verifier has no link.
    [{ ...signup('evil.com', 'adalovelace+2@gmail.com'), unverified: true }, 'link-in-name'],
    [{ ...signup('Ada', 'adalovelace+3@gmail.com'), unverified: true }, 'same-mailbox'],
  ]
  test('what looks like a bomb is held, each for its reason, one after the other and at once', async t => {
    for (const atOnce of [false, true]) {
      const here = await place(t)
      const store = await here.open({ holds: rules({ suspicious: true, ...limit(20) }) })
      const signups = suspects.map(([each]) => each)
      if (atOnce) await all(store, signups)
      else for (const each of signups) await store.admit(each)
      const rows = await here.sql('select email, reason from contact order by number')
      assert.deepEqual(
        Object.fromEntries(rows.map(row => [row.email, row.reason])),
        Object.fromEntries(suspects.map(([{ email }, reason]) => [email, reason])),
      )
    }
  })

  test('what it looks like matters only where it is asked for; the verifier that was away does always', async t => {
    const store = await (await place(t)).open({ holds: rules() })
    const answers = await all(
      store,
      suspects.map(([each]) => each),
    )
    assert.deepEqual(counted(answers), { 'listed now': suspects.length - 3, 'held now': 3 })
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

/** Everybody is held. */
const holds = rules(limit(0))
const destinations = ['webhook', 'crm']
const targets: SignupTargets = { eventName: 'waitlist.joined', provider: null, destinations, confirmation: null }

async function hold(store: Store, count: number): Promise<void> {
  for (const each of crowd(0, count)) {
    assert.deepEqual(await store.admit(each), { is: 'held now', reason: 'above-limit' })
  }
}

/** The first one first. */
const heldIn = async ({ operator }: Place) => emailsIn(await Array.fromAsync(operator.contacts({ state: 'held' })))
const emailsIn = (contacts: readonly { email: string }[]) => contacts.map(({ email }) => email)

forEachEngine('held contacts', place => {
  test('without a provider, who is released is listed like a new signup: with an event, to all, in order', async t => {
    const { operator, open } = await place(t)
    const store = await open({ holds, destinations })
    await hold(store, 5)
    assert.deepEqual(await operator.release({}, targets), { done: 5, missing: [] })
    for (const destination of destinations) {
      const claimed = await store.claim(destination, 10)
      assert.deepEqual(emailsOf(claimed), emails(5))
      for (const { contact, attempts, doubt } of claimed) {
        assert.deepEqual([contact.state, contact.reason, attempts, doubt], ['listed', undefined, 0, false])
        assert.equal(contact.event?.name, 'waitlist.joined')
        assert.ok(Math.abs(Date.now() - contact.event.at.getTime()) < 60_000)
      }
    }
    assert.deepEqual(await operator.release({}, targets), { done: 0, missing: [] })
    assert.deepEqual(await store.admit(visitor(1)), { is: 'already listed' })
  })

  test('addresses in any spelling, a reason and a time say which; who is not held is named', async t => {
    const here = await place(t)
    const { operator } = here
    await hold(await here.open({ holds }), 6)
    const [early, late] = [new Date('2026-01-01T00:00:00Z'), new Date('2026-01-01T01:00:00Z')]
    await here.sql("update contact set reason = 'same-mailbox' where email like '%-1@%' or email like '%-4@%'")
    await here.sql('update contact set created_at = $1', [late.getTime()])
    await here.sql("update contact set created_at = $1 where email < 'visitor-3'", [early.getTime()])
    const release = (filter: HeldFilter) => operator.release(filter, targets)
    assert.equal((await release({ until: late, reason: 'same-mailbox', addresses: emails(6) })).done, 1)
    const addresses = ['VISITOR-0@Example.com', 'visitor-1@example.com', 'nobody@example.com']
    assert.deepEqual(await release({ addresses }), {
      done: 1,
      missing: [
        { address: 'visitor-1@example.com', state: 'listed' },
        { address: 'nobody@example.com', state: null },
      ],
    })
    assert.deepEqual(await release({ until: late }), { done: 1, missing: [] })
    assert.deepEqual(await operator.discard({ reason: 'same-mailbox' }), { done: 1, missing: [] })
    assert.deepEqual(await heldIn(here), ['visitor-3@example.com', 'visitor-5@example.com'])
    assert.equal((await operator.discard({ reason: 'unverified' })).done, 0)
    assert.equal((await operator.discard({ addresses: [] })).done, 0, 'nobody is not everybody')
  })

  test('who is discarded is gone, but not erased; only the held are touched, not those since it began', async t => {
    const here = await place(t)
    const before = await here.open({ provider: 'provider' })
    await before.admit(signup('Ada', 'ada@example.com'))
    await before.close()
    const store = await here.open({ holds })
    await hold(store, 3)
    let later: Promise<unknown> | undefined
    const { done } = await here.command(database => {
      const transaction: Database['transaction'] = async (...step) => {
        const changed = await database.transaction(...step)
        later ??= store.admit(signup('Visitor', 'later@example.com'))
        await later
        return changed
      }
      return discard({ ...database, transaction }, {})
    })
    assert.equal(done, 3)
    assert.deepEqual(await heldIn(here), ['later@example.com'])
    assert.deepEqual((await here.operator.counts()).contacts.pending, 1)
    await hold(store, 3)
  })

  test('two releases and the signups of the same people at once: each has one event', async t => {
    const here = await place(t)
    const store = await here.open({ holds, destinations: ['webhook'] })
    await all(store, crowd(0, 1_200))
    const order = await heldIn(here)
    const release = () => here.operator.release({}, { ...targets, destinations: ['webhook'] })
    const [one, two, ...answers] = await Promise.all([
      release(),
      nextTurn().then(release),
      ...crowd(0, 1_200).map(each => store.admit(each)),
    ])
    assert.equal(one.done + two.done, 1_200)
    assert.ok(answers.every(({ is }) => is === 'still held' || is === 'already listed'))
    assert.deepEqual(emailsOf(await store.claim('webhook', 2_000)), order)
  })
})
