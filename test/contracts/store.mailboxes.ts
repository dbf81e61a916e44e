import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { instances, type MakePlace, opened, type Place, signup } from './store.place.ts'

const holds = { above: null, window: 3_600_000, suspicious: true }

/** Goes through all contacts. Resolves with how many were filled. */
async function fillAll(store: Store, most: number): Promise<number> {
  let filled = 0
  for (let after: number | null = 0; after !== null; ) {
    const step: Awaited<ReturnType<Store['fillMailboxes']>> = await store.fillMailboxes(after, most)
    assert.ok(step.last === null || step.last > after)
    assert.ok(step.filled <= most)
    filled += step.filled
    after = step.last
  }
  return filled
}

async function mailboxesIn({ sql }: Place, t: TestContext): Promise<Record<string, unknown> | null> {
  if (sql === undefined) {
    t.diagnostic('what is stored was not looked at')
    return null
  }
  const rows = await sql('select email, mailbox from contact')
  return Object.fromEntries(rows.map(({ email, mailbox }) => [email, mailbox]))
}

/** What a store promises about the mailboxes of contacts that it stored before these were watched. */
export function mailboxContract(name: string, place: MakePlace): void {
  describe(`mailboxes of earlier contacts, kept by ${name}`, { timeout: 60_000 }, () => {
    test('they are found some contacts at a time; then further spellings are held, and nothing else is', async t => {
      const here = await place(t)
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const before = await opened(here, t)
      const earlier = [
        'Ada.Lovelace@gmail.com',
        'bob@example.com',
        'cyd+1@me.com',
        'dot@example.com',
        'a.d.a@outlook.com',
      ]
      for (const email of earlier) await before.admit(signup('Early', email))
      await before.close()
      const store = await opened(here, t, { holds, destinations: ['webhook'] })
      // Who comes before it is through gets in.
      assert.equal((await store.admit(signup('Ada', 'adalovelace@gmail.com'))).is, 'listed now')
      assert.equal(await fillAll(store, 2), 3)
      const mailboxes = await mailboxesIn(here, t)
      if (mailboxes !== null) {
        assert.deepEqual(mailboxes, {
          'Ada.Lovelace@gmail.com': 'adalovelace@gmail.com',
          'bob@example.com': null,
          'cyd+1@me.com': 'cyd@icloud.com',
          'dot@example.com': null,
          'a.d.a@outlook.com': 'a.d.a@outlook.com',
          'adalovelace@gmail.com': 'adalovelace@gmail.com',
        })
      }
      assert.equal(await fillAll(store, 2), 0)
      for (const [email, is] of [
        ['a.dalovelace@googlemail.com', 'held now'],
        ['cyd@icloud.com', 'held now'],
        ['a.d.a+2@outlook.com', 'held now'],
        ['ada@outlook.com', 'listed now'],
        ['b.ob@example.com', 'listed now'],
        ['ada.lovelace@gmail.com', 'already listed'],
      ] as const) {
        assert.equal((await store.admit(signup('Late', email))).is, is, email)
      }
      assert.equal(await store.countListed(), 8)
    })

    test('several instances fill at once, among signups and hand-overs: none of them fails, each contact is filled once', async t => {
      const here = await place(t)
      const stores = await instances(here, t, 3, { provider: 'provider' })
      const store = (i: number) => stores[i % stores.length]!
      const crowd = (from: number) => Array.from({ length: 300 }, (_, i) => `v.${from + i}@gmail.com`)
      const join = async (email: string, i: number) => {
        const admission = await store(i).admit(signup('Visitor', email))
        assert.equal(admission.is, 'pending now')
        return (admission as { delivery: Parameters<Store['settle']>[0] }).delivery
      }
      const handOvers = await Promise.all(crowd(0).map(join))
      const filling = stores.map(each => fillAll(each, 7))
      const settled = handOvers
        .toReversed()
        .map((each, i) => store(Math.trunc(i / 9)).settle(each, { is: 'listed', joined: true }))
      const known = crowd(0).map((email, i) => store(i).admit(signup('Again', email.toUpperCase())))
      await Promise.all([...crowd(300).map(join), ...settled, ...known])
      const filled = (await Promise.all(filling)).reduce((sum, each) => sum + each)
      // Those who came after the passes, or were being changed just then.
      const rest = await fillAll(store(0), 100)
      assert.equal(filled + rest, 600)
      const mailboxes = await mailboxesIn(here, t)
      if (mailboxes === null) return
      assert.equal(Object.keys(mailboxes).length, 600)
      for (const [email, mailbox] of Object.entries(mailboxes)) assert.equal(mailbox, email.replace('.', ''))
    })
  })
}
