import { DatabaseSync } from 'node:sqlite'
import type { ContactState, HoldReason, Source } from '../../waitlist/rules/contact.ts'
import { emailKey, type Signup } from '../../waitlist/rules/signup.ts'
import { inSteps } from '../steps.ts'

/** Contacts that come from a file instead of signing up. */
export interface Imports {
  /**
   * Adds contacts in the order of their entries. Of several entries with one address the first counts, and a contact that
   * is on the list stays as it is. An address that was erased is added only if its entry is of a later time.
   *
   * It goes in short steps, so that signups do not wait. What was added stays if it is stopped; with the same entries, the
   * next call ends with the same list.
   */
  importContacts(entries: AsyncIterable<readonly Entry[]>, wish: ImportWish): Promise<Imported>
}

/** One contact to be. */
export interface Entry {
  readonly signup: Signup
  /** UUIDv7; absent: a new one. */
  readonly id?: string | undefined
  readonly state: ContactState
  /** Of those that are held, and only of those. */
  readonly heldFor?: HoldReason | undefined
  /** Absent: now. */
  readonly createdAt?: Date | undefined
  readonly source?: Source | undefined
}

export interface ImportWish {
  /** Null: nobody is told of the contacts. Otherwise they are stored like new signups, unless they are held. */
  readonly announcement: Announcement | null
  /** Whether the mailboxes behind their addresses are stored: further spellings are held then, they themselves are not. */
  readonly keepsMailboxes: boolean
  /** Only looks what would become of the entries. */
  readonly dryRun: boolean
  /** Called with its name if there was no store: it is made now (SQLite), or would be without the dry run. */
  readonly made: (store: string) => void
  /** Called after each step. */
  readonly progress: (soFar: Imported) => void
  /** Ends the import between two steps. */
  readonly signal: AbortSignal
}

/** Who is told of new signups, as `Surroundings` of both stores. */
export interface Announcement {
  readonly eventName: string
  readonly provider: string | null
  readonly destinations: readonly string[]
}

/** How many entries were added, were on the list already, or stay away since their address was erased. */
export type Imported = Readonly<Record<Fate, number>>
export type Fate = 'added' | 'existing' | 'erased'

/** Decides about a batch in one transaction: a fate for each entry. */
export type Decide = (batch: readonly Entry[]) => readonly Fate[] | Promise<readonly Fate[]>

/** How an engine imports. */
export interface Pace {
  /** Entries of a step: at least, unless fewer are left, since a commit alone may take as long as a step should; at most. */
  readonly least: number
  readonly most: number
  /** The part of the usual rests. A million entries within a minute leave no more. */
  readonly rests: number
}

/** Entries that are read ahead, while the store rests: as many as a step has at most. */
const AHEAD = 5_000

/** The import of both engines. */
export async function importing(
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
export const staysErased = ({ createdAt }: Entry, erasedAt: Date): boolean =>
  createdAt === undefined || createdAt.getTime() <= erasedAt.getTime()

/** How a contact is stored. */
export function stored({ state }: Pick<Entry, 'state'>, announcement: Announcement | null) {
  if (announcement === null || state === 'held') return { state, eventName: null, destinations: [] }
  const { provider, eventName, destinations } = announcement
  return provider === null
    ? { state: 'listed', eventName, destinations }
    : { state: 'pending', eventName: null, destinations: [provider] }
}
