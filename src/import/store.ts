import { randomUUIDv7 } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { emailKey, type Signup } from '../signup/contact.ts'
import { addDeliveries, beginningOf, type SignupTargets } from '../store/activate.ts'
import { REST } from '../store/bulk.ts'
import { contactRow } from '../store/contacts.ts'
import type { Database, Tx } from '../store/database.ts'
import { erasedAt } from '../store/erasures.ts'

/** One contact to be, from a file. */
export interface ImportRow {
  readonly signup: Signup
  /** Absent: now. */
  readonly createdAt?: Date | undefined
}

export interface ImportOptions {
  /** Null: they are listed, and nobody is notified of them. Otherwise they are stored like new signups. */
  readonly targets: SignupTargets | null
  /** Only looks what would become of the rows. */
  readonly dryRun: boolean
}

/** How many rows were added, were on the list already, or stay away since their address was erased. */
type Imported = Readonly<Record<ImportOutcome, number>>
export type ImportOutcome = 'added' | 'existing' | 'erased'

/**
 * Adds contacts in the order of their rows, a batch in each transaction, so that signups need not wait. Of several rows with
 * one address the first counts, and a contact that is on the list stays as it is. An address that was erased is added only if
 * its row is of a later time.
 */
export async function importContacts(
  database: Database,
  batches: AsyncIterable<readonly ImportRow[]>,
  { targets, dryRun }: ImportOptions,
): Promise<Imported> {
  const counts = { added: 0, existing: 0, erased: 0 }
  const seen = new Set<string>()
  for await (const batch of batches) {
    if (!dryRun) database.requireRoom()
    const outcomes = dryRun
      ? await database.read(tx => outcomesOf(tx, batch, seen))
      : await database.transaction(tx => add(tx, batch, targets))
    for (const outcome of outcomes) counts[outcome]++
    if (!dryRun) await sleep(REST)
  }
  return counts
}

const keyOf = ({ signup }: ImportRow): string => emailKey(signup.email)

/** `seen`: the addresses of rows before these, to which theirs are added. */
async function outcomesOf(
  tx: Tx,
  batch: readonly ImportRow[],
  seen = new Set<string>(),
): Promise<readonly ImportOutcome[]> {
  const rows = await tx.all<{ email_key: string }>(
    `select email_key from contact where ${tx.dialect.among('email_key', '$1')}`,
    [batch.map(keyOf)],
  )
  const listed = new Set(rows.map(({ email_key }) => email_key))
  const emails = batch.map(({ signup }) => signup.email)
  const erased = await erasedAt(tx, emails)
  return batch.map(row => {
    const key = keyOf(row)
    if (listed.has(key) || seen.has(key)) return 'existing'
    const at = erased.get(key)
    // Only a contact that is certainly younger than the erasure may come back.
    if (at !== undefined && (row.createdAt === undefined || row.createdAt <= at)) return 'erased'
    seen.add(key)
    return 'added'
  })
}

async function add(
  tx: Tx,
  batch: readonly ImportRow[],
  targets: SignupTargets | null,
): Promise<readonly ImportOutcome[]> {
  const outcomes = await outcomesOf(tx, batch)
  const added = batch.filter((_, i) => outcomes[i] === 'added')
  const { state, eventName, kind, destinations } = targets === null ? UNANNOUNCED : beginningOf(targets)
  const contacts = added.map(({ signup: { name, email, source }, createdAt }) =>
    contactRow(
      { id: randomUUIDv7(), name, email, source, state, eventName, createdAt: createdAt?.getTime() ?? tx.now },
      tx.now,
    ),
  )
  const numbers = await tx.insertNew('contact', contacts, 'email_key')
  await addDeliveries(
    tx,
    [...numbers.values()].sort((a, b) => a - b),
    kind,
    destinations,
  )
  // Somebody may have just signed up.
  return batch.map((row, i) => (outcomes[i] === 'added' && !numbers.has(keyOf(row)) ? 'existing' : outcomes[i]!))
}

const UNANNOUNCED = { state: 'listed', eventName: null, kind: 'joined', destinations: [] } as const
