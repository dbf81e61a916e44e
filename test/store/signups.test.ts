import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Signup } from '../../src/signup/contact.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import type { Admission } from '../../src/store/signups.ts'
import { until } from '../harness/program.ts'
import { forEachEngine, idOf, signup, stored, uuidV7 } from './place.ts'

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

forEachEngine('signups', place => {
  test('a new address is listed now under a UUIDv7, with its event; a known one is already listed', async t => {
    const here = await place(t)
    const store = await here.open()
    const first = await store.admit(signup('Ada', 'ada@example.com'))
    assert.match(idOf(first), uuidV7)
    assert.deepEqual(await store.admit(signup('Ada', 'ada@example.com')), { is: 'already listed' })
    const expected = { name: 'Ada', email: 'ada@example.com', state: 'listed', providerId: null }
    assert.deepEqual(await stored(here), [{ id: idOf(first), ...expected, events: 1, deliveries: 0 }])
  })

  test('those who share a batch are numbered as they came, whatever their addresses', async t => {
    const here = await place(t)
    const store = await here.open()
    const emails = [...'dbeac'].map(letter => `${letter}@example.com`)
    await Promise.all(emails.map(email => store.admit(signup('Visitor', email))))
    const rows = await here.sql('select email from contact order by number')
    assert.deepEqual(
      rows.map(({ email }) => email),
      emails,
    )
  })

  test('of 400 addresses sent 8 times each, all at once and mixed, each is listed now once', async t => {
    const here = await place(t)
    const store = await here.open()
    const addresses = Array.from({ length: 400 }, (_, i) => `visitor-${i}@example.com`)
    const crowd = shuffled(addresses.flatMap(email => Array.from({ length: 8 }, (_, i) => spelled(email, i * 31))))
    const answers = await Promise.all(crowd.map(email => store.admit(signup('Visitor', email))))
    const now = crowd.filter((_, i) => answers[i]!.is === 'listed now').map(email => email.toLowerCase())
    assert.deepEqual(now.sort(), addresses.toSorted())
    assert.equal(new Set(idsOf(answers)).size, 400)
    assert.ok(idsOf(answers).every(id => uuidV7.test(id)))
    const contacts = await stored(here)
    assert.deepEqual(contacts.map(({ id }) => id).sort(), idsOf(answers).sort())
    assert.ok(contacts.every(({ events }) => events === 1))
  })

  test('the name and the spelling of the first stay, whether the second comes later or at the same time', async t => {
    const here = await place(t)
    const store = await here.open()
    await Promise.all([
      store.admit(signup('First', 'One@Example.com')),
      store.admit(signup('Second', 'one@example.com')),
      store.admit(signup('Third', 'ONE@EXAMPLE.COM')),
    ])
    await store.admit(signup('Fourth', 'onE@example.com'))
    const kept = (await stored(here)).map(({ name, email, events }) => ({ name, email, events }))
    assert.deepEqual(kept, [{ name: 'First', email: 'One@Example.com', events: 1 }])
  })

  test('every name and address that the rules allow is kept as it is', async t => {
    const here = await place(t)
    const store = await here.open()
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
    const contacts = await stored(here)
    assert.deepEqual(
      contacts.map(({ name, email }) => [name, email]),
      names.map((text, i) => [text, emails[i]]),
    )
  })

  test('the tables refuse a second contact of an address, and a second delivery of its event', async t => {
    const here = await place(t)
    const { sql } = here
    const store = await here.open({ destinations: ['webhook'] })
    await store.admit(signup('Ada', 'ada@example.com'))
    const id = `${'f'.repeat(8)}-ffff-7fff-bfff-${'f'.repeat(12)}`
    const columns = 'name, email, email_key, state, created_at'
    await assert.rejects(sql(`insert into contact (id, ${columns}) select '${id}', ${columns} from contact`), /unique/i)
    await assert.rejects(
      sql(
        'insert into delivery (contact, destination, kind, state, attempts, doubt, due_at)' +
          ' select contact, destination, kind, state, attempts, doubt, due_at from delivery',
      ),
      /unique/i,
    )
  })

  test('a check tells, within two seconds and though nobody signs up, whether one could be stored', async t => {
    const here = await place(t)
    const store = await here.open()
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
    // A check is good for one second.
    await sleep(1_100)
    assert.equal(await isAble(), false)
    await release()
    await until(isAble)
    assert.deepEqual(await stored(here), [], 'nothing of it is left')
    assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
  })

  test('in a batch each contact gets its own source as it was, or none; and none where they are not kept', async t => {
    const here = await place(t)
    const sources = Array.from({ length: 300 }, (_, i) => [undefined, { ref: `"${i}" \\ '🚀' ü , {} null` }][i % 2])
    const sourceOf = (email: string) => sources[Number(email.match(/\d+/)![0])]
    const visitors = sources.map((source, i) => ({ ...signup('Visitor', `visitor-${i}@example.com`), source }))
    const store = await here.open({ trackSources: true, destinations: ['webhook'] })
    await Promise.all(visitors.map(each => store.admit(each as Signup)))
    for (const { contact } of await store.claim('webhook', 300))
      assert.deepEqual(contact.source, sourceOf(contact.email), contact.email)
    await store.close()
    await here.sql('delete from contact')
    const other = await here.open({ destinations: ['webhook'] })
    await other.admit(visitors[1] as Signup)
    assert.deepEqual(
      (await other.claim('webhook', 9)).map(({ contact }) => contact.source),
      [undefined],
    )
  })

  test('close completes what was accepted and refuses what comes later; opened again it finds every contact', async t => {
    const here = await place(t)
    const store = await here.open()
    const emails = Array.from({ length: 1_000 }, (_, i) => `v${i}@example.com`)
    const accepted = emails.map(email => store.admit(signup('Visitor', email)))
    const closed = store.close()
    await assert.rejects(store.admit(signup('Late', 'late@example.com')), StoreUnavailable)
    const ids = idsOf(await Promise.all(accepted))
    assert.equal(new Set(ids).size, 1_000)
    await closed
    await assert.rejects(store.admit(signup('Late', 'later@example.com')), StoreUnavailable)
    const contacts = await stored(here)
    assert.deepEqual(contacts.map(({ id }) => id).sort(), ids.sort())
    assert.ok(contacts.every(({ events }) => events === 1))

    const after = await here.open()
    const again = await Promise.all(emails.map(email => after.admit(signup('Visitor', email.toUpperCase()))))
    assert.ok(again.every(({ is }) => is === 'already listed'))
    assert.match(idOf(await after.admit(signup('New', 'new@example.com'))), uuidV7)
  })
})
