import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import {
  type Admission,
  type Beginning,
  CannotOpen,
  type Conclusion,
  type Delivery,
  type Registration,
  type Settlement,
  type Store,
  StoreUnavailable,
} from '../waitlist/ports.ts'
import type { Signup } from '../waitlist/signup.ts'
import { type Bounds, naturalBatches } from './batch.ts'
import { givingBack } from './give-back.ts'
import { leadsOutside, type Result, type Results, STILL_PENDING, type Step } from './sqlite/steps.ts'
import type { Reply, Request, SqliteOptions } from './sqlite/worker.ts'

/** Room for the write-ahead log, a checkpoint and a person at work. */
const MINIMUM_FREE = 64 * 1024 * 1024

export type SqliteStoreOptions = Pick<SqliteOptions, 'path' | 'eventName'> &
  Partial<SqliteOptions> & {
    readonly bounds?: Bounds
    /** Milliseconds since 1970. */
    readonly clock?: () => number
  }

/**
 * The embedded store: one SQLite file, written by one connection in one worker thread, fully synced.
 *
 * @throws {CannotOpen} when the file cannot be used as it is.
 */
export async function sqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { bounds, clock = Date.now, provider = null, ...rest } = options
  const thread = await startThread({ minimumFree: MINIMUM_FREE, destinations: [], provider, ...rest })

  const step = async (steps: readonly Step[]): Promise<readonly Result[]> => {
    const reply = await thread.ask({ do: 'steps', steps, now: clock() })
    if (reply.is !== 'stepped') throw unavailable(reply)
    return reply.results
  }
  // Apart, so that an attempt can be ended on a disk that is too full to begin another.
  const endings = naturalBatches<Step, Result>(step, bounds)
  const beginnings = naturalBatches<Step, Result>(step, bounds, (begun, result) => {
    if (begun.do === 'claim') giveBack({ deliveries: result as Results['claim'] })
    if (begun.do === 'begin due') giveBack({ registrations: result as Results['begin due'] })
    const beginning = begun.do === 'begin' && (result as Beginning)
    if (beginning && beginning.is === 'ours') giveBack({ registrations: [beginning.registration] })
  })
  const take = <Do extends Step['do']>(step: Step & { readonly do: Do }) =>
    (leadsOutside(step) ? beginnings : endings).submit(step) as Promise<Results[Do]>

  const conclude = ({ contact, token }: Registration, conclusion: Conclusion) =>
    take({ do: 'conclude', contactId: contact.id, token, conclusion })
  const settle = ({ number, token }: Delivery, settlement: Settlement) =>
    take({ do: 'settle', number, token, settlement })

  const giveBack = givingBack({ conclude, settle })

  const signups = naturalBatches<Signup, Admission>(
    async signups => {
      const now = clock()
      const reply = await thread.ask({
        do: 'admit',
        batch: {
          names: signups.map(({ name }) => name).join('\n'),
          emails: signups.map(({ email }) => email).join('\n'),
        },
        now,
      })
      if (reply.is !== 'admitted') throw unavailable(reply)
      return reply.ids.split('\n').map((id, i) => {
        if (id === '') return { is: 'already listed' }
        if (id.startsWith(STILL_PENDING)) return { is: 'still pending', contactId: id.slice(STILL_PENDING.length) }
        if (provider === null) return { is: 'listed now', contactId: id }
        const { name, email } = signups[i]!
        const contact = { id, name, email, state: 'pending', createdAt: new Date(now) } as const
        return { is: 'pending now', registration: { contact, token: id, doubt: false, attempts: 0 } }
      })
    },
    bounds,
    (_, admission) => {
      if (admission.is === 'pending now') giveBack({ registrations: [admission.registration] })
    },
  )

  let checking: Promise<Reply> | undefined

  return {
    admit: signups.submit,
    begin: (contactId, provider) => take({ do: 'begin', contactId, provider }),
    beginDue: (provider, most, early) => take({ do: 'begin due', provider, most, early }),
    conclude,
    async hasten() {
      let more = true
      while (more) more = await take({ do: 'hasten' })
    },
    claim: (destination, most) => take({ do: 'claim', destination, most }),
    settle,
    failure: thread.failure,
    async check() {
      // While a slow disk owes an answer, nobody asks again.
      checking ??= thread.ask({ do: 'check' }).finally(() => {
        checking = undefined
      })
      const reply = await checking
      if ('why' in reply) throw new StoreUnavailable(reply.why)
    },
    async close() {
      await Promise.all([signups.drain(), beginnings.drain(), endings.drain()])
      await thread.close()
    },
  }
}

const unavailable = (reply: Reply) => new StoreUnavailable('why' in reply ? reply.why : 'no answer')

interface Thread {
  /** Never rejects. After a failure every answer is `failed`, after a close `unavailable`. */
  ask(request: Request): Promise<Reply>
  readonly failure: Promise<Error>
  close(): Promise<void>
}

async function startThread(options: SqliteOptions): Promise<Thread> {
  // The same ending as this file: .ts in the repository, .js in the package. A thread has a compile cache of its own,
  // to be turned on before its first file is read (bin/waitlist.js says why).
  const file = new URL(`./sqlite/worker${extname(import.meta.url)}`, import.meta.url).href
  const code = `import { enableCompileCache as on } from 'node:module'; on(); await import(${JSON.stringify(file)})`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), { workerData: options })
  const asked: ((reply: Reply) => void)[] = []
  const failure = Promise.withResolvers<Error>()
  let over: Reply | undefined
  let closing = false

  const fail = (why: string) => {
    over ??= { is: 'failed', why }
    failure.resolve(new Error(why))
    for (const answer of asked.splice(0)) answer(over)
    worker.terminate()
  }
  worker.on('message', (reply: Reply) => {
    asked.shift()?.(reply)
    if (reply.is === 'failed') fail(reply.why)
  })
  worker.on('error', error => fail(`the database thread died: ${(error as Error).message}`))
  const exited = new Promise<void>(resolve => {
    worker.on('exit', () => {
      if (!closing) fail('the database thread ended')
      resolve()
    })
  })

  const opened = await new Promise<Reply>(resolve => asked.push(resolve))
  if (opened.is === 'refused' || opened.is === 'failed') {
    throw new CannotOpen(opened.is === 'refused' ? opened.why : `${options.path} cannot be opened: ${opened.why}`)
  }

  const ask = (request: Request) => {
    if (over !== undefined) return Promise.resolve(over)
    return new Promise<Reply>(resolve => {
      asked.push(resolve)
      worker.postMessage(request)
    })
  }
  return {
    ask,
    failure: failure.promise,
    async close() {
      closing = true
      await ask({ do: 'close' })
      over ??= { is: 'unavailable', why: 'the store is closed' }
      for (const answer of asked.splice(0)) answer(over)
      await exited
    },
  }
}
