import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../config/operator.ts'
import {
  type ContactState,
  emailKey,
  type HoldReason,
  type Invitation,
  type Signup,
  type Source,
} from '../signup/contact.ts'
import { addDeliveries, beginningOf, type SignupTargets } from '../store/activate.ts'
import { REST } from '../store/bulk.ts'
import type { Database, Tx } from '../store/database.ts'
import { erasedAt } from '../store/erasures.ts'
import { contactRow, type NewContact } from '../store/rows.ts'

/** One contact to be, from a file. */
export interface ImportRow {
  readonly signup: Signup
  /** UUIDv7; absent: a new one. */
  readonly id?: string | undefined
  readonly state: ContactState
  /** Of those that are held, and only of those. */
  readonly reason?: HoldReason | undefined
  /** Absent: now. */
  readonly createdAt?: Date | undefined
  readonly source?: Source | undefined
  /** Of those that are invited, and only of those. */
  readonly invitation?: Omit<Invitation, 'name'> | undefined
  /** Absent: it never had to be, or is unconfirmed. */
  readonly confirmedAt?: Date | undefined
}

export interface ImportOptions {
  /** Null: nobody is notified of the contacts. Otherwise they are stored like new signups, unless they are held or invited. */
  readonly targets: SignupTargets | null
  /** Only looks what would become of the rows. */
  readonly dryRun: boolean
  /** Called after each step. */
  readonly onProgress: (soFar: Imported) => void
}

/** How many rows were added, were on the list already, or stay away since their address was erased. */
export type Imported = Readonly<Record<ImportOutcome, number>>
export type ImportOutcome = 'added' | 'existing' | 'erased'

/**
 * Adds contacts in the order of their rows. Of several rows with one address the first counts, and a contact that is on the
 * list stays as it is. An address that was erased is added only if its row is of a later time. Batches are of `STEP` rows at
 * most, so that signups need not wait.
 */
export async function importContacts(
  database: Database,
  batches: AsyncIterable<readonly ImportRow[]>,
  { targets, dryRun, onProgress }: ImportOptions,
): Promise<Imported> {
  const counts = { added: 0, existing: 0, erased: 0 }
  const seen = new Set<string>()
  for await (const batch of batches) {
    if (!dryRun) database.requireRoom()
    const outcomes = dryRun
      ? await database.read(tx => outcomesOf(tx, batch, seen))
      : await database.transaction(tx => add(tx, batch, targets))
    for (const outcome of outcomes) counts[outcome]++
    onProgress(counts)
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
  await requireFreeCodes(tx, added)
  const beginning = targets === null ? null : beginningOf(targets)
  const isNotified = ({ state }: ImportRow) => beginning !== null && state !== 'held' && state !== 'invited'
  const contacts = added.map((row): NewContact => {
    const { name, email } = row.signup
    const { id, reason, source, invitation, confirmedAt } = row
    const begins = isNotified(row) && beginning !== null ? beginning : { state: row.state, eventName: null }
    const createdAt = row.createdAt?.getTime() ?? tx.now
    return { id, name, email, reason, source, invitation, confirmedAt, createdAt, ...begins }
  })
  const numbers = await tx.insertNew(
    'contact',
    contacts.map(contact => contactRow(contact, tx.now)),
    'email_key',
  )
  if (beginning !== null) {
    const notified = added.filter(isNotified).flatMap(row => numbers.get(keyOf(row)) ?? [])
    await addDeliveries(tx, notified, beginning.kind, beginning.destinations)
  }
  // Somebody may have just signed up.
  return batch.map((row, i) => (outcomes[i] === 'added' && !numbers.has(keyOf(row)) ? 'existing' : outcomes[i]!))
}

/** @throws {OperatorError} if one of them has the code of somebody else. */
async function requireFreeCodes(tx: Tx, rows: readonly ImportRow[]): Promise<void> {
  const invited = rows.flatMap(({ signup, invitation }) =>
    invitation ? [[invitation.code, signup.email] as const] : [],
  )
  if (invited.length === 0) return
  const taken = await tx.all<{ code: string; email: string }>(
    `select code, email from contact where ${tx.dialect.among('code', '$1')}`,
    [invited.map(([code]) => code)],
  )
  const owners = new Map(taken.map(({ code, email }) => [code, email]))
  for (const [code, email] of invited) {
    const owner = owners.get(code)
    if (owner !== undefined) {
      throw new OperatorError(
        `${email} has the code of ${owner}. Give one of them another code, and run it again: it goes on.`,
      )
    }
    owners.set(code, email)
  }
}
