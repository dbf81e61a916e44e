import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { pendingNow, signup } from '../contracts/store.place.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'

const contactsOnly = new URL('../../src/stores/migrations/sqlite/0001-contacts.sql', import.meta.url)

/** A file as the first release left it: version 1, with contacts that are listed. */
function firstRelease(path: string, emails: readonly string[]): void {
  withDatabase(path, database => {
    database.exec(`pragma journal_mode = wal; begin; ${readFileSync(contactsOnly, 'utf8')};
      pragma application_id = ${0x77616974}; pragma user_version = 1; commit`)
    const contact = database.prepare("insert into contact values (?, ?, 'Visitor', ?, ?, 'listed', 1767225600000)")
    const event = database.prepare("insert into event values (?, 'waitlist.joined', 1767225600000)")
    for (const [i, email] of emails.entries()) {
      const id = `019b76da-a800-7000-8000-${String(i).padStart(12, '0')}`
      contact.run(i + 1, id, email, email.toLowerCase())
      event.run(i + 1)
    }
  })
}

describe('a database of the first release', { timeout: 60_000 }, () => {
  test('is upgraded: who is listed stays, is not announced again, and the new verbs work', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const emails = Array.from({ length: 500 }, (_, i) => `Visitor-${i}@example.com`)
    firstRelease(path, emails)
    const options = { path, eventName: 'waitlist.joined', minimumFree: 0, destinations: ['webhook'] }
    const store = await sqliteStore({ ...options, provider: 'provider' })
    t.after(() => store.close())

    const kept = contactsIn(path)
    assert.deepEqual(
      kept.map(({ email, state, events, deliveries }) => [email, state, events, deliveries]),
      emails.map(email => [email, 'listed', 1, 0]),
    )
    assert.deepEqual(await store.admit(signup('Visitor', emails[7]!.toUpperCase())), { is: 'already listed' })
    assert.deepEqual(await store.begin(kept[7]!.id, 'provider'), { is: 'listed' })
    assert.deepEqual(await store.beginDue('provider', 10, true), [])
    assert.deepEqual(await store.claim('webhook', 10), [])

    const registration = await pendingNow(store)
    assert.equal(await store.conclude(registration, { is: 'created', providerId: 'p-1' }), true)
    const [delivery, ...none] = await store.claim('webhook', 10)
    assert.deepEqual([delivery?.event.contact.email, none], ['ada@example.com', []])
    assert.equal(await store.settle(delivery!, { is: 'delivered' }), true)

    withDatabase(path, database => {
      const first = (sql: string) => Object.values(database.prepare(sql).get() ?? {})[0]
      assert.equal(first('pragma user_version'), 2)
      assert.equal(first('pragma integrity_check'), 'ok')
      assert.equal(first('pragma foreign_key_check'), undefined)
    })
  })

  test('is left as it was when the upgrade cannot be completed', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    firstRelease(path, ['ada@example.com'])
    // The last statement of the upgrade fails: there is an index of this name.
    withDatabase(path, database => database.exec('create index delivery_abandoned on event (created_at)'))
    const before = withDatabase(path, database => database.prepare('select sql from sqlite_schema').all())
    await assert.rejects(sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 }), /delivery_abandoned/)
    withDatabase(path, database => {
      assert.deepEqual(database.prepare('select sql from sqlite_schema').all(), before)
      assert.equal(database.prepare('pragma user_version').get()?.user_version, 1)
    })
  })
})
