import { StoreUnavailable } from '../waitlist/ports.ts'

/** The bounds of the queue before a store. */
export interface Bounds {
  /** Items in one commit. */
  readonly batch: number
  /** Items that may wait for their commit; one more is refused at once. */
  readonly queue: number
  /** Milliseconds that an item may wait for its commit, and that a commit may take before all who wait are refused. */
  readonly timeout: number
}

export const storeBounds: Bounds = { batch: 256, queue: 10_000, timeout: 5_000 }

export interface Batches<Item, Answer> {
  /** Resolves with the answer for this item once the transaction that holds it is committed. */
  submit(item: Item): Promise<Answer>
  /** Refuses new items and resolves when every accepted one is answered. */
  drain(): Promise<void>
  /** Refuses every item now, also those whose commit is under way: they may yet be stored. */
  refuse(): void
}

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly since: number
  readonly resolve: (answer: Answer) => void
  readonly reject: (reason: unknown) => void
}

export interface BatchesOptions<Item, Answer> {
  readonly bounds?: Bounds | undefined
  /** Commits that may be under way at once, where a store merges what waits for it. */
  readonly ahead?: number
  /** Told of each answer that came after its item was refused, to undo what only its caller could have used. */
  readonly unheard?: (item: Item, answer: Answer) => void
}

/**
 * Natural group commit: what queued while the last commit was synced is the next one. No timer adds delay; under load
 * the batches grow by themselves.
 *
 * `commit` gets 1 to `bounds.batch` items in order of arrival and answers each of them. When it rejects, every item of
 * the batch is refused with that reason. When it is slower than `bounds.timeout`, its items are refused although they
 * may yet be stored: nothing untrue is said, and a repeated signup does no harm.
 */
export function naturalBatches<Item, Answer>(
  commit: (items: readonly Item[]) => Promise<readonly Answer[]>,
  { bounds = storeBounds, ahead = 1, unheard = () => {} }: BatchesOptions<Item, Answer> = {},
): Batches<Item, Answer> {
  let queue: Waiting<Item, Answer>[] = []
  const underWay = new Set<readonly Waiting<Item, Answer>[]>()
  /** Commits that are late: while there is one, nothing more is accepted. */
  let late = 0
  let scheduled = false
  let refusing = false
  let drained: (() => void) | undefined

  const refuse = (waiting: readonly Waiting<Item, Answer>[], reason: unknown) => {
    for (const { reject } of waiting) reject(reason)
  }

  function refuseLate(): void {
    const oldest = performance.now() - bounds.timeout
    if (queue.length === 0 || queue[0]!.since >= oldest) return
    const inTime = queue.findIndex(({ since }) => since >= oldest)
    const refused = queue.splice(0, inTime === -1 ? queue.length : inTime)
    refuse(refused, new StoreUnavailable(`a signup waited longer than ${bounds.timeout} ms`))
  }

  function run(): void {
    scheduled = false
    refuseLate()
    while (queue.length > 0 && underWay.size < ahead) {
      const batch = queue.length <= bounds.batch ? queue : queue.slice(0, bounds.batch)
      queue = batch === queue ? [] : queue.slice(bounds.batch)
      void carryOut(batch)
    }
    if (drained !== undefined && underWay.size === 0) setImmediate(drained)
  }

  async function carryOut(batch: readonly Waiting<Item, Answer>[]): Promise<void> {
    underWay.add(batch)
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      late++
      const reason = new StoreUnavailable(`a transaction took longer than ${bounds.timeout} ms`)
      refuse(batch, reason)
      refuse(queue, reason)
      queue = []
    }, bounds.timeout)
    try {
      const answers = await commit(batch.map(({ item }) => item))
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
    }
    clearTimeout(timer)
    if (isLate) late--
    underWay.delete(batch)
    run()
  }

  return {
    submit(item) {
      if (drained !== undefined || refusing) return Promise.reject(new StoreUnavailable('the store is closing'))
      if (late > 0) return Promise.reject(new StoreUnavailable('the store does not answer'))
      if (queue.length >= bounds.queue) return Promise.reject(new StoreUnavailable('too many signups are waiting'))
      return new Promise((resolve, reject) => {
        queue.push({ item, since: performance.now(), resolve, reject })
        if (scheduled || underWay.size >= ahead) return
        scheduled = true
        // After the requests that arrived in this turn of the event loop, so that they share the commit.
        setImmediate(run)
      })
    },

    drain() {
      return new Promise(resolve => {
        drained = resolve
        // After the last answers, which may be about to be given.
        if (refusing || (!scheduled && underWay.size === 0)) setImmediate(resolve)
      })
    },

    refuse() {
      refusing = true
      const reason = new StoreUnavailable('the store is closing, and could not commit in time')
      for (const batch of underWay) refuse(batch, reason)
      refuse(queue, reason)
      queue = []
      drained?.()
    },
  }
}
