import type { LookupAddress } from 'node:dns'
import { lookup as ask } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { within } from '../waitlist/timers.ts'

/** Milliseconds that a connection waits for the address of a name. */
const LONGEST = 1_500

const asked = new Map<string, Promise<readonly LookupAddress[]>>()

/**
 * Asks the operating system for the addresses of a name. Where no name server answers, it gives up after ten seconds or
 * more, which nobody can shorten, and until then it keeps one of a few threads. So each name is asked for once at a time.
 */
export const lookup: LookupFunction = async (name, options, callback) => {
  if (!asked.has(name)) {
    asked.set(
      name,
      ask(name, { ...options, all: true }).finally(() => asked.delete(name)),
    )
  }
  const late = new Error(`no name server answers for ${name}`)
  const addresses = await within(asked.get(name)!, LONGEST, late).catch((error: Error) => error)
  if (addresses instanceof Error) callback(addresses, [])
  else if (options.all) callback(null, [...addresses])
  else callback(null, addresses[0]!.address, addresses[0]!.family)
}
