import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StoreUnavailable, type Tx, type Value } from '../database.ts'
import type { Answer, Checkpoint, Request, ThreadData } from './thread.ts'

/** What is done beside the main thread, one thing after the other. The thread begins with the first of them. */
interface Background {
  /** Runs reads that see one moment. */
  read<T>(use: (tx: Tx) => Promise<T>): Promise<T>
  isReading(): boolean
  /** Returns the pages that the log has then; 0: it was begun anew. */
  checkpoint(how: Checkpoint): Promise<number>
  close(): Promise<void>
}

export function background(data: ThreadData, base: Pick<Tx, 'dialect'>, clock: () => number): Background {
  let worker: Worker | undefined
  let ended: Promise<void> = Promise.resolve()
  const asked: ((answer: Answer) => void)[] = []
  let reading: Promise<unknown> = Promise.resolve()
  let reads = 0

  function started(): Worker {
    if (worker !== undefined) return worker
    // The same extension as this file: .ts in the repository, .js in the package.
    worker = new Worker(new URL(`./thread${extname(import.meta.url)}`, import.meta.url), { workerData: data })
    worker.on('message', (answer: Answer) => asked.shift()?.(answer))
    let why = 'the background thread ended'
    worker.on('error', error => {
      why = (error as Error).message
    })
    ended = new Promise(resolve => {
      worker!.on('exit', () => {
        // The next request starts another one.
        worker = undefined
        for (const answer of asked.splice(0)) answer({ error: why, errcode: undefined })
        resolve()
      })
    })
    return worker
  }

  async function ask(request: Request): Promise<Exclude<Answer, { error: string }>> {
    const answer = await new Promise<Answer>(resolve => {
      asked.push(resolve)
      started().postMessage(request)
    })
    if ('error' in answer) throw Object.assign(new StoreUnavailable(answer.error), { errcode: answer.errcode })
    return answer
  }

  async function all<Result>(text: string, values?: readonly Value[]): Promise<readonly Result[]> {
    const answer = await ask({ do: 'read', text, values })
    return 'rows' in answer ? (answer.rows as readonly Result[]) : []
  }

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
    read(use) {
      reads++
      const result = reading.then(() => readNow(use)).finally(() => reads--)
      reading = result.catch(() => {})
      return result
    },
    isReading: () => reads > 0,
    async checkpoint(how) {
      const answer = await ask({ do: 'checkpoint', how })
      return 'left' in answer ? answer.left : 0
    },
    async close() {
      await reading
      worker?.postMessage('close')
      await ended
    },
  }
}
