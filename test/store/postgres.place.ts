import type { TestContext } from 'node:test'
import { postgresDatabase } from '../../src/store/postgres/database.ts'
import { openStore, type Store } from '../../src/store/store.ts'
import { recordingLog } from '../harness/log.ts'
import type { PostgresDatabases } from '../harness/postgres.ts'
import { messageProxy } from '../harness/postgres-messages.ts'

/** Opens a store whose events go to a webhook. It is closed after the test, unless the test has closed it. */
export async function storeAt(
  t: Pick<TestContext, 'after'>,
  url: string,
  provider: string | null = null,
  { log } = recordingLog(),
): Promise<Store> {
  const database = await postgresDatabase({ url, log })
  const targets = { eventName: 'waitlist.joined', provider, destinations: ['webhook'], confirmation: null }
  const store = await openStore(database, { targets, trackSources: false, holdReasons: null })
  t.after(store.close)
  return store
}

/** A store on an empty database. */
export async function openedOn(server: PostgresDatabases, t: TestContext, provider: string | null = null) {
  const url = await server.database()
  return { url, store: await storeAt(t, url, provider) }
}

/** A proxy before an empty database, and a store through it. */
export async function proxied(server: PostgresDatabases, t: TestContext, provider: string | null = null) {
  const proxy = await messageProxy(server.port)
  const url = await server.database()
  const store = await storeAt(t, proxy.through(url), provider)
  t.after(proxy.close)
  return { proxy, url, store }
}
