import type { Commits } from '../telemetry/telemetry.ts'
import { StoreUnavailable } from '../waitlist/ports/signups.ts'

/** The bounds of the queue before a store. */
export interface Bounds {
  /** Items in one commit. */
  readonly batch: number
  /** Items that may wait for their commit; one more is refused at once. A waiting signup takes about 10 KB, its request included. */
  readonly queue: number
  /** Milliseconds in which an item is answered, the wait for its turn included; then it is refused. */
  readonly timeout: number
}

export const storeBounds: Bounds = { batch: 2_048, queue: 8_192, timeout: 5_000 }

/**
 * Batches that may be under way at once, and the items that are sent without waiting for the end of the turn. A third batch is
 * at least as large as the first two, and each further one as all that are under way.
 */
export interface Ahead {
  readonly batches: number
  readonly items: number
}

/** One batch is stored while the next arrives. Smaller ones take more processor time, larger ones leave the store idle on 64 connections. */
export const signupsAhead: Ahead = { batches: 2, items: 32 }

/**
 * Milliseconds that the first in the queue may have waited. More than a commit takes on a slow disk, since what comes during
 * one waits for its end. At three times what a store can take, it lets a queue grow to 300 ms.
 */
const TARGET = 100

/** Milliseconds; a commit that takes longer has too many items, unless it has no more than so many: then the disk is slow. */
const LONG = 100
const LEAST = 256

/** Since when the next one waits, if nobody does. */
const NOBODY = Number.POSITIVE_INFINITY

