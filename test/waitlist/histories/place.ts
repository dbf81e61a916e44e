import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { storeBounds } from '../../../src/stores/group-commit.ts'
import { sqliteOperator } from '../../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../../src/stores/sqlite/store.ts'
import type { Store } from '../../../src/waitlist/ports/store.ts'
import { RECEIVER } from './receiver.ts'
import { automationOf, type VendorName } from './vendor.ts'

/** Thousands of histories sync hundreds of thousands of times: in memory, where the system has files there. */
const ROOT = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export interface StoredContact {
  readonly id: string
  readonly state: string
  readonly events: number
  readonly deliveries: number
}

export interface Pending {
  readonly id: string
  readonly leased: boolean
  /** Those that count. */
  readonly attempts: number
  readonly due: number
}

interface Abandoned {
  readonly number: number
  readonly destination: string
  readonly email: string
}

/** A real store in a file, and what is in it, read past the store. Many histories use it, one after the other. */
export interface Place {
  readonly store: () => Store
  /** What is there belongs to earlier histories; the provider is the first one again. */
  turnThePage(): Promise<void>
  /** Closes the file and opens it again, as a restart does, perhaps with another provider. */
  reopen(provider: VendorName): Promise<void>
  contacts(email: string): StoredContact[]
  /** Pending contacts, and their hand-overs to the provider in use. */
  pending(): Pending[]
  /** Whether some process is, or was, asking the provider about this address, and may be as far as others can tell. */
  isLeased(email: string, now: number): boolean
  /** When the first delivery of an event that waits is due; null: none waits. */
  nextDue(): number | null
  /** Of this history: some of earlier ones were rightly left alone. */
  abandoned(): Abandoned[]
  replay(some: readonly Abandoned[]): Promise<void>
  /** Everything that was abandoned for this destination. */
  replayAll(destination: string): Promise<void>
  close(): Promise<void>
}

export async function openPlace(clock: () => number, first: VendorName): Promise<Place> {
  const folder = mkdtempSync(join(ROOT, 'waitlist-test-'))
  const path = join(folder, 'waitlist.db')
  // How slow the machine is tells nothing here.
  const bounds = { ...storeBounds, timeout: 600_000 }
  const open = (provider: VendorName) =>
    sqliteStore({
      path,
      bounds,
      eventName: 'waitlist.joined',
      provider,
      destinations: [automationOf(provider), RECEIVER],
      clock,
    })
  let provider = first
  let store = await open(provider)
  const operator = sqliteOperator(path)
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  const contacts = database.prepare(
    'select id, state, event_at is not null as events,' +
      ' (select count(*) from delivery where delivery.contact = contact.number) as deliveries' +
      ' from contact where email_key = ?',
  )
  const pending = database.prepare(
    'select id, token is not null as leased, attempts, due_at as due from delivery' +
      " join contact on contact.number = contact where contact.state = 'pending' and destination = ?",
  )
  const leased = database.prepare(
    'select 1 from delivery join contact on contact.number = contact' +
      ' where email_key = ? and token is not null and due_at > ? and destination = ?',
  )
  const nextDue = database.prepare(
    'select min(due_at) as due from delivery join contact on contact.number = contact' +
      " where delivery.state = 'waiting' and contact.state = 'listed'",
  )
  const abandoned = database.prepare(
    'select delivery.number, destination, email_key as email from delivery join contact' +
      " on contact.number = delivery.contact where delivery.state = 'abandoned' and delivery.number > ?",
  )
  const lastDelivery = database.prepare('select coalesce(max(number), 0) as number from delivery')
  let page = 0
  const rows = <Row>(found: unknown) => found as Row[]

  async function reopen(next: VendorName): Promise<void> {
    provider = next
    await store.close()
    store = await open(provider)
  }

  return {
    store: () => store,
    async turnThePage() {
      if (provider !== first) await reopen(first)
      page = (lastDelivery.get() as { number: number }).number
    },
    reopen,
    contacts: email => rows(contacts.all(email)),
    pending: () =>
      rows<Omit<Pending, 'leased'> & { leased: number }>(pending.all(provider)).map(row => ({
        ...row,
        leased: row.leased === 1,
      })),
    isLeased: (email, now) => leased.get(email, now, provider) !== undefined,
    nextDue: () => (nextDue.get() as { due: number | null }).due,
    abandoned: () => rows(abandoned.all(page)),
    replay: async some => void (await operator.replay({ numbers: some.map(({ number }) => number) })),
    replayAll: async destination => void (await operator.replay({ abandoned: true, destination })),
    async close() {
      database.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
