import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { sourceParameters } from '../../src/waitlist/rules/contact.ts'
import { parseSignup, parseSource } from '../../src/waitlist/rules/signup.ts'
import { type MakePlace, only, opened, type Place, signup } from './store.place.ts'

const from = (query: string, email = 'ada@example.com') => {
  const parsed = parseSignup({ name: 'Ada', email }, parseSource(query))
  assert.ok(!('problem' in parsed))
  return parsed
}

const full = sourceParameters.map(name => `${name}=${encodeURIComponent(`"${name}" \\ '🚀' ü , {} null`)}`).join('&')
const longest = sourceParameters.map(name => `${name}=${encodeURIComponent('🚀'.repeat(100))}`).join('&')

/** What is stored of each contact, as text, in the order in which they joined; null: nobody else can read it. */
async function sourcesIn({ sql }: Place, t: TestContext): Promise<readonly (string | null)[] | null> {
  if (sql === undefined) {
    t.diagnostic('what is stored was not looked at')
    return null
  }
  const rows = await sql('select cast(source as text) as source from contact order by number')
  return rows.map(({ source }) => source as string | null)
}

const tracking = { trackSources: true, destinations: ['webhook'] } as const
const claimed = async (store: Store) => (await only(store)).contact.source

/** What a store promises about where signups come from. */
export function sourceContract(name: string, place: MakePlace): void {
  describe(`sources, kept by ${name}`, () => {
    test('a source comes back as it was', async t => {
      const here = await place(t)
      const store = await opened(here, t, tracking)
      const queries = ['ref=ada', full, longest]
      for (const [i, query] of queries.entries()) {
        await store.admit(from(query, `visitor-${i}@example.com`))
        assert.deepEqual(await claimed(store), parseSource(query))
      }
      const rows = await sourcesIn(here, t)
      if (rows !== null)
        assert.deepEqual(
          rows,
          queries.map(query => JSON.stringify(parseSource(query))),
        )
    })

    test('in a batch each contact gets its own source, or none', async t => {
      const here = await place(t)
      const store = await opened(here, t, tracking)
      const queries = Array.from({ length: 300 }, (_, i) =>
        i % 3 === 0 ? '' : `ref=friend-${i}&utm_term=${'%0A'.repeat(i % 2)}`,
      )
      await Promise.all(queries.map((query, i) => store.admit(from(query, `visitor-${i}@example.com`))))
      const contacts = (await store.claim('webhook', 300)).map(({ contact }) => contact)
      assert.equal(contacts.length, 300)
      for (const { email, source } of contacts) {
        const i = Number(email.match(/\d+/)![0])
        assert.deepEqual(source, i % 3 === 0 ? undefined : { ref: `friend-${i}` }, email)
      }
    })

    test('the source of the first signup stays, whether the second comes later or at the same time', async t => {
      const here = await place(t)
      const store = await opened(here, t, tracking)
      await Promise.all(['ref=first', 'ref=second', ''].map(query => store.admit(from(query))))
      await store.admit(from('ref=third', 'ADA@example.com'))
      await Promise.all(['', 'ref=late'].map(query => store.admit(from(query, 'grace@example.com'))))
      await store.admit(from('ref=later', 'grace@example.com'))
      const due = await store.claim('webhook', 10)
      const kept = due.map(({ contact }) => [contact.email, contact.source]).sort()
      assert.deepEqual(kept, [
        ['ada@example.com', { ref: 'first' }],
        ['grace@example.com', undefined],
      ])
    })

    test('a pending contact is handed over with its source, at once and later, and keeps it when it is listed', async t => {
      const store = await opened(await place(t), t, { ...tracking, provider: 'provider' })
      const admission = await store.admit(from('ref=ada'))
      assert.ok(admission.is === 'pending now')
      assert.deepEqual(admission.delivery.contact.source, { ref: 'ada' })
      assert.equal((await store.admit(from('ref=eve'))).is, 'still pending')
      await store.settle(admission.delivery, { is: 'waiting', wait: 0, doubt: false, why: 'no connection' })
      const again = await only(store, 'provider')
      assert.deepEqual(again.contact.source, { ref: 'ada' })
      await store.settle(again, { is: 'listed', joined: true })
      assert.deepEqual(await claimed(store), { ref: 'ada' })
    })

    test('unless sources are kept, nothing of one is stored', async t => {
      const here = await place(t)
      const store = await opened(here, t, { destinations: ['webhook'] })
      await store.admit(from(full))
      await store.admit(signup('Grace', 'grace@example.com'))
      const rows = await sourcesIn(here, t)
      if (rows !== null) assert.deepEqual(rows, [null, null])
      for (const { contact } of await store.claim('webhook', 10)) assert.equal(contact.source, undefined)
    })
  })
}
