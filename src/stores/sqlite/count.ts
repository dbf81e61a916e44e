import { extname } from 'node:path'
import type { Counts } from '../../waitlist/alerts/counts.ts'
import { StoreUnavailable } from '../../waitlist/ports/signups.ts'
import { threadOf } from './thread.ts'

/** What is counted in the file at `path`: the listed contacts, or everything, with the time in milliseconds since 1970. */
export type Count = { readonly path: string; readonly what: 'listed' | { readonly now: number } }

/**
 * Counts the listed contacts in a file, in a thread of its own: among millions it takes a second, for which the thread that
 * writes would let signups wait.
 */
export const countListedIn = (path: string): Promise<number> => counted({ path, what: 'listed' }) as Promise<number>

/** The same for everything that is counted. */
export const countAllIn = (path: string, now: number): Promise<Counts> =>
  counted({ path, what: { now } }) as Promise<Counts>

function counted(count: Count): Promise<number | Counts> {
  // The same extension as this file: .ts in the repository, .js in the package.
  const worker = threadOf(new URL(`./counter${extname(import.meta.url)}`, import.meta.url), count)
  let result: number | Counts | undefined
  let why = 'the contacts were not counted'
  worker.on('message', message => {
    result = message
  })
  worker.on('error', error => {
    why = (error as Error).message
  })
  return new Promise((resolve, reject) => {
    worker.on('exit', () => (result === undefined ? reject(new StoreUnavailable(why)) : resolve(result)))
  })
}
