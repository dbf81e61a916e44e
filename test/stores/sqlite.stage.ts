import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type SqliteStoreOptions, sqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { temporaryFolder } from '../harness/folder.ts'

/** A store on a file of a test's own, closed once: by the test, or after it. */
export async function openStore(t: TestContext, rest: Partial<SqliteStoreOptions> = {}) {
  const path = rest.path ?? join(temporaryFolder(t), 'waitlist.db')
  const store = await sqliteStore({ eventName: 'waitlist.joined', minimumFree: 0, ...rest, path })
  let closed: Promise<void> | undefined
  const close = () => (closed ??= store.close())
  t.after(close)
  return { store: { ...store, close }, path }
}

/** Whether the store has ended by itself. */
export const hasFailed = (store: Store): Promise<boolean> =>
  Promise.race([store.failure.then(() => true), new Promise<boolean>(resolve => setTimeout(resolve, 50, false))])
