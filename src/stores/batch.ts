import { StoreUnavailable } from '../waitlist/ports.ts'

/** The bounds of the queue before a store. */
export interface Bounds {
  /** Items in one transaction. */
  readonly batch: number
  /** Items that may wait for their transaction; one more is refused at once. */
  readonly queue: number
  /**
   * Milliseconds that an item may wait for its transaction, and that a transaction may take before everybody who waits
   * is told that the store is unavailable.
   */
  readonly patience: number
}

export const storeBounds: Bounds = { batch: 256, queue: 10_000, patience: 5_000 }

export interface Batches<Item, Answer> {
  /** Resolves with the answer for this item once the transaction that holds it is committed. */
  submit(item: Item): Promise<Answer>
  /** Refuses new items and resolves when every accepted one is answered. */
  drain(): Promise<void>
}

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly since: number
  readonly resolve: (answer: Answer) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Natural group commit: whatever queued while the last transaction was synced is the next one. No timer adds delay;
 * under load the batches grow by themselves.
 *
 * `commit` gets 1 to `bounds.batch` items in order of arrival and answers each of them; it is called for one batch at a
 * time. When it rejects, every item of the batch is refused with that reason. When it is slower than
 * `bounds.patience`, its items are refused although they may yet be stored: nothing untrue is said, and a repeated
 * signup does no harm. Should their answers come after all, `unheard` is told of each, to undo what only its caller could
 * have used.
 */
export function naturalBatches<Item, Answer>(
  commit: (items: readonly Item[]) => Promise<readonly Answer[]>,
  bounds: Bounds = storeBounds,
  unheard: (item: Item, answer: Answer) => void = () => {},
): Batches<Item, Answer> {
  let queue: Waiting<Item, Answer>[] = []
  let busy = false
  let stalled = false
  let drained: (() => void) | undefined

  const refuse = (waiting: readonly Waiting<Item, Answer>[], reason: unknown) => {
    for (const { reject } of waiting) reject(reason)
  }

  function refuseLate(): void {
    const oldest = performance.now() - bounds.patience
    const inTime = queue.findIndex(({ since }) => since >= oldest)
    if (inTime === 0) return
    const late = queue.splice(0, inTime === -1 ? queue.length : inTime)
    refuse(late, new StoreUnavailable(`a signup waited longer than ${bounds.patience} ms`))
  }

  async function run(): Promise<void> {
    for (refuseLate(); queue.length > 0; refuseLate()) {
      const batch = queue.length <= bounds.batch ? queue : queue.slice(0, bounds.batch)
      queue = batch === queue ? [] : queue.slice(bounds.batch)

      const timer = setTimeout(() => {
        stalled = true
        const reason = new StoreUnavailable(`a transaction took longer than ${bounds.patience} ms`)
        refuse(batch, reason)
        refuse(queue, reason)
        queue = []
      }, bounds.patience)
      try {
        const answers = await commit(batch.map(({ item }) => item))
        const isLate = stalled
        // The next batch is sent first: while everybody is answered, the database would have nothing to do.
        setImmediate(() => {
          batch.forEach(({ item, resolve }, position) => {
            const answer = answers[position] as Answer
            if (isLate) unheard(item, answer)
            else resolve(answer)
          })
        })
      } catch (reason) {
        refuse(batch, reason)
      } finally {
        clearTimeout(timer)
        stalled = false
      }
    }
    busy = false
    if (drained !== undefined) setImmediate(drained)
  }

  return {
    submit(item) {
      if (drained !== undefined) return Promise.reject(new StoreUnavailable('the store is closing'))
      if (stalled) return Promise.reject(new StoreUnavailable('the store does not answer'))
      if (queue.length >= bounds.queue) return Promise.reject(new StoreUnavailable('too many signups are waiting'))
      return new Promise((resolve, reject) => {
        queue.push({ item, since: performance.now(), resolve, reject })
        if (busy) return
        busy = true
        // After the requests that arrived in this turn of the event loop, so that they share the transaction.
        setImmediate(run)
      })
    },

    drain() {
      return new Promise(resolve => {
        drained = resolve
        // After the last answers, which may be about to be given.
        if (!busy) setImmediate(resolve)
      })
    },
  }
}
