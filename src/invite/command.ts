import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Config } from '../config/load.ts'
import { OperatorError } from '../config/operator.ts'
import {
  ask,
  contactColumns,
  counted,
  counter,
  type ExitCode,
  fail,
  type Io,
  LISTING_MAX,
  misused,
  moment,
  number,
  print,
  table,
} from '../operate/output.ts'
import { type Contact, EMAIL_PATTERN } from '../signup/contact.ts'
import type { Changed } from '../store/bulk.ts'
import { type ContactFilter, contactPages } from '../store/contacts.ts'
import type { Database } from '../store/database.ts'
import { withDatabase } from '../store/open.ts'
import { countInvitable, type InvitationTargets, invite, inviteAgain } from './store.ts'

export interface InviteOptions extends Pick<ContactFilter, 'search' | 'source' | 'since' | 'until'> {
  /** The first so many of those whom the filter chooses. */
  readonly next?: number
  /** A file with addresses, one a line. */
  readonly file?: string
  /** Those of the addresses who are invited and have not redeemed. */
  readonly again?: true
  readonly dryRun?: true
  readonly yes?: true
}

/** Invites those who are listed, the first one first, after it has asked. */
export async function inviteContacts(
  { store, invitationTargets: targets }: Config,
  addresses: readonly string[],
  { again, dryRun, yes, next, file, ...filter }: InviteOptions,
  io: Io,
): Promise<ExitCode> {
  const isFiltered = next !== undefined || Object.keys(filter).length > 0
  if ([addresses.length > 0, file !== undefined, isFiltered].filter(Boolean).length !== 1) {
    return misused(
      io,
      'Give addresses, or --file, or any of --next, --search, --source, --since and --until. To see who is listed:' +
        ' waitlist list --state listed',
    )
  }
  if (again && (isFiltered || dryRun)) return misused(io, '--again takes addresses, or --file, and no other option.')
  const given = [...new Set(file === undefined ? addresses : await addressesIn(file, io))]
  if (again) return withDatabase(store, database => remind(database, given, targets, io))
  const which = isFiltered ? filter : { addresses: given }
  return withDatabase(store, async database => {
    const { total, first, last } = await database.read(tx => countInvitable(tx, which, next))
    if (dryRun) {
      await print(io, preview(database, which, total))
      return 0
    }
    const note = targets.destinations.length > 0 ? '' : ` ${UNNOTIFIED}`
    if (total > 0) {
      const who = `${counted(total, 'person', 'people')} who signed up from ${moment(first!)} to ${moment(last!)}`
      const refused = await ask(io, yes, `Invite ${who}?${note}`)
      if (refused !== undefined) return refused
    }
    const progress = counter(io)
    const onProgress = (looked: number) => progress.show('inviting', looked)
    const changed = await invite(database, which, next, targets, onProgress).finally(progress.end)
    return report(changed, note, io)
  })
}

async function report({ done, missing }: Changed, note: string, io: Io): Promise<ExitCode> {
  const before = missing.filter(({ state }) => state === 'invited').length
  const others = missing.filter(({ state }) => state !== 'invited')
  if (before > 0) await print(io, [`${counted(before, 'person was', 'people were')} invited before.\n`])
  if (done > 0) {
    const rest = note === '' ? ' The running service notifies them.' : note
    await print(io, [`${counted(done, 'person was', 'people were')} invited.${rest}\n`])
  }
  if (others.length > 0) {
    return fail(io, 'not all could be invited:', reasonsOf(others))
  }
  return done === 0 && before === 0 ? fail(io, 'nothing was found.') : 0
}

const reasonsOf = (missing: Changed['missing']) =>
  missing.map(({ address, state }) => `${address} is ${state ?? 'not on the list'}.`)

async function remind(
  database: Database,
  addresses: readonly string[],
  targets: InvitationTargets,
  io: Io,
): Promise<ExitCode> {
  if (targets.destinations.length === 0) return fail(io, UNNOTIFIED)
  const { done, missing } = await inviteAgain(database, addresses, targets)
  const redeemed = addresses.length - missing.length - done
  await print(io, [`${counted(done, 'person was', 'people were')} invited again.\n`])
  if (redeemed > 0) await print(io, [`${counted(redeemed, 'person has', 'people have')} redeemed already.\n`])
  if (missing.length === 0) return 0
  return fail(io, 'not all were invited before:', reasonsOf(missing))
}

const UNNOTIFIED =
  'No mail, webhook or automation is set that notifies them: the codes are in waitlist export --state invited.'

const address = new RegExp(`^${EMAIL_PATTERN}$`)

/** @throws {OperatorError} when it cannot be read, or a line is not an address. */
async function addressesIn(file: string, io: Io): Promise<readonly string[]> {
  const content = await (file === '-' ? text(io.stdin) : readFile(file, 'utf8')).catch((error: Error) => {
    throw new OperatorError(`${file} cannot be read: ${error.message}`)
  })
  const lines = content.split('\n').map(line => line.trim())
  const wrong = lines.findIndex(line => line !== '' && !address.test(line))
  if (wrong !== -1) throw new OperatorError(`Line ${wrong + 1} of ${file} is not an email address. Nobody was invited.`)
  const found = lines.filter(line => line !== '')
  if (found.length === 0) throw new OperatorError(`${file} has no address.`)
  if (found.length > LISTING_MAX) throw new OperatorError(`${file} has more than ${number(LISTING_MAX)} addresses.`)
  return found
}

/** Those who would be invited, `LISTING_MAX` of them at most. */
async function* preview({ read }: Database, which: ContactFilter, total: number): AsyncGenerator<string> {
  const most = Math.min(total, LISTING_MAX)
  const shown: Contact[] = []
  for await (const page of contactPages(read, { ...which, state: 'listed' })) {
    shown.push(...page)
    if (shown.length >= most) break
  }
  const { state: _, ...columns } = contactColumns
  if (total > 0) yield* table(columns, shown.slice(0, most))
  const more = total > most ? `; these are the first ${number(most)}` : ''
  yield `${counted(total, 'person', 'people')} would be invited${more}.\n`
}
