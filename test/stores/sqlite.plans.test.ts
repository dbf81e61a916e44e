import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { openSqliteFile } from '../../src/stores/sqlite/file.ts'
import { announcing, steps } from '../../src/stores/sqlite/steps.ts'
import { temporaryFolder } from '../harness/folder.ts'

/** Reads rows in the order of an index and stops at the limit: it passes over what is leased, and that is little. */
const bounded = 'SCAN registration USING INDEX registration_due'

describe('with a million rows', () => {
  test('no step reads a whole table, nor sorts what it reads', t => {
    const file = openSqliteFile({ path: join(temporaryFolder(t), 'waitlist.db') })
    t.after(() => file.close())
    const statements: string[] = []
    const listening = {
      prepare(sql: string) {
        statements.push(sql)
        return file.database.prepare(sql)
      },
    } as DatabaseSync
    steps(listening, announcing(listening, 'waitlist.joined', ['webhook']))
    assert.ok(statements.length > 10)
    for (const sql of statements) {
      const plan = file.database.prepare(`explain query plan ${sql}`).all() as unknown as { detail: string }[]
      for (const { detail } of plan) {
        assert.ok(detail === bounded || !/^SCAN|TEMP B-TREE/.test(detail), `${sql}\n${detail}`)
      }
    }
    const scans = statements.filter(sql => /token is null order by due_at limit \?$/.test(sql))
    assert.equal(scans.length, 1, 'the only scan has a limit')
  })
})
