import { join } from 'node:path'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { storeContract } from '../contracts/store.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'

storeContract('SQLite in a file', async t => {
  const path = join(temporaryFolder(t), 'waitlist.db')
  return {
    open: options => sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0, ...options }),
    probe: async () => contactsIn(path),
  }
})

storeContract('SQLite in memory', async () => ({
  open: options => sqliteStore({ path: ':memory:', eventName: 'waitlist.joined', ...options }),
  probe: { impossible: 'the list is inside the thread of the store' },
  forgets: 'what is in memory is gone when the store is closed',
}))
