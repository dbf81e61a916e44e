import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StoreUnavailable, type Tx, type Value } from '../database.ts'
import type { Answer, Checkpoint, Request, ThreadData } from './thread.ts'

/** What is done beside the main thread, one thing after the other. The thread begins with the first of them. */
export function background(data: ThreadData, base: Pick<Tx, 'dialect'>, clock: () => number) {
  let worker: Worker | undefined
  let last: Promise<unknown> = Promise.resolve()
  let reading: Promise<unknown> = Promise.resolve()
  let reads = 0

  async function askNow(request: Request): Promise<unknown> {
    // The same extension as this file: .ts in the repository, .js in the package.
    worker ??= new Worker(new URL(`./thread${extname(import.meta.url)}`, import.meta.url), { workerData: data })
    worker.postMessage(request)
    const [answer] = (await once(worker, 'message').catch(({ message }) => {
      // The next request starts another one.
      worker = undefined
      return [{ error: message }]
    })) as [Answer]
    if (answer.error === undefined) return answer.result
    throw Object.assign(new StoreUnavailable(answer.error), { errcode: answer.errcode })
  }

  function ask(request: Request): Promise<unknown> {
    const answer = last.then(() => askNow(request))
    last = answer.catch(() => {})
    return answer
  }

  const all = async <Result>(text: string, values?: readonly Value[]) =>
    (await ask({ do: 'read', text, values })) as readonly Result[]

  async function readNow<T>(use: (tx: Tx) => Promise<T>): Promise<T> {
    const refuse = () => Promise.reject(new Error('this transaction only reads'))
    await all('begin')
    try {
      return await use({ ...base, now: clock(), again: false, all, run: refuse, insert: refuse, insertNew: refuse })
    } finally {
      await all('commit').catch(() => {})
    }
  }

  return {
    /** Runs reads that see one moment. */
    read<T>(use: (tx: Tx) => Promise<T>): Promise<T> {
      reads++
      const result = reading.then(() => readNow(use)).finally(() => reads--)
      reading = result.catch(() => {})
      return result
    },
    isReading: () => reads > 0,
    /** Returns the pages that the log has then; 0: it was begun anew. */
    checkpoint: (how: Checkpoint) => ask({ do: 'checkpoint', how }) as Promise<number>,
    async close(): Promise<void> {
      await reading
      await last
      await worker?.terminate()
    },
  }
}
