import { StoreUnavailable } from './database.ts'

export interface BatchBounds {
  /** Items in one batch. */
  readonly batch: number
  /** Items that wait for a batch; more are refused. */
  readonly queue: number
  /** Milliseconds in which an item is answered. */
  readonly timeout: number
  /** Batches under way at once. */
  readonly parallel: number
}

export const storeBounds = { batch: 128, queue: 10_000, timeout: 5_000, parallel: 4 } as const

/** Milliseconds that signups may wait for their batch before further ones are refused. */
const TARGET = 100
/** Batches that a crowd may fill at once without being an overload. */
const BURST = 8

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly since: number
  resolve(answer: Answer): void
  reject(reason: Error): void
}

export type Batches<Item, Answer> = ReturnType<typeof batches<Item, Answer>>

/**
 * Group commit: those who come in one turn of the event loop, or while all batches are under way, share the next one. No timer
 * adds delay. An item that is not answered in time is refused although it may yet be stored: nothing untrue is said, and a
 * repeated signup does no harm.
 */
export function batches<Item, Answer>(
  commit: (items: readonly Item[]) => Promise<readonly Answer[]>,
  bounds: BatchBounds,
) {
  let queue: Waiting<Item, Answer>[] = []
  /** Those that are under way. */
  const pending = new Set<readonly Waiting<Item, Answer>[]>()
  let isScheduled = false
  let isClosed = false
  let drained: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined

  function refuse(late: Iterable<Waiting<Item, Answer>>, why: string): void {
    for (const each of late) each.reject(new StoreUnavailable(why))
  }

  function refuseLate(): void {
    timer = undefined
    const over = performance.now() - bounds.timeout
    const isLate = ({ since }: Waiting<Item, Answer>) => since <= over
    refuse([...pending].flat().filter(isLate), `the database did not answer within ${bounds.timeout} ms`)
    refuse(queue.filter(isLate), `the database did not answer within ${bounds.timeout} ms`)
    queue = queue.filter(each => !isLate(each))
    watch()
  }

  /** Looks for late ones four times in their time, while somebody waits. */
  function watch(): void {
    if (queue.length > 0 || pending.size > 0) timer ??= setTimeout(refuseLate, bounds.timeout / 4)
  }

  const mayBegin = () => queue.length > 0 && pending.size < bounds.parallel

  function flush(): void {
    isScheduled = false
    while (mayBegin()) void carryOut(queue.splice(0, bounds.batch))
    watch()
    if (pending.size > 0 || queue.length > 0) return
    clearTimeout(timer)
    timer = undefined
    drained?.()
  }

  async function carryOut(batch: readonly Waiting<Item, Answer>[]): Promise<void> {
    pending.add(batch)
    try {
      const answers = await commit(batch.map(({ item }) => item))
      for (let i = 0; i < batch.length; i++) batch[i]!.resolve(answers[i]!)
    } catch (error) {
      for (const { reject } of batch) reject(error as Error)
    }
    pending.delete(batch)
    schedule()
  }

  /** After the requests that arrived in this turn of the event loop, so that they share the batch. */
  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(flush)
  }

  return {
    submit(item: Item): Promise<Answer> {
      if (isClosed) return Promise.reject(new StoreUnavailable('the store is closing'))
      if (queue.length >= bounds.queue)
        return Promise.reject(new StoreUnavailable('too many are waiting for the database'))
      return new Promise((resolve, reject) => {
        queue.push({ item, since: performance.now(), resolve, reject })
        if (mayBegin()) schedule()
      })
    },
    /** How many wait. */
    waiting: () => queue.length,
    /** Whether more come than can be stored. To refuse one then keeps the others fast. */
    isBehind: () => queue.length >= BURST * bounds.batch && performance.now() - queue[0]!.since > TARGET,
    /** Takes no more, and resolves when all that were accepted are answered. */
    drain(): Promise<void> {
      isClosed = true
      return new Promise(resolve => {
        drained = resolve
        if (pending.size === 0 && queue.length === 0) resolve()
      })
    },
    /** Refuses all who wait, since a stop cannot wait any longer. */
    refuse(): void {
      isClosed = true
      refuse([...[...pending].flat(), ...queue], 'the store is closing, and could not commit in time')
      queue = []
    },
  }
}
