import type { Config } from '../config/load.ts'
import {
  ask,
  contactColumns,
  counted,
  type ExitCode,
  fail,
  type Io,
  misused,
  moment,
  print,
  table,
} from '../operate/output.ts'
import type { Changed } from '../store/bulk.ts'
import { type ContactFilter, contactPages } from '../store/contacts.ts'
import type { Database } from '../store/database.ts'
import { withDatabase } from '../store/open.ts'
import { countInvitable, type InvitationTargets, invite, inviteAgain } from './store.ts'

interface InviteOptions extends Pick<ContactFilter, 'search' | 'source' | 'since' | 'until'> {
  /** The first so many of those whom the filter chooses. */
  readonly next?: number
  /** Those of the addresses who are invited and have not redeemed. */
  readonly again?: true
  readonly dryRun?: true
  readonly yes?: true
}

const UNNOTIFIED =
  'No mail, webhook or automation is set that notifies them: the codes are in waitlist export --state invited.'

/** Invites those who are listed, the first one first, after it has asked. */
export async function inviteContacts(
  { store, invitationTargets: targets }: Config,
  addresses: readonly string[],
  { again, dryRun, yes, next, ...filter }: InviteOptions,
  io: Io,
): Promise<ExitCode> {
  const isFiltered = next !== undefined || Object.keys(filter).length > 0
  if (addresses.length > 0 === isFiltered) {
    return misused(
      io,
      'Give addresses, or any of --next, --search, --source, --since and --until. To see who is listed:' +
        ' waitlist list --state listed',
    )
  }
  if (again && (isFiltered || dryRun)) return misused(io, '--again takes addresses, and no other option.')
  const given = [...new Set(addresses)]
  if (again) return withDatabase(store, database => remind(database, given, targets, io))
  const which = isFiltered ? filter : { addresses: given }
  return withDatabase(store, async database => {
    const { total, first, last } = await database.read(tx => countInvitable(tx, which, next))
    if (dryRun) {
      await print(io, preview(database, which, total))
      return 0
    }
    const note = targets.destinations.length > 0 ? 'The running service notifies them.' : UNNOTIFIED
    if (first !== null && last !== null) {
      const who = `${people(total)} who signed up from ${moment(first)} to ${moment(last)}`
      const refused = await ask(io, yes, `Invite ${who}? ${note}`)
      if (refused !== undefined) return refused
    }
    return report(await invite(database, which, next, targets), note, io)
  })
}

async function report({ done, missing }: Changed, note: string, io: Io): Promise<ExitCode> {
  const others = missing.filter(({ state }) => state !== 'invited')
  const before = missing.length - others.length
  if (before > 0) await print(io, [`Invited before: ${people(before)}.\n`])
  if (done > 0) await print(io, [`Invited: ${people(done)}. ${note}\n`])
  if (others.length > 0) return fail(io, 'not all could be invited:', reasonsOf(others))
  return done === 0 && before === 0 ? fail(io, 'nothing was found.') : 0
}

async function remind(
  database: Database,
  addresses: readonly string[],
  targets: InvitationTargets,
  io: Io,
): Promise<ExitCode> {
  if (targets.destinations.length === 0) return fail(io, UNNOTIFIED)
  const { done, missing } = await inviteAgain(database, addresses, targets)
  const redeemed = addresses.length - missing.length - done
  await print(io, [`Invited again: ${people(done)}.\n`])
  if (redeemed > 0) await print(io, [`Redeemed already: ${people(redeemed)}.\n`])
  return missing.length === 0 ? 0 : fail(io, 'not all were invited before:', reasonsOf(missing))
}

const people = (count: number): string => counted(count, 'person', 'people')

const reasonsOf = (missing: Changed['missing']) =>
  missing.map(({ address, state }) => `${address} is ${state ?? 'not on the list'}.`)

/** The first of those who would be invited, a page at most, and how many there are. */
async function* preview({ read }: Database, which: ContactFilter, total: number): AsyncGenerator<string> {
  for await (const page of contactPages(read, { ...which, state: 'listed' })) {
    if (total > 0) yield* table(contactColumns, page.slice(0, total))
    break
  }
  yield `${people(total)} would be invited.\n`
}
