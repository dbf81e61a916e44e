import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { JoinedEvent } from '../../src/waitlist/contact.ts'
import { deliveries } from '../../src/waitlist/deliver.ts'
import type { Destination, Told } from '../../src/waitlist/ports.ts'
import { signup } from '../contracts/store.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { keptLog } from './scene.ts'

/** A delivery as it is stored. */
export interface Row {
  readonly state: string
  readonly attempts: number
  readonly doubt: number
  readonly due_at: number
  readonly why: string | null
}

/** The real store with two destinations, without a provider, so that a signup gives an event at once; a stepped clock. */
export async function outbox(t: TestContext) {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const clock = { now: Date.parse('2026-11-21T12:00:00Z') }
  const store = await sqliteStore({
    ...{ path, eventName: 'waitlist.joined', destinations: ['webhook', 'crm'], clock: () => clock.now },
  })
  t.after(() => store.close())
  const { log, lines } = keptLog()
  const told: { readonly id: string; readonly to: string; readonly at: number }[] = []

  /** The loop to one destination, which says what `answer` does. */
  function to(answer: (event: JoinedEvent) => Told | Promise<Told>, parts: Partial<Destination> = {}, other = store) {
    const destination: Destination = {
      ...{ name: 'webhook', repeatable: Number.POSITIVE_INFINITY, timeout: 20_000, concurrency: 4 },
      async deliver(event) {
        told.push({ id: event.id, to: destination.name, at: clock.now })
        return answer(event)
      },
      ...parts,
    }
    const loop = deliveries({ store: other, destination, log, clock: () => clock.now, random: () => 0.5 })
    t.after(() => loop.stop(0))
    return loop
  }
  const rows = (destination = 'webhook') =>
    withDatabase(path, database =>
      database
        .prepare('select state, attempts, doubt, due_at, why from delivery where destination = ? order by number')
        .all(destination),
    ) as unknown as Row[]
  let visitors = 0
  const joins = () => store.admit(signup('Ada Lovelace', `visitor-${visitors++}@example.com`))
  return { store, clock, told, lines, to, rows, joins }
}