export interface Batches<Item, Answer> {
  /** Resolves with the answer for this item once the transaction that holds it is committed. */
  submit(item: Item): Promise<Answer>
  /** Whether the queue is too old or too long for another item. Not to submit it keeps the others in time. */
  isBehind(): boolean
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

interface Commit<Item, Answer> {
  readonly batch: readonly Waiting<Item, Answer>[]
  /** How many, from the first, were refused while it was under way. */
  refused: number
}

/** A transaction of a store, which may hold several batches. */
export interface Transaction {
  readonly items: number
  /** Milliseconds that it took by the store's own clock. */
  readonly took: number
}

export interface BatchesOptions {
  readonly bounds?: Bounds | undefined
  /** By default one batch after the other, each at the end of a turn. */
  readonly ahead?: Ahead
  /** The transaction that the last answers ended, the same for all its batches; null: it is not known, and nothing is adapted. */
  readonly ended?: () => Transaction | null
  /** Null: nothing is measured. */
  readonly measured?: Commits | null | undefined
  /** A monotonic clock, in milliseconds. */
  readonly clock?: () => number
}

/**
 * Natural group commit: what queued while the last commit was synced is the next one. No timer adds delay; under load
 * the batches grow by themselves.
 *
 * `commit` gets 1 to `bounds.batch` items in order of arrival and answers each of them. When it rejects, every item of
 * the batch is refused with that reason. An item that is not answered within `bounds.timeout` is refused although it may
 * yet be stored: nothing untrue is said, and a repeated signup does no harm.
 */
export function groupCommit<Item, Answer>(
  commit: (items: readonly Item[]) => Promise<readonly Answer[]>,
  {
    bounds = storeBounds,
    ahead = { batches: 1, items: Number.POSITIVE_INFINITY },
    ended = () => null,
    measured = null,
    clock = monotonic,
  }: BatchesOptions = {},
): Batches<Item, Answer> {
  /** Items in the next commit. */
  let most = bounds.batch
  let queue: Waiting<Item, Answer>[] = []
  const underWay = new Set<Commit<Item, Answer>>()
  /** Items of those. */
  let sent = 0
  /** The transaction that the size of the next commit is adapted to. */
  let last: Transaction | null = null
  /** Commits whose items were all refused: while there is one, nothing more is accepted. */
  let late = 0
  let timer: NodeJS.Timeout | undefined
  let scheduled = false
  let refusing = false
  let drained: (() => void) | undefined
  if (measured !== null) measured.waiting = () => queue.length

  /** Refuses those in a commit who have waited since `over` or longer. Returns since when the next one waits. */
  function refuseIn(commit: Commit<Item, Answer>, over: number, reason: StoreUnavailable): number {
    const { batch } = commit
    const wasLate = commit.refused === batch.length
    while (commit.refused < batch.length && batch[commit.refused]!.since <= over) {
      batch[commit.refused]!.reject(reason)
      commit.refused++
    }
    if (commit.refused < batch.length) return batch[commit.refused]!.since
    if (!wasLate) late++
    return NOBODY
  }

  /** The same in the queue; all of it while a commit is late, since the store does not answer then. */
  function refuseInQueue(over: number, reason: StoreUnavailable): number {
    const inTime = late > 0 ? -1 : queue.findIndex(({ since }) => since > over)
    const refused = queue.splice(0, inTime === -1 ? queue.length : inTime)
    for (const { reject } of refused) reject(reason)
    return queue.length > 0 ? queue[0]!.since : NOBODY
  }

  /** Refuses all whose time is over, and comes back for the next. */
  function refuseLate(): void {
    // With those who are due within a moment, so that it does not come back for each of them.
    const over = clock() - 0.99 * bounds.timeout
    const reason = new StoreUnavailable(`a signup was not stored within ${bounds.timeout} ms`)
    let next = NOBODY
    for (const commit of underWay) next = Math.min(next, refuseIn(commit, over, reason))
    next = Math.min(next, refuseInQueue(over, reason))
    clearTimeout(timer)
    timer = next === NOBODY ? undefined : wake(next)
  }
  const wake = (oldest: number) => setTimeout(refuseLate, oldest + bounds.timeout - clock())

  /** Two commits of what one may hold, at most: nobody waits for more. Where many wait, few large batches cost less. */
  const hasRoom = () => underWay.size < ahead.batches && sent < most && (underWay.size < 2 || queue.length >= sent)

  function run(): void {
    scheduled = false
    if (queue.length > 0 && queue[0]!.since <= clock() - bounds.timeout) refuseLate()
    while (queue.length > 0 && hasRoom()) {
      const batch = queue.length <= most ? queue : queue.slice(0, most)
      queue = batch === queue ? [] : queue.slice(most)
      void carryOut({ batch, refused: 0 })
    }
    if (underWay.size > 0) return
    clearTimeout(timer)
    timer = undefined
    drained?.()
  }

  /** Half as many after a long transaction, since who comes during one waits for it and for the next; twice as many after a short one. */
  function adapted({ items: size, took }: Transaction): number {
    if (took > LONG) return Math.max(Math.min(LEAST, bounds.batch), Math.floor(Math.min(most, size) / 2))
    return size >= most && took < LONG / 4 ? Math.min(bounds.batch, 2 * most) : most
  }

  async function carryOut(one: Commit<Item, Answer>): Promise<void> {
    const { batch } = one
    underWay.add(one)
    sent += batch.length
    timer ??= wake(batch[0]!.since)
    const began = measured === null ? 0 : clock()
    try {
      const answers = await commit(batch.map(({ item }) => item))
      measured?.note((clock() - began) / 1000, batch.length)
      const transaction = ended()
      // One may have ended several batches, which are all told of it.
      if (transaction !== null && transaction !== last) {
        last = transaction
        most = adapted(transaction)
      }
      const { refused } = one
      batch.forEach(({ resolve }, position) => {
        if (position >= refused) resolve(answers[position] as Answer)
      })
    } catch (reason) {
      for (const { reject } of batch.slice(one.refused)) reject(reason)
    }
    if (one.refused === batch.length) late--
    underWay.delete(one)
    sent -= batch.length
    run()
  }

  return {
    submit(item) {
      if (drained !== undefined || refusing) return Promise.reject(new StoreUnavailable('the store is closing'))
      if (late > 0) return Promise.reject(new StoreUnavailable('the store does not answer'))
      if (queue.length >= bounds.queue) return Promise.reject(new StoreUnavailable('too many signups are waiting'))
      return new Promise((resolve, reject) => {
        queue.push({ item, since: clock(), resolve, reject })
        if (!hasRoom()) return
        if (queue.length >= Math.min(most, ahead.items)) return run()
        if (scheduled) return
        scheduled = true
        // After the requests that arrived in this turn of the event loop, so that they share the commit.
        setImmediate(run)
      })
    },

    isBehind() {
      // What the next commit takes is no overload, however slow the disk is.
      if (queue.length < most) return false
      return queue.length >= bounds.queue || clock() - queue[0]!.since > TARGET
    },

    drain() {
      return new Promise(resolve => {
        drained = resolve
        if (refusing || (!scheduled && underWay.size === 0)) resolve()
      })
    },

    refuse() {
      refusing = true
      const reason = new StoreUnavailable('the store is closing, and could not commit in time')
      for (const commit of underWay) {
        if (commit.refused === commit.batch.length) continue
        while (commit.refused < commit.batch.length) commit.batch[commit.refused++]!.reject(reason)
        late++
      }
      for (const { reject } of queue) reject(reason)
      queue = []
      clearTimeout(timer)
      drained?.()
    },
  }
}

const monotonic = () => performance.now()
