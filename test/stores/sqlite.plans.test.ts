/** Whatever is asked is found by an index among very many rows that are not asked for. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { stepping } from '../../src/stores/sqlite/outbox.ts'
import { openSqliteFile } from '../../src/stores/sqlite/schema.ts'
import { admitting, adopt } from '../../src/stores/sqlite/signups.ts'
import { sqliteSql } from '../../src/stores/sqlite/sql.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { upkeepOn } from '../../src/stores/upkeep.ts'
import type { HoldRules } from '../../src/waitlist/rules/hold.ts'
import { signup } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'

const surroundings = {
  eventName: 'waitlist.joined',
  destinations: ['webhook'],
  provider: 'provider',
  asks: null,
  trackSources: false,
  holds: null,
}

/** Runs `use` and gives every statement that it prepared on any connection of this thread. */
async function prepared(use: () => unknown): Promise<string[]> {
  const { prepare } = DatabaseSync.prototype
  const statements: string[] = []
  DatabaseSync.prototype.prepare = function (sql, ...rest) {
    statements.push(sql)
    return prepare.call(this, sql, ...rest)
  }
  try {
    await use()
  } finally {
    DatabaseSync.prototype.prepare = prepare
  }
  return statements
}

/** How each part of a statement is found. */
const planOf = (database: DatabaseSync, sql: string): string[] =>
  (database.prepare(`explain query plan ${sql}`).all() as unknown as { detail: string }[]).map(({ detail }) => detail)

const isRead = (sql: string): boolean => /^(?:select|update|delete|insert)/.test(sql) && !sql.includes('sqlite_')

