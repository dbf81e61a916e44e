import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StoreUnavailable } from '../../waitlist/ports.ts'

/**
 * Counts the listed contacts in a file, in a thread of its own: among millions it takes a second, for which the thread that
 * writes would let signups wait.
 */
export function countListedIn(path: string): Promise<number> {
  // The same extension as this file: .ts in the repository, .js in the package.
  const worker = new Worker(new URL(`./counter${extname(import.meta.url)}`, import.meta.url), { workerData: path })
  let listed: number | undefined
  let why = 'the contacts were not counted'
  worker.on('message', count => {
    listed = count
  })
  worker.on('error', error => {
    why = (error as Error).message
  })
  return new Promise((resolve, reject) => {
    worker.on('exit', () => (listed === undefined ? reject(new StoreUnavailable(why)) : resolve(listed)))
  })
}
