import { removeAtProvider } from '../app/adapters.ts'
import { operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import type { Traces } from '../erase/store.ts'
import { confirmed, fail, mayProceed, misused } from './console.ts'
import { counted, moment, print } from './print.ts'

export interface RemoveOptions {
  readonly atProvider?: true
  readonly yes?: true
}

/**
 * Erases one person, after it has asked, and says who was told of them. The exit code is 0 only if nothing is left to do
 * and something was done: they were on the list, or `--at-provider` has removed them there.
 */
export async function removePerson(config: Config, address: string, options: RemoveOptions): Promise<void> {
  const { atProvider = false, yes = false } = options
  const title = config.provider?.vendor.title ?? null
  if (atProvider && title === null) return misused('--at-provider: no provider is set.')
  if (!mayProceed('erase', yes)) return
  const operator = operatorOf(config)
  const traces = await operator.traces(address)
  if (traces === undefined && !atProvider) return fail(`${address} is not on the list.`)
  const question =
    traces === undefined ? `${address} is not on the list. Remove it from ${title}?` : asking(address, traces)
  if (!yes && !(await confirmed(question))) return fail('nothing was erased.')

  const erased = await operator.erase(address)
  if (erased === undefined) fail(`${address} is not on the list.`)
  else await print(report(address, erased))
  if (title === null) return
  const again = `waitlist remove --at-provider ${address}`
  if (!atProvider) {
    if (erased !== undefined) await print([`${title} keeps what it was given. To remove that too: ${again}\n`])
    return
  }
  const problem = await atTheProvider(config, title, address)
  if (problem !== null) return fail(`${problem} Then run this again: ${again}`)
  const { name } = config.provider!
  if (erased?.inFlight.some(destination => destination === name || destination === `${name}-automation`)) {
    fail(`An attempt that was under way may add them at ${title} again. Run this again in a minute: ${again}`)
  }
}

/** Null: they are not there any more. */
async function atTheProvider(config: Config, title: string, address: string): Promise<string | null> {
  // Ends with the process.
  const removal = await removeAtProvider(config, address, new AbortController().signal)
  switch (removal.is) {
    case 'removed':
      await print([`${title} has removed them.\n`])
      // Also where this was all that an earlier call had left to do.
      process.exitCode = 0
      return null
    case 'absent':
      await print([`${title} does not know them.\n`])
      return null
    case 'by hand':
      await print([`${title}, by hand: ${removal.how}.\n`])
      process.exitCode = 1
      return null
    default:
      return `${title} has not removed them: ${removal.why}. See "waitlist check".`
  }
}

const asking = (address: string, { state, createdAt, deliveries }: Traces): string =>
  `Erase ${address}: ${state}, signed up ${moment(createdAt)}, ${countOf(deliveries)}?`

function* report(
  address: string,
  { state, createdAt, deliveries, delivered, tried, inFlight }: Traces,
): Generator<string> {
  const states = Object.entries(deliveries).flatMap(([state, count]) => (count > 0 ? `${count} ${state}` : []))
  const which = states.length === 0 ? '' : ` (${states.join(', ')})`
  yield `${address} was erased: ${state}, signed up ${moment(createdAt)}, ${countOf(deliveries)}${which}.\n`
  if (delivered.length > 0) yield `Already told, and not asked to forget: ${delivered.join(', ')}.\n`
  if (tried.length > 0) yield `Attempts were made, and may have left something there: ${tried.join(', ')}.\n`
  if (inFlight.length > 0) yield `An attempt is in flight, and may still arrive: ${inFlight.join(', ')}.\n`
}

function countOf(deliveries: Traces['deliveries']): string {
  const count = Object.values(deliveries).reduce((sum, each) => sum + each, 0)
  return counted(count, 'delivery', 'deliveries')
}