describe('with a million rows', () => {
  test('no step of the service reads a whole table, nor sorts what it reads', async t => {
    const file = openSqliteFile({ path: join(temporaryFolder(t), 'waitlist.db') })
    t.after(() => file.close())
    // One contact, so that there is something to delete.
    file.database.exec(
      "insert into contact (id, name, email, email_key, state, created_at) values (hex(randomblob(18)), 'Ada', 'a@gmail.com', 'a@gmail.com', 'listed', 0);" +
        "insert into delivery (contact, destination, state, due_at, settled_at) values (1, 'webhook', 'delivered', 0, 0)",
    )
    for (const provider of ['provider', null]) {
      const statements = await prepared(async () => {
        stepping(file.database, { ...surroundings, provider })
        const upkeep = upkeepOn(sqliteSql(file.database), surroundings, () => new Date())
        const { prune, secret, confirm, expire } = upkeep
        assert.equal(await prune(0, 10), provider === null ? 0 : 1)
        await secret('check')
        assert.equal(await confirm({ id: 'nobody', email: 'a@gmail.com' }), null)
        assert.equal(await expire(0, 10), 0)
        admitting(file.database, { ...surroundings, provider, asks: 'mail' })
        admitting(file.database, { ...surroundings, provider })
        admitting(file.database, { ...surroundings, provider, trackSources: true })
        admitting(file.database, {
          ...surroundings,
          provider,
          holds: { above: 10, window: 60_000, suspicious: true },
        })
      })
      assert.ok(statements.length > 10)
      for (const sql of statements) {
        for (const detail of planOf(file.database, sql)) {
          // Without a provider it is asked once, at the opening, whether anybody is pending.
          const one = sql.startsWith('select 1 from contact') && detail.includes('USING COVERING INDEX contact_pending')
          // The numbers of a digest, and the highest numbers: a row for each table.
          const given = /^SCAN (?:json_each VIRTUAL TABLE|CONSTANT ROW|sqlite_sequence)/.test(detail)
          assert.ok(one || given || !/^SCAN|TEMP B-TREE/.test(detail), `${sql}\n${detail}`)
        }
      }
    }
  })

  test('where nobody is held, signups and deliveries are stored by statements that know nothing of it', async t => {
    const file = openSqliteFile({ path: join(temporaryFolder(t), 'waitlist.db') })
    t.after(() => file.close())
    const of = (holds: HoldRules | null) => prepared(() => admitting(file.database, { ...surroundings, holds }))
    const gate = /\b(?:spent|arrival|reason)\b/
    const [off, on] = [await of(null), await of({ above: null, window: 60_000, suspicious: false })]
    assert.deepEqual(
      off.filter(sql => gate.test(sql)),
      [],
    )
    assert.ok(off.length > 3 && on.filter(sql => gate.test(sql)).length > 3)
  })

  test('a limit that was lowered, and arrivals that are over, hold up no signup', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const open = () =>
      sqliteStore({ path, eventName: 'waitlist.joined', holds: { above: 100, window: 60_000, suspicious: true } })
    await (await open()).close()
    const database = new DatabaseSync(path)
    const numbers = 'with recursive n(i) as (select 0 union all select i + 1 from n where i < 199999)'
    database.exec(`${numbers} insert into arrival (number, at) select i, i from n`)
    database.close()
    const store = await open()
    t.after(() => store.close())
    // Who waits for five seconds is refused.
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => store.admit(signup('Visitor', `v${i}@gmail.com`))),
    )
    assert.equal(answers.filter(({ is }) => is === 'listed now').length, 100)
  })

  test('the opening reads those who are pending, and no others', async t => {
    const file = openSqliteFile({ path: join(temporaryFolder(t), 'waitlist.db') })
    t.after(() => file.close())
    const [sql, ...none] = await prepared(() => adopt(file.database, 'provider', 0))
    assert.deepEqual(none, [])
    assert.match(planOf(file.database, sql!).join(), /^S[A-Z]+ contact USING COVERING INDEX contact_pending$/)
  })

  test('the lists of an operator, a person and a replay are read by an index', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const file = openSqliteFile({ path })
    t.after(() => file.close())
    const { deliveries, delivery, replay, contacts, addedLast, person } = sqliteOperator(path)
    const statements = await prepared(async () => {
      for (const state of [undefined, 'waiting', 'delivered', 'abandoned'] as const) {
        for (const destination of [undefined, 'webhook']) await deliveries({ state, destination, limit: 50 })
      }
      await delivery(1)
      await Array.fromAsync(await contacts())
      await addedLast({ state: 'pending', search: 'ada' }, 50)
      await person('ada@example.com')
      await replay({ numbers: [1] })
      await replay({ abandoned: true })
      await replay({ abandoned: true, destination: 'webhook' })
    })
    const reads = statements.filter(isRead)
    assert.ok(reads.length > 10)
    for (const sql of reads) {
      for (const detail of planOf(file.database, sql)) {
        // The newest come first and a limit ends it: that is the order of the table, or of an index for one state.
        const bounded =
          /order by delivery\.number desc limit \?\d$/.test(sql) &&
          /^SCAN delivery(?: USING INDEX delivery_\w+)?$/.test(detail)
        // Those that wait, by when they are due; and the few of one person.
        const sorted = /state = 'waiting'|where email_key = \?1/.test(sql) && detail === 'USE TEMP B-TREE FOR ORDER BY'
        assert.ok(bounded || sorted || !/^SCAN (?:contact|delivery)$|TEMP B-TREE/.test(detail), `${sql}\n${detail}`)
      }
    }
  })
})

test('a known address is no write: the log does not grow, so nothing is synced', async t => {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', destinations: ['webhook'] })
  t.after(() => store.close())
  const ada = signup('Ada Lovelace', 'ada@example.com')
  assert.equal((await store.admit(ada)).is, 'listed now')
  const { size, mtimeNs } = statSync(`${path}-wal`, { bigint: true })
  for (let i = 0; i < 10; i++) assert.equal((await store.admit(ada)).is, 'already listed')
  const after = statSync(`${path}-wal`, { bigint: true })
  assert.deepEqual([after.size, after.mtimeNs], [size, mtimeNs])
})
