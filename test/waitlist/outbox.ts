import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { events } from '../../src/waitlist/delivery/events.ts'
import type { DeliveryResult, Destination } from '../../src/waitlist/ports/destination.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import type { JoinedEvent } from '../../src/waitlist/rules/contact.ts'
import { signup } from '../contracts/store.place.ts'
import { withDatabase } from '../harness/database.ts'
import { keptLog } from './log.ts'
import { quickFolder } from './scene.ts'

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
  const path = join(quickFolder(t), 'waitlist.db')
  /** `now` only grows, for this process; what is on the wall is ahead of it by `ahead`. */
  const clock = { now: Date.parse('2026-11-21T12:00:00Z'), ahead: 0 }
  const wall = () => clock.now + clock.ahead
  const store = await sqliteStore({
    path,
    eventName: 'waitlist.joined',
    destinations: ['webhook', 'crm'],
    clock: wall,
  })
  t.after(() => store.close())
  const { log, lines } = keptLog()
  const told: { readonly id: string; readonly to: string; readonly at: number }[] = []

  /** The loop to one destination, which says what `answer` does. */
  function to(
    answer: (event: JoinedEvent, mayBegin: () => boolean) => DeliveryResult | Promise<DeliveryResult>,
    parts: Partial<Destination> = {},
    other: Pick<Store, 'claim' | 'settle'> = store,
    now = wall,
  ) {
    const destination: Destination = {
      name: 'webhook',
      repeatable: Number.POSITIVE_INFINITY,
      timeout: 20_000,
      concurrency: 4,
      async deliver(event, _, mayBegin = () => true) {
        told.push({ id: event.id, to: destination.name, at: clock.now })
        return answer(event, mayBegin)
      },
      ...parts,
    }
    const { loop } = events({
      store: other,
      destination,
      log,
      announce() {
        throw new Error('a delivery of an event gives birth to none')
      },
      now,
      clock: () => clock.now,
      random: () => 0.5,
    })
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

  /** Steps the clock by this much at a time; at each step the loop does all that it finds. */
  async function pass(seconds: number, loop: ReturnType<typeof to>, step = 1): Promise<void> {
    for (let i = 0; i < seconds; i += step) {
      clock.now += step * 1_000
      while ((await loop.once()) > 0);
    }
  }
  return { store, clock, told, lines, to, rows, joins, pass }
}
