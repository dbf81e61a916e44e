import { throttle } from '../quiet-log.ts'

/** Recurring work, such as due deliveries. */
export interface Work<Item> {
  /** Takes up to `most` items that nobody else holds. */
  take(most: number): Promise<readonly Item[]>
  /**
   * Ends soon after `signal`. `stops`: whether the loop does, which will abort it. Never rejects: if it does, that is a bug,
   * which is passed to `failed`.
   */
  do(item: Item, signal: AbortSignal, stops: () => boolean): Promise<void>
  /** Items under way at once. */
  readonly concurrency: number
  /** Milliseconds after which an item's `signal` is aborted. */
  readonly timeout: number
  /** Milliseconds until the next poll when nothing wakes the loop. */
  readonly rest: number
  /** Called when `take` rejects, at most once a minute; it is tried again after each rest. */
  failed(error: unknown): void
}

export interface Loop {
  start(): void
  /** There may be work: it is polled for soon. */
  wake(): void
  /** Polls once, without the loop. Resolves with the number of items when they are done. */
  once(): Promise<number>
  /** Takes nothing more, and resolves when all items are done. After `grace` milliseconds it aborts the rest. */
  stop(grace: number): Promise<void>
}

/** Milliseconds between two reports of a failure. */
const QUIET = 60_000
/** Milliseconds between a wake and the poll, so that one poll finds what many signups leave. */
const SOON = 100

/** Works while there is more to do than may be under way; then polls soon after it was woken, or after a rest. */
export function loop<Item>(work: Work<Item>): Loop {
  const underWay = new Map<Promise<void>, AbortController>()
  let stopped = false
  let rested: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  let woken = false
  /** Whether the last poll found as much as could begin, so that there may be more. */
  let full = false
  /** Whether an item has ended since then. */
  let freed = false
  let running: Promise<void> | undefined
  const mayTell = throttle(QUIET)

  function wake(): void {
    if (woken) return
    woken = true
    if (rested !== undefined) restFor(SOON)
  }

  function restFor(milliseconds: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => rested?.(), milliseconds)
  }

  /** Resolves with the number of items that were begun. */
  async function begin(): Promise<number> {
    freed = false
    const free = work.concurrency - underWay.size
    full = free <= 0
    if (full) return 0
    const items = await work.take(free)
    full = items.length === free
    for (const item of items) {
      const controller = new AbortController()
      const timer = setTimeout(() => controller.abort(), work.timeout)
      const done = work
        .do(item, controller.signal, () => stopped)
        .catch(work.failed)
        .finally(() => {
          clearTimeout(timer)
          underWay.delete(done)
          freed = true
          if (full) rested?.()
        })
      underWay.set(done, controller)
    }
    return items.length
  }

  async function rest(): Promise<void> {
    if (stopped || (full && freed)) return
    await new Promise<void>(resolve => {
      rested = resolve
      restFor(woken ? SOON : work.rest)
    })
    rested = undefined
    clearTimeout(timer)
  }

  async function run(): Promise<void> {
    while (!stopped) {
      woken = false
      try {
        await begin()
      } catch (error) {
        if (mayTell()) work.failed(error)
        woken = false
        full = false
      }
      await rest()
    }
  }

  return {
    start() {
      running ??= run()
    },
    wake,
    async once() {
      const count = await begin()
      await Promise.all(underWay.keys())
      return count
    },
    async stop(grace) {
      stopped = true
      rested?.()
      const timer = setTimeout(() => {
        for (const controller of underWay.values()) controller.abort()
      }, grace)
      await running
      await Promise.all(underWay.keys())
      clearTimeout(timer)
    },
  }
}
