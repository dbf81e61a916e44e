import { randomUUIDv7 } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../waitlist/ports/log.ts'
import type { ContactState, HoldReason, Invitation, Source } from '../../waitlist/rules/contact.ts'
import { mailboxOf } from '../../waitlist/rules/mailbox.ts'
import { emailKey, type Signup } from '../../waitlist/rules/signup.ts'
import { tables } from '../rows.ts'
import { type Engine, inSteps, lend, once, type Pace, type Sql } from '../sql.ts'
import { type Announcement, addDeliveries, initialState } from './announcement.ts'
import { erasedAt } from './erasure.ts'

/** One contact to be, from a file. */
export interface Entry {
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

export interface ImportWish {
  /** Null: nobody is told of the contacts. Otherwise they are stored like new signups, unless they are held or invited. */
  readonly announcement: Announcement | null
  /** Only looks what would become of the entries. */
  readonly dryRun: boolean
  /** Called with its name if there was no store: it is made now (SQLite), or would be without the dry run. */
  readonly made: (store: string) => void
  /** Called after each step. */
  readonly progress: (soFar: Imported) => void
  /** Ends the import between two steps. */
  readonly signal: AbortSignal
}

/** How many entries were added, were on the list already, or stay away since their address was erased. */
export type Imported = Readonly<Record<Fate, number>>
type Fate = 'added' | 'existing' | 'erased'

/** Decides about a batch in one transaction: a fate for each entry. */
type Decide = (batch: readonly Entry[]) => Promise<readonly Fate[]>

export const imports = (engine: Engine) => ({
  /**
   * Adds contacts in the order of their entries. Of several entries with one address the first counts, and a contact that
   * is on the list stays as it is. An address that was erased is added only if its entry is of a later time.
   *
   * It goes in short steps, so that signups do not wait. What was added stays if it is stopped; with the same entries, the
   * next call ends with the same list.
   */
  async importContacts(entries: AsyncIterable<readonly Entry[]>, wish: ImportWish): Promise<Imported> {
    const opened = await engine.openOrMake(wish.dryRun, wish.made)
    return lend(engine, opened, sql => {
      const decide: Decide = async batch => {
        if (wish.dryRun) return sql.snapshot(sql => fatesOf(sql, batch))
        engine.requireRoom()
        // Signups are inserted in the order of their addresses and entries in their own, so the two could wait for each other.
        return once(sql, 'Run it again: it goes on.', sql => add(sql, batch, wish), {
          lock: 'erasures, shared',
          yields: true,
        })
      }
      return importing(entries, wish, decide, engine.pace)
    })
  },
})

const keyOf = ({ signup }: Entry): string => emailKey(signup.email)

/** What would become of each entry, if no other one had the same address. */
async function fatesOf(sql: Sql, batch: readonly Entry[]): Promise<readonly Fate[]> {
  const { among, elements } = sql.dialect
  const rows = await sql.all<{ email_key: string }>(
    `select email_key from contact where ${among('email_key', elements('$1', 'text'))}`,
    [JSON.stringify(batch.map(keyOf))],
  )
  const listed = new Set(rows.map(({ email_key }) => email_key))
  const erased = await erasedAt(
    sql,
    batch.map(({ signup }) => signup.email),
  )
  return batch.map(entry => {
    if (listed.has(keyOf(entry))) return 'existing'
    const at = erased.get(keyOf(entry))
    return at !== undefined && staysErased(entry, at) ? 'erased' : 'added'
  })
}

/** The numbers grow in the order of the entries. */
async function add(sql: Sql, batch: readonly Entry[], wish: ImportWish): Promise<readonly Fate[]> {
  const { now, table, contactNumber } = sql.dialect
  const fates = await fatesOf(sql, batch)
  const firsts = new Map<string, Entry>()
  for (const [i, entry] of batch.entries()) {
    if (fates[i] === 'added' && !firsts.has(keyOf(entry))) firsts.set(keyOf(entry), entry)
  }
  const { eventName, event, destinations } = initialState({ state: 'listed' }, wish.announcement)
  const isTold = `state not in ('held', 'invited') and cast($2 as text) is not null`
  // What the entries say, and the event.
  const { number, provider_id, event_name, event_at, invite_name, created_at, asked_at, asks, ...given } =
    tables.contact
  const columns = Object.keys(given).join(', ')
  const [numbered, itsNumber] = contactNumber === null ? ['', ''] : ['number, ', `${contactNumber('ord')}, `]
  const added = await sql.all<{ number: number; email_key: string; state: ContactState }>(
    `insert into contact (${numbered}${columns}, created_at, event_name, event_at, asked_at, asks)` +
      ` select ${itsNumber}${columns}, coalesce(created_at, ${now}),` +
      ` case when ${isTold} then $2 end, case when ${isTold} then ${now} end,` +
      // Unless it is announced, no mail is sent: the time is that from which a confirmation is waited for.
      ` case when state = 'unconfirmed' then ${now} end, case when state = 'unconfirmed' then 1 end` +
      ` from ${table('$1', { ...given, created_at })} as entry where true order by ord` +
      // The address of somebody who has just signed up, or a code.
      ' on conflict do nothing returning number, email_key, state',
    [JSON.stringify([...firsts.values()].map(entry => rowOf(entry, wish))), eventName],
  )
  const told = added.filter(({ state }) => state !== 'held' && state !== 'invited')
  if (destinations.length > 0) await addDeliveries(sql, told, event, destinations)
  const isAdded = new Set(added.map(({ email_key }) => email_key))
  await requireOwnCodes(
    sql,
    [...firsts.values()].filter(entry => !isAdded.has(keyOf(entry))),
  )
  return batch.map((entry, i) =>
    fates[i] === 'added' && !(firsts.get(keyOf(entry)) === entry && isAdded.has(keyOf(entry))) ? 'existing' : fates[i]!,
  )
}

/** @throws {OperatorError} if one of those who were not added has the code of somebody else, as only a file made by hand says. */
async function requireOwnCodes(sql: Sql, entries: readonly Entry[]): Promise<void> {
  const owners = new Map(entries.flatMap(({ signup, invitation }) => (invitation ? [[invitation.code, signup]] : [])))
  if (owners.size === 0) return
  const { among, elements } = sql.dialect
  const rows = await sql.all<{ code: string; email: string }>(
    `select code, email from contact where ${among('code', elements('$1', 'text'))}`,
    [JSON.stringify([...owners.keys()])],
  )
  for (const { code, email } of rows) {
    const other = owners.get(code)!.email
    if (emailKey(email) === emailKey(other)) continue
    throw new OperatorError(
      `${other} has the code of ${email}, and only one of them can be invited with it. Give ${other} another code, and run it again: it goes on.`,
    )
  }
}

function rowOf(entry: Entry, { announcement }: ImportWish): Record<string, unknown> {
  const { id, signup, createdAt, source, reason, invitation, confirmedAt } = entry
  const { state } = initialState(entry, announcement)
  return {
    id: id ?? randomUUIDv7(),
    name: signup.name,
    email: signup.email,
    email_key: keyOf(entry),
    state,
    reason: reason ?? null,
    created_at: createdAt?.getTime() ?? null,
    source: source === undefined ? null : JSON.stringify(source),
    mailbox: mailboxOf(keyOf(entry)),
    invited_at: invitation?.at.getTime() ?? null,
    code: invitation?.code ?? null,
    redeemed_at: invitation?.redeemedAt?.getTime() ?? null,
    confirmed_at: state === 'unconfirmed' ? null : (confirmedAt?.getTime() ?? null),
  }
}

/** Entries that are read ahead, while the store rests: as many as a step has at most. */
const AHEAD = 5_000

async function importing(
  entries: AsyncIterable<readonly Entry[]>,
  { dryRun, progress, signal }: ImportWish,
  decide: Decide,
  { least, most: limit, rests }: Pace,
): Promise<Imported> {
  const counts = { added: 0, existing: 0, erased: 0 }
  const take = readAhead(entries)
  using seen = dryRun ? firstSeen() : undefined
  // Only the time in the store counts, and not that of a slow reader.
  let busy = 0
  const step = async (most: number): Promise<boolean> => {
    const batch = await take(Math.min(limit, Math.max(least, most)))
    if (batch.length === 0 || signal.aborted) return false
    const began = performance.now()
    const fates = await decide(batch)
    busy += performance.now() - began
    for (const [i, fate] of fates.entries()) {
      const isRepeated = fate === 'added' && seen?.isNew(batch[i]!) === false
      counts[isRepeated ? 'existing' : fate]++
    }
    progress(counts)
    return true
  }
  const rest = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds * rests))
  await inSteps(step, { clock: () => busy, rest })
  return counts
}

