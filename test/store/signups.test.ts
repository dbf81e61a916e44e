import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Signup } from '../../src/signup/contact.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import type { Admission } from '../../src/store/signups.ts'
import { until } from '../harness/program.ts'
import { forEachEngine, idOf, signup, stored, uuidV7 } from './place.ts'

const idsOf = (admissions: readonly Admission[]): string[] => admissions.map(idOf).filter(id => id !== '')

forEachEngine('signups', place => {
  test('of 400 addresses sent 8 times each at once, in any case, each is listed once, with one event', async t => {
    const here = await place(t)
    const store = await here.open()
    const first = Array.from({ length: 400 }, (_, i) => `Visitor-${i}@example.com`)
    const spelled = (round: number) => (email: string, i: number) =>
      round === 0 ? email : (i + round) % 2 ? email.toUpperCase() : email.toLowerCase()
    const crowd = Array.from({ length: 8 }, (_, round) => first.map(spelled(round))).flat()
    const answers = await Promise.all(crowd.map((email, i) => store.admit(signup(`Sent ${i}`, email))))
    const ids = idsOf(answers)
    assert.ok(ids.length === 400 && ids.every(id => uuidV7.test(id)))
    const contacts = await stored(here)
    assert.deepEqual(contacts.map(({ id }) => id).sort(), ids.sort())
    const lower = (emails: readonly string[]) => emails.map(email => email.toLowerCase()).sort()
    assert.deepEqual(lower(contacts.map(({ email }) => email)), lower(first))
    assert.ok(contacts.every(({ events }) => events === 1))
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
  })
})
