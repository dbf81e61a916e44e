import { signupTargetsOf } from '../app/adapters.ts'
import { type Operator, operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import type { HeldCounts, HeldFilter } from '../holds/store.ts'
import type { Contact, HoldReason } from '../signup/contact.ts'
import type { Changed, Course } from '../store/bulk.ts'
import { confirmed, fail, mayProceed, misused, untilStopped } from './console.ts'
import { exported } from './formats.ts'
import { type Columns, counted, counter, MOST, moment, moreThan, number, print, table, toJson } from './print.ts'

/** Which held signups a command is about. */
export interface WhichHeld {
  readonly reason?: HoldReason
  readonly search?: string
  readonly before?: Date
}

export interface HeldOptions extends WhichHeld {
  readonly limit: number
  readonly json?: true
}

/** Writes how many signups are held, for what and from where, and those added last: for people, or as one JSON object. */
export async function listHeld(config: Config, { limit, json, ...chosen }: HeldOptions): Promise<void> {
  if (limit > MOST) {
    return misused(`--limit is at most ${number(MOST)}; waitlist export --state held writes any number.`)
  }
  const which = filterOf(chosen)
  const operator = operatorOf(config)
  const counts = await operator.countHeld(which)
  const contacts = await operator.addedLast({ ...which, state: 'held' }, limit)
  if (json) return print([toJson({ ...counts, contacts: contacts.map(exported) })])
  if (counts.total === 0) return print([isEverybody(which) ? NOBODY : 'No such signup is held.\n'])
  return print(listing(counts, contacts))
}

function* listing({ total, since, reasons }: HeldCounts, contacts: readonly Contact[]): Generator<string> {
  yield `${counted(total, 'signup is', 'signups are')} held, the first since ${moment(since!)}.\n\n`
  yield* table(reasonColumns, reasons)
  yield '\n'
  yield* table(columns, contacts)
  if (total > contacts.length) yield moreThan(contacts.length)
}

const reasonColumns: Columns<HeldCounts['reasons'][number]> = {
  reason: ({ reason }) => reason,
  signups: ({ count }) => number(count),
}

const columns: Columns<Contact> = {
  'signed up': ({ createdAt }) => moment(createdAt),
  reason: ({ reason }) => reason ?? '',
  name: ({ name }) => name,
  address: ({ email }) => email,
}

export interface DecideOptions extends WhichHeld {
  readonly all?: true
}

/** Lets held signups in, in the order in which they came. Ctrl-C stops it between two steps; run again, it goes on. */
export async function releaseHeld(config: Config, addresses: readonly string[], options: DecideOptions): Promise<void> {
  const which = chosen('release', addresses, options)
  if (which === null) return
  const targets = await signupTargetsOf(config)
  const operator = operatorOf(config)
  const released = await decide('released', which, course => operator.release(which, targets, course))
  const title = config.provider?.vendor.title ?? null
  // What was printed says the rest.
  if (released > 0 && process.exitCode === undefined && title !== null) {
    await print([`The running service hands them over to ${title}, in the order in which they signed up.\n`])
  }
}

/** Deletes held signups, after it has asked. Ctrl-C stops it between two steps. */
export async function discardHeld(
  config: Config,
  addresses: readonly string[],
  { yes, ...options }: DecideOptions & { readonly yes?: true },
): Promise<void> {
  const which = chosen('discard', addresses, options)
  if (which === null) return
  if (!mayProceed('discard', yes === true)) return
  const operator = operatorOf(config)
  if (!yes && !(await agreed(operator, which))) return
  await decide('discarded', which, course => operator.discard(which, course))
}

async function agreed(operator: Operator, which: HeldFilter): Promise<boolean> {
  const { total, reasons } = await operator.countHeld(which)
  if (total === 0) {
    await sayNobody(which)
    return false
  }
  const why = reasons.map(({ reason, count }) => `${reason} ${number(count)}`).join(', ')
  if (await confirmed(`Delete ${counted(total, 'held signup')} (${why})?`)) return true
  fail('nothing was discarded.')
  return false
}

const filterOf = ({ reason, before, ...which }: WhichHeld): HeldFilter => ({ ...which, reason, until: before })

const isEverybody = (which: HeldFilter): boolean => Object.values(which).every(each => each === undefined)

/** That everybody was released, or discarded, is what was asked for. */
async function sayNobody(which: HeldFilter): Promise<void> {
  if (isEverybody(which)) await print([NOBODY])
  else fail('no such signup is held.')
}

const NOBODY = 'Nothing is held.\n'

/** Null: the command line does not say which. */
function chosen(what: string, addresses: readonly string[], { all, ...which }: DecideOptions): HeldFilter | null {
  const ways = [addresses.length > 0, all, Object.keys(which).length > 0].filter(Boolean).length
  if (ways === 1) return addresses.length > 0 ? { addresses } : filterOf(which)
  const ask = `Say what to ${what}: addresses, --all, or --reason, --search and --before`
  misused(ways === 0 ? `${ask} (waitlist held lists them).` : `${ask}, and only one of these.`)
  return null
}

/** `done`: what became of them. Returns of how many. */
async function decide(done: string, which: HeldFilter, change: (course: Course) => Promise<Changed>): Promise<number> {
  let count = 0
  const line = counter()
  const onProgress = (looked: number) => line.show(done, looked)
  await untilStopped(async signal => {
    const decided = await change({ onProgress, signal }).finally(line.end)
    const { missing } = decided
    count = decided.done
    if (count > 0) await print([`${counted(count, 'signup was', 'signups were')} ${done}.\n`])
    if (signal.aborted)
      fail('stopped before the end: the others are still held. Run the same command again: it goes on.')
    else if (missing.length > 0)
      fail(
        `not all could be ${done}:`,
        missing.map(({ address }) => `${address} is not held.`),
      )
    else if (count === 0) await sayNobody(which)
  })
  return count
}
