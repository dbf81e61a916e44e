import { invitationTargetsOf } from '../app/adapters.ts'
import { type Operator, operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import { type Contact, sourceLabel } from '../signup/contact.ts'
import type { ContactFilter } from '../store/contacts.ts'
import { isAddress } from './arguments.ts'
import { confirmed, fail, mayProceed, misused, untilStopped } from './console.ts'
import { nameOf, textOf } from './import/records.ts'
import { type Columns, counted, counter, MOST, moment, number, print, table } from './print.ts'

/** Whom the command is about. */
export interface Whom extends Pick<ContactFilter, 'search' | 'source' | 'since' | 'until'> {
  readonly next?: number
  readonly file?: string
}

export interface InviteOptions extends Whom {
  readonly dryRun?: true
  readonly yes?: true
}

/** Invites those who are listed, the first who came first, after it has asked. Ctrl-C stops it between two steps. */
export async function invite(
  config: Config,
  given: readonly string[],
  { dryRun, yes, ...whom }: InviteOptions,
): Promise<void> {
  const chosen = await chosenBy(given, whom)
  if (chosen === null) return
  if (!dryRun && !mayProceed('invite', yes === true)) return
  const { which, most } = chosen
  const operator = operatorOf(config)
  const { total, first, last } = await operator.countInvitable(which, most)
  if (dryRun) return print(preview(operator, which, total))
  const targets = await invitationTargetsOf(config)
  const isTold = targets.destinations.length > 0
  if (total > 0 && !yes) {
    const when = `who signed up from ${moment(first!)} to ${moment(last!)}`
    const note = isTold ? '' : ` ${NOBODY_TELLS}`
    const question = `Invite ${counted(total, 'person', 'people')} ${when}?${note}`
    if (!(await confirmed(question))) return fail('nobody was invited.')
  }
  const line = counter()
  const onProgress = (looked: number) => line.show('inviting', looked)
  await untilStopped(async signal => {
    const decided = await operator.invite(which, most, targets, { onProgress, signal }).finally(line.end)
    await tell(decided, isTold, signal.aborted)
  })
}

async function tell(
  { done, missing }: Awaited<ReturnType<Operator['invite']>>,
  isTold: boolean,
  isStopped: boolean,
): Promise<void> {
  const before = missing.filter(({ state }) => state === 'invited')
  const others = missing.filter(({ state }) => state !== 'invited')
  if (before.length > 0) await print([`${counted(before.length, 'person was', 'people were')} invited before.\n`])
  if (done > 0 || before.length === 0) {
    const told = done === 0 ? '' : isTold ? ' The running service tells them.' : ` ${NOBODY_TELLS}`
    await print([`${counted(done, 'person was', 'people were')} invited.${told}\n`])
  }
  if (isStopped) return fail('stopped before the end: those who were invited stay invited.')
  if (others.length === 0) return
  fail(
    'not all could be invited:',
    others.map(({ address, state }) => `${address} is ${state ?? 'not on the list'}.`),
  )
}

const NOBODY_TELLS = `No mail, webhook or automation is set that tells them: the codes are in waitlist export --state invited.`

interface Chosen {
  readonly which: ContactFilter
  /** The first so many of them; absent: all. */
  readonly most: number | undefined
}

/** Null: the command line does not say whom. */
async function chosenBy(given: readonly string[], { next, file, ...filter }: Whom): Promise<Chosen | null> {
  const isFiltered = next !== undefined || Object.keys(filter).length > 0
  const ways = [given.length > 0, file !== undefined, isFiltered].filter(Boolean).length
  if (ways !== 1) {
    misused(
      `Say whom to invite: addresses, --file, or --next, --search, --source, --since and --until` +
        `${ways === 0 ? ` (waitlist list --state listed shows who came last).` : ', and only one of these.'}`,
    )
    return null
  }
  if (isFiltered) return { which: filter, most: next }
  const addresses = file === undefined ? given : await addressesIn(file)
  return addresses === null ? null : { which: { addresses: [...new Set(addresses)] }, most: undefined }
}

/** One on each line. Null: one of them is none. */
async function addressesIn(file: string): Promise<readonly string[] | null> {
  let text = ''
  // Nobody waits for it yet, so Ctrl-C ends the process.
  for await (const part of textOf(file, new AbortController().signal)) text += part
  const lines = text.split('\n').map((line, i) => ({ line: line.trim(), at: i + 1 }))
  const filled = lines.filter(({ line }) => line !== '')
  const wrong = filled.find(({ line }) => !isAddress(line))
  if (wrong !== undefined) fail(`line ${wrong.at} of ${nameOf(file)} is no email address. Nobody was invited.`)
  else if (filled.length > MOST) fail(`${nameOf(file)} has more than ${number(MOST)} addresses. Split it.`)
  else if (filled.length > 0) return filled.map(({ line }) => line)
  else fail(`${nameOf(file)} has no address.`)
  return null
}

/** Those who would be invited, `MOST` of them at most. */
async function* preview(operator: Operator, which: ContactFilter, total: number): AsyncGenerator<string> {
  const shown: Contact[] = []
  for await (const contact of operator.contacts({ ...which, state: 'listed' })) {
    if (shown.length === Math.min(total, MOST)) break
    shown.push(contact)
  }
  if (total > 0) yield* table(columns, shown)
  const more = total > shown.length ? `; these are the first ${number(shown.length)}` : ''
  yield `${counted(total, 'person', 'people')} would be invited${more}.\n`
}

const columns: Columns<Contact> = {
  'signed up': ({ createdAt }) => moment(createdAt),
  name: ({ name }) => name,
  address: ({ email }) => email,
  source: ({ source }) => sourceLabel(source) ?? '',
}
