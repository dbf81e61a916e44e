import type { Config } from '../config/load.ts'
import { ask, counted, type ExitCode, fail, type Io, misused, print } from '../operate/output.ts'
import type { Changed } from '../store/bulk.ts'
import { countContacts } from '../store/contacts.ts'
import { withDatabase } from '../store/open.ts'
import { discard, type HeldFilter, release } from './store.ts'

interface DecideOptions extends Omit<HeldFilter, 'addresses'> {
  readonly all?: true
  readonly yes?: true
}

/** Lets held signups in, in the order in which they came. */
export async function releaseHeld(
  { store, provider, signupTargets }: Config,
  addresses: readonly string[],
  options: DecideOptions,
  io: Io,
): Promise<ExitCode> {
  const which = chosen(addresses, options)
  if (which === null) return misused(io, HOW)
  return withDatabase(store, async database => {
    const code = await report('released', io, await release(database, which, signupTargets))
    if (code === 0 && provider !== null) {
      await print(io, [`The running service hands them over to ${provider.vendor.title}.\n`])
    }
    return code
  })
}

/** Deletes held signups, after it has asked. */
export async function discardHeld(
  { store }: Config,
  addresses: readonly string[],
  { yes, ...options }: DecideOptions,
  io: Io,
): Promise<ExitCode> {
  const which = chosen(addresses, options)
  if (which === null) return misused(io, HOW)
  return withDatabase(store, async database => {
    const count = await database.read(tx => countContacts(tx, { ...which, state: 'held' }))
    const refused = await ask(io, yes, `Delete ${counted(count, 'held signup')}?`)
    return refused ?? report('discarded', io, await discard(database, which))
  })
}

const HOW =
  'Give addresses, or --all, or any of --reason, --search, --since, --until and --source. To see who is held:' +
  ' waitlist list --state held'

/** Null: the command line does not say which. */
function chosen(addresses: readonly string[], { all, ...filter }: DecideOptions): HeldFilter | null {
  const ways = [addresses.length > 0, all, Object.keys(filter).length > 0].filter(Boolean)
  if (ways.length !== 1) return null
  return addresses.length > 0 ? { addresses } : filter
}

async function report(done: string, io: Io, { done: count, missing }: Changed): Promise<ExitCode> {
  if (count > 0) await print(io, [`${counted(count, 'signup was', 'signups were')} ${done}.\n`])
  if (missing.length > 0) {
    const reasons = missing.map(({ address }) => `${address} is not held.`)
    return fail(io, `not all could be ${done}:`, reasons)
  }
  return count === 0 ? fail(io, 'nothing was found.') : 0
}
