import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type Admission, type Store, StoreUnavailable } from '../../src/waitlist/ports.ts'
import { parseSignup, type Signup } from '../../src/waitlist/signup.ts'

/** What a probe sees: the contact, and how many events it has. */
export interface StoredContact {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly state: string
  readonly events: number
}

/** A place of a test's own in which a store keeps its contacts. The adapter's test cleans it up after the test. */
export interface Place {
  /** Opens the store. After `close` it is called again to find what was kept. */
  open(): Promise<Store>
  /** All contacts in the order in which they joined, read past the store; or why nobody else can read them. */
  readonly probe: (() => Promise<readonly StoredContact[]>) | { readonly impossible: string }
  /** Why nothing is there any more after `close`, where that is so. */
  readonly forgets?: string
}

export const signup = (name: string, email: string): Signup => {
  const parsed = parseSignup({ name, email })
  assert.ok(!('problem' in parsed), 'problem' in parsed ? parsed.problem : '')
  return parsed
}

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const idOf = (admission: Admission): string => (admission.is === 'listed now' ? admission.contactId : '')
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

/** Closed at the end of the test, unless the test itself has closed it. */
async function opened({ open }: Place, t: TestContext): Promise<Store> {
  const store = await open()
  let closed: Promise<void> | undefined
  const close = () => (closed ??= store.close())
  t.after(close)
  return { ...store, close }
}

/** The promises of `Store` (waitlist/ports.ts). `place` makes an empty one for each test. */
export function storeContract(name: string, place: (test: TestContext) => Promise<Place>): void {
  const stored = async ({ probe }: Place, t: TestContext): Promise<readonly StoredContact[] | null> => {
    if (typeof probe === 'function') return probe()
    t.diagnostic(`what is stored was not looked at: ${probe.impossible}`)
    return null
  }

  describe(`the store contract, kept by ${name}`, () => {
    test('a new address is listed now under a UUIDv7, with its event; a known one is already listed', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      const first = await store.admit(signup('Ada', 'ada@example.com'))
      assert.match(idOf(first), uuidV7)
      assert.deepEqual(await store.admit(signup('Ada', 'ada@example.com')), { is: 'already listed' })
      const contacts = await stored(here, t)
      if (contacts !== null) {
        const expected = { name: 'Ada', email: 'ada@example.com', state: 'listed', events: 1 }
        assert.deepEqual(
          contacts.map(contact => ({ ...contact })),
          [{ id: idOf(first), ...expected }],
        )
      }
    })

    test('of 500 simultaneous signups with one address in many spellings exactly one is listed now', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      const crowd = Array.from({ length: 500 }, (_, i) => signup(`Ada ${i}`, spelled('ada@example.com', i * 7)))
      const answers = await Promise.all(crowd.map(each => store.admit(each)))
      assert.equal(answers.filter(({ is }) => is === 'listed now').length, 1)
      assert.equal(answers.filter(({ is }) => is === 'already listed').length, 499)
      const contacts = await stored(here, t)
      if (contacts !== null) {
        assert.deepEqual(
          contacts.map(({ id, events }) => ({ id, events })),
          [{ id: idsOf(answers)[0], events: 1 }],
        )
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

    test('check resolves on a store that works and changes nothing', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      await store.check()
      await store.admit(signup('Ada', 'ada@example.com'))
      await Promise.all(Array.from({ length: 20 }, () => store.check()))
      assert.equal((await stored(here, t))?.length ?? 1, 1)
    })

    test('close completes what was accepted and refuses what comes later', async t => {
      const here = await place(t)
      const store = await opened(here, t)
      const accepted = Array.from({ length: 1_000 }, (_, i) => store.admit(signup('Visitor', `v${i}@example.com`)))
      const closed = store.close()
      await assert.rejects(store.admit(signup('Late', 'late@example.com')), StoreUnavailable)
      const answers = await Promise.all(accepted)
      assert.equal(new Set(idsOf(answers)).size, 1_000)
      await closed
      await assert.rejects(store.admit(signup('Late', 'later@example.com')), StoreUnavailable)
      const contacts = here.forgets === undefined ? await stored(here, t) : null
      if (contacts !== null) {
        assert.equal(contacts.length, 1_000)
        assert.ok(contacts.every(({ events }) => events === 1))
      }
    })

    test('a check that comes while the store closes is answered, one way or the other', { timeout: 5_000 }, async t => {
      const store = await opened(await place(t), t)
      const closed = store.close()
      const checks: Promise<PromiseSettledResult<void>[]>[] = []
      for (let i = 0; i < 20; i++) {
        checks.push(Promise.allSettled([store.check()]))
        await (i < 10 ? null : new Promise(resolve => setImmediate(resolve)))
      }
      for (const [each] of await Promise.all(checks)) {
        assert.ok(each!.status === 'fulfilled' || each!.reason instanceof StoreUnavailable)
      }
      await closed
    })

    test('check is refused once the store is closed', { timeout: 5_000 }, async t => {
      const store = await opened(await place(t), t)
      await store.close()
      await assert.rejects(store.check(), StoreUnavailable)
    })

    test('a store that is closed in good order reports no failure', async t => {
      const store = await opened(await place(t), t)
      await store.admit(signup('Ada', 'ada@example.com'))
      await store.close()
      assert.equal(await Promise.race([store.failure, new Promise(resolve => setTimeout(resolve, 50, 'none'))]), 'none')
    })

    test('whoever opens it again finds every contact', async t => {
      const here = await place(t)
      if (here.forgets !== undefined) return t.skip(here.forgets)
      const emails = Array.from({ length: 300 }, (_, i) => `v${i}@example.com`)
      const before = await opened(here, t)
      const ids = idsOf(await Promise.all(emails.map(email => before.admit(signup('Visitor', email)))))
      await before.close()

      const after = await opened(here, t)
      const again = await Promise.all(emails.map(email => after.admit(signup('Visitor', email.toUpperCase()))))
      assert.ok(again.every(({ is }) => is === 'already listed'))
      assert.match(idOf(await after.admit(signup('New', 'new@example.com'))), uuidV7)
      const contacts = await stored(here, t)
      if (contacts !== null) {
        assert.deepEqual(
          contacts
            .slice(0, 300)
            .map(({ id }) => id)
            .sort(),
          ids.sort(),
        )
        assert.equal(contacts.length, 301)
      }
    })
  })
}
