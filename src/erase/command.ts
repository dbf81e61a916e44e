import type { Config } from '../config/load.ts'
import type { Removal } from '../delivery/destination.ts'
import { ask, type ExitCode, fail, type Io, misused, moment, print } from '../operate/output.ts'
import { withDatabase } from '../store/open.ts'
import { erase, type Traces, tracesOf } from './store.ts'

export interface RemoveOptions {
  readonly atProvider?: true
  readonly yes?: true
}

/**
 * Erases one person, after it has asked, and says who has their data. Exit code 0 only if nothing is left to do and
 * something was done: they were on the list, or `removeThere` has removed them from the provider.
 */
export async function remove(
  { store, provider }: Config,
  address: string,
  { atProvider, yes }: RemoveOptions,
  removeThere: (email: string) => Promise<Removal>,
  io: Io,
): Promise<ExitCode> {
  if (atProvider && provider === null) return misused(io, '--at-provider: no provider is set.')
  const title = provider?.vendor.title
  const erased = await withDatabase(store, async database => {
    const traces = await database.read(tx => tracesOf(tx, address))
    if (traces === undefined && !atProvider) return undefined
    const unlisted = `${address} is not on the list. Remove it from ${title}?`
    const refused = await ask(io, yes, traces === undefined ? unlisted : `Erase ${who(address, traces)}?`)
    if (refused !== undefined) return refused
    const erased = await database.transaction(tx => erase(tx, address), { repeatable: false })
    if (erased !== undefined) await database.truncateWal()
    return erased
  })
  if (typeof erased === 'number') return erased
  if (erased === undefined) fail(io, `${address} is not on the list.`)
  else await print(io, report(address, erased))
  const again = `waitlist remove --at-provider ${address}`
  if (!atProvider || provider === null) {
    if (erased === undefined) return 1
    if (provider !== null) await print(io, [`${title} keeps what it was given. To remove that too: ${again}\n`])
    return 0
  }
  const removal = await removeThere(address)
  if ('why' in removal) return fail(io, `${title} has not removed them: ${removal.why}. Then run this again: ${again}`)
  if (removal.is === 'removed') await print(io, [`${title} has removed them.\n`])
  else if (removal.is === 'absent') await print(io, [`${title} does not know them.\n`])
  else if ('how' in removal) await print(io, [`${title}, by hand: ${removal.how}.\n`])
  const there = [provider.name, `${provider.name}-automation`]
  if (erased?.inFlight.some(destination => there.includes(destination))) {
    return fail(io, `An attempt in flight may add them at ${title} again. Run this again in a minute: ${again}`)
  }
  const isDone = removal.is === 'removed' || (removal.is === 'absent' && erased !== undefined)
  return isDone ? 0 : 1
}

const who = (address: string, { state, createdAt }: Traces): string =>
  `${address}, ${state}, who signed up ${moment(createdAt)}`

function* report(address: string, traces: Traces): Generator<string> {
  const { delivered, tried, inFlight } = traces
  yield `Erased: ${who(address, traces)}.\n`
  if (delivered.length > 0) yield `Delivered before, and not erased there: ${delivered.join(', ')}.\n`
  if (tried.length > 0) yield `Attempts were made, and may have left something there: ${tried.join(', ')}.\n`
  if (inFlight.length > 0) yield `An attempt is in flight, and may still arrive: ${inFlight.join(', ')}.\n`
}
