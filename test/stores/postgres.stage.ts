import type { TestContext } from 'node:test'
import pg from 'pg'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import type { HoldRules } from '../../src/waitlist/rules/hold.ts'
import type { PostgresDatabases } from '../harness/postgres.ts'
import { messageProxy } from '../harness/postgres-messages.ts'
import { recordingLog } from '../harness/service.ts'

/** A proxy of a test's own, and stores on an empty database, through it or past it. */
export const stagesOn = (server: PostgresDatabases) => async (t: TestContext) => {
  const proxy = await messageProxy(server.port)
  const url = await server.database()
  const stores: Store[] = []
  t.after(async () => {
    await Promise.all(stores.map(store => store.close()))
    await proxy.close()
  })
  const open = async (through: boolean, provider: string | null = null, holds: HoldRules | null = null) => {
    const parts = { eventName: 'waitlist.joined', destinations: ['webhook'], provider, holds, log: recordingLog().log }
    const store = await postgresStore({ url: through ? proxy.through(url) : url, ...parts })
    stores.push(store)
    return store
  }
  return { proxy, url, open }
}

/** Somebody else's session, for as long as the test takes. */
export async function session(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  t.after(() => client.end().catch(() => {}))
  return client
}

/** Milliseconds: of an outage 3 s are waited for, and what was begun then has 1.5 s to end; the rest is for a busy machine. */
export const BOUND = 60_000

/** A store on an empty database, closed after the test. */
export const openedOn =
  (server: PostgresDatabases) =>
  async (t: TestContext, provider: string | null = null) => {
    const url = await server.database()
    const parts = { eventName: 'waitlist.joined', destinations: ['webhook'], provider, log: recordingLog().log }
    const store = await postgresStore({ url, ...parts })
    t.after(() => store.close())
    return { store, url }
  }
