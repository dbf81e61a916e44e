import { randomInt } from 'node:crypto'
import type { Telemetry } from '../app/telemetry.ts'
import type { Signup } from '../signup/contact.ts'
import { deliveryRow } from './activate.ts'
import { type BatchBounds, batches, storeBounds } from './batches.ts'
import { type Counts, countAll } from './counts.ts'
import type { Database } from './database.ts'
import { claim, type Delivery, moveHandovers, type Settled, type Settlement, settle } from './outbox.ts'
import { sharedSecret } from './secret.ts'
import { type Admission, admit, type Entry, entryOf, type SignupRules } from './signups.ts'

/** Keeps contacts and their deliveries. Each call resolves once its work is synced to disk, or rejects. */
export interface Store extends Pick<Database, 'transaction' | 'read' | 'truncateWal' | 'failure'> {
  /** Records a signup. */
  admit(signup: Signup): Promise<Admission>
  /** Whether more signups come than can be stored. To refuse one then, before `admit`, keeps the others fast. */
  isBehind(): boolean
  /** Leases due deliveries (`claim` in outbox.ts). */
  claim(destination: string, most: number, address?: string): Promise<readonly Delivery[]>
  /** Ends an attempt. False: its lease was lost, and nothing was changed. */
  settle(delivery: Delivery, settlement: Settlement): Promise<boolean>
  /** Counts everything. Simultaneous calls share one count: among millions it takes a second. */
  counts(): Promise<Counts>
  /** A random value that all instances share. */
  secret(name: string): Promise<string>
  /** Resolves when a signup could be stored now. */
  check(): Promise<void>
  /** Refuses everything that waits, and everything that comes, since a stop cannot wait any longer. */
  refuse(): void
  /** Completes what was accepted, then releases every resource. */
  close(): Promise<void>
}

interface StoreOptions extends SignupRules {
  readonly bounds?: Partial<BatchBounds>
  readonly telemetry?: Pick<Telemetry, 'countCommit'> | null
}

export async function openStore(database: Database, options: StoreOptions): Promise<Store> {
  const { targets, telemetry } = options
  const bounds = { ...storeBounds, ...options.bounds }
  const { provider } = targets
  if (provider !== null) await database.transaction(tx => moveHandovers(tx, provider))

  const signups = batches<Entry, Admission>(async entries => {
    database.requireRoom()
    const began = performance.now()
    const admissions = await database.transaction(tx => admit(tx, entries, options))
    telemetry?.countCommit((performance.now() - began) / 1_000)
    return admissions
  }, bounds)
  const settlements = batches<Settled, boolean>(all => database.transaction(tx => settle(tx, all, targets)), bounds)
  let closed: Promise<void> | undefined

  return {
    transaction: database.transaction,
    read: database.read,
    truncateWal: database.truncateWal,
    failure: database.failure,
    admit: signup => signups.submit(entryOf(signup)),
    isBehind: signups.isBehind,
    async claim(destination, most, address) {
      database.requireRoom()
      return database.transaction(tx => claim(tx, destination, most, address))
    },
    settle: (delivery, settlement) => settlements.submit({ delivery, settlement }),
    counts: shared(() => database.read(countAll)),
    secret: name => database.transaction(tx => sharedSecret(tx, name)),
    check: shared(() => write(database)),
    refuse() {
      signups.refuse()
      settlements.refuse()
    },
    close() {
      closed ??= Promise.all([signups.drain(), settlements.drain()]).then(database.close)
      return closed
    },
  }
}

/** Simultaneous calls share one run. */
function shared<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null
  return () => {
    running ??= run().finally(() => {
      running = null
    })
    return running
  }
}

/**
 * Stores a signup and takes it back in the same transaction: that needs the rights, the locks and the room that one needs.
 * Its number is none that a signup gets.
 */
async function write(database: Database): Promise<void> {
  database.requireRoom()
  const number = -1 - randomInt(2 ** 40)
  const contact = { number, id: '', name: '', email: '', email_key: String(number), state: 'listed', created_at: 0 }
  await database.transaction(async tx => {
    await tx.insert('contact', [contact])
    await tx.insert('delivery', [{ ...deliveryRow(tx, number, '', 'joined'), number }])
    await tx.run('delete from contact where number = $1', [number])
  })
}