function readAhead(entries: AsyncIterable<readonly Entry[]>) {
  const batches = entries[Symbol.asyncIterator]()
  let read: readonly Entry[] = []
  const fill = async () => {
    while (read.length < AHEAD) {
      const { done, value } = await batches.next()
      if (done) return
      read = [...read, ...value]
    }
  }
  let filling = fill()
  return async (most: number): Promise<readonly Entry[]> => {
    await filling
    const batch = read.slice(0, most)
    read = read.slice(most)
    filling = fill()
    return batch
  }
}

/** Which addresses a dry run has not seen before: in a file of SQLite's that nobody else sees, not in memory. */
function firstSeen() {
  const database = new DatabaseSync('')
  database.exec('pragma journal_mode = off; create table seen (email_key text primary key) strict, without rowid')
  const insert = database.prepare('insert or ignore into seen values (?)')
  return {
    isNew: ({ signup }: Entry): boolean => insert.run(emailKey(signup.email)).changes === 1,
    [Symbol.dispose]: () => database.close(),
  }
}

/** Whether an address stays away: only a contact that is certainly younger than the erasure may come back. */
const staysErased = ({ createdAt }: Entry, erasedAt: Date): boolean =>
  createdAt === undefined || createdAt.getTime() <= erasedAt.getTime()
