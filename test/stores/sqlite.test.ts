import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.place.ts'
import { storeContract } from '../contracts/store.ts'
import { contactsIn, sqlOn } from '../harness/database.ts'
import { quickFolder } from '../waitlist/scene.ts'
import { openStore } from './sqlite.stage.ts'

storeContract('SQLite in a file', async t => {
  const path = join(quickFolder(t), 'waitlist.db')
  return {
    open: options => sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0, ...options }),
    probe: async () => contactsIn(path),
    sql: sqlOn(path),
    async hold() {
      const other = new DatabaseSync(path)
      other.exec('begin immediate')
      return async () => other.close()
    },
  }
})

test('a store that is closed while it counts leaves no log behind', async t => {
  const { store, path } = await openStore(t)
  await store.admit(signup('Ada', 'ada@example.com'))
  const [count, counts] = [store.countListed(), store.counts()]
  await store.close()
  assert.equal(await count, 1)
  assert.equal((await counts).contacts.listed, 1)
  assert.equal(existsSync(`${path}-wal`), false)
})
