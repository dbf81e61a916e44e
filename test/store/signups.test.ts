import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from '../../src/store/database.ts'
import { until } from '../harness/program.ts'
import { forEachEngine, idOf, signup, stored, uuidV7 } from './place.ts'

forEachEngine('signups', place => {
  test('of 400 addresses sent 8 times each, in any case, each is listed once; close completes what was accepted', async t => {
    const here = await place(t)
    const store = await here.open()
    const first = Array.from({ length: 400 }, (_, i) => `Visitor-${i}@example.com`)
    const spelled = (round: number) => (email: string, i: number) =>
      round === 0 ? email : (i + round) % 2 ? email.toUpperCase() : email.toLowerCase()
    const crowd = Array.from({ length: 8 }, (_, round) => first.map(spelled(round))).flat()
    const accepted = crowd.map((email, i) => store.admit(signup(`Sent ${i}`, email)))
    const closed = store.close()
    await assert.rejects(store.admit(signup('Late', 'late@example.com')), StoreUnavailable)
    const ids = (await Promise.all(accepted)).map(idOf).filter(id => id !== '')
    await closed
    assert.ok(ids.length === 400 && ids.every(id => uuidV7.test(id)))
    const contacts = await stored(here)
    assert.deepEqual(contacts.map(({ id }) => id).sort(), ids.sort())
    const lower = (emails: readonly string[]) => emails.map(email => email.toLowerCase()).sort()
    assert.deepEqual(lower(contacts.map(({ email }) => email)), lower(first))
    assert.ok(contacts.every(({ events }) => events === 1))

    const again = await here.open()
    const answers = await Promise.all(first.map(email => again.admit(signup('Visitor', email.toUpperCase()))))
    assert.ok(answers.every(({ is }) => is === 'already listed'))
  })

  test('in a batch each contact keeps its own name, address and source as they were; no source where none is kept', async t => {
    const here = await place(t)
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
    const visitors = names.map((name, i) => ({
      ...signup(name, i === 0 ? longest : `!#$%&'*+/=?^_\`{|}~-${i}@example.com`),
      source: i % 2 === 0 ? undefined : { ref: `"${i}" \\ '🚀' ü , {} null` },
    }))
    for (const trackSources of [true, false]) {
      const store = await here.open({ trackSources, destinations: ['webhook'] })
      await Promise.all(visitors.map(each => store.admit(each)))
      assert.deepEqual(
        (await store.claim('webhook', 9)).map(({ contact: { name, email, source } }) => ({ name, email, source })),
        visitors.map(({ name, email, source }) => ({ name, email, source: trackSources ? source : undefined })),
      )
      await store.close()
      await here.sql('delete from contact')
    }
  })

  test('the tables refuse a second contact of an address, and a second delivery of its event', async t => {
    const here = await place(t)
    const { sql } = here
    const store = await here.open({ destinations: ['webhook'] })
    await store.admit(signup('Ada', 'ada@example.com'))
    for (const [table, columns] of [
      ['contact', 'id, name, email, email_key, state, created_at'],
      ['delivery', 'contact, destination, kind, state, attempts, doubt, due_at'],
    ]) {
      await assert.rejects(sql(`insert into ${table} (${columns}) select ${columns} from ${table}`), /unique/i)
    }
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
        sleep(1_000, false),
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
})
