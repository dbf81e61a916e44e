import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { storeBounds } from '../../../src/stores/batch.ts'
import { replayDeliveries } from '../../../src/stores/sqlite/deliveries.ts'
import { sqliteStore } from '../../../src/stores/sqlite.ts'
import type { Store } from '../../../src/waitlist/ports.ts'
import { RECEIVER } from './receiver.ts'
import { VENDOR } from './vendor.ts'

/** Thousands of histories sync hundreds of thousands of times: in memory, where the system has files there. */
const ROOT = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export interface StoredContact {
  readonly id: string
  readonly state: string
  readonly events: number
  readonly deliveries: number
}

interface Abandoned {
  readonly number: number
  readonly destination: string
  readonly email: string
}

/** A real store in a file, and what is in it, read past the store. Many histories use it, one after the other. */
export interface Place {
  readonly store: () => Store
  /** What is there belongs to earlier histories. */
  turnThePage(): void
  /** Closes the file and opens it again, as a restart does. */
  reopen(): Promise<void>
  contacts(email: string): StoredContact[]
  /** Ids of pending contacts. */
  pending(): { readonly id: string; readonly leased: boolean }[]
  /** Whether some process is, or was, asking the provider about this address, and may be as far as others can tell. */
  isLeased(email: string, now: number): boolean
  /** When the first delivery that waits is due; null: none waits. */
  nextDue(): number | null
  /** Of this history: some of earlier ones were rightly left alone. */
  abandoned(): Abandoned[]
  replay(some: readonly Abandoned[], now: number): void
  /** Everything that was abandoned for this destination. */
  replayAll(destination: string, now: number): void
  close(): Promise<void>
}

export async function openPlace(clock: () => number): Promise<Place> {
  const folder = mkdtempSync(join(ROOT, 'waitlist-test-'))
  const path = join(folder, 'waitlist.db')
  // How slow the machine is tells nothing here.
  const bounds = { ...storeBounds, patience: 600_000 }
  const open = () =>
    sqliteStore({
      path,
      bounds,
      eventName: 'waitlist.joined',
      provider: VENDOR,
      destinations: [VENDOR, RECEIVER],
      clock,
    })
  let store = await open()
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  const contacts = database.prepare(
    'select id, state, (select count(*) from event where event.contact = contact.number) as events,' +
      ' (select count(*) from delivery where delivery.contact = contact.number) as deliveries' +
      ' from contact where email_key = ?',
  )
  const pending = database.prepare(
    'select id, token is not null as leased from registration join contact on number = contact',
  )
  const leased = database.prepare(
    'select 1 from registration join contact on number = contact' +
      ' where email_key = ? and token is not null and due_at > ?',
  )
  const nextDue = database.prepare("select min(due_at) as due from delivery where state = 'waiting'")
  const abandoned = database.prepare(
    'select delivery.number, destination, email_key as email from delivery join contact' +
      " on contact.number = delivery.contact where delivery.state = 'abandoned' and delivery.number > ?",
  )
  const lastDelivery = database.prepare('select coalesce(max(number), 0) as number from delivery')
  let page = 0
  const rows = <Row>(found: unknown) => found as Row[]

  return {
    store: () => store,
    turnThePage() {
      page = (lastDelivery.get() as { number: number }).number
    },
    async reopen() {
      await store.close()
      store = await open()
    },
    contacts: email => rows(contacts.all(email)),
    pending: () =>
      rows<{ id: string; leased: number }>(pending.all()).map(({ id, leased }) => ({ id, leased: leased === 1 })),
    isLeased: (email, now) => leased.get(email, now) !== undefined,
    nextDue: () => (nextDue.get() as { due: number | null }).due,
    abandoned: () => rows(abandoned.all(page)),
    replay: (some, now) => void replayDeliveries(path, { numbers: some.map(({ number }) => number) }, now),
    replayAll: (destination, now) => void replayDeliveries(path, { abandoned: true, destination }, now),
    async close() {
      database.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
