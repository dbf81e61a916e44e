/** Work that is found again and again, such as what is due in the store. */
export interface Work<Item> {
  /** Takes up to `most` items that nobody else has. */
  take(most: number): Promise<readonly Item[]>
  /** Ends soon after `deadline`. Never rejects: if it does, that is a bug, of which `failed` is told. */
  do(item: Item, deadline: AbortSignal): Promise<void>
  /** Items at once. */
  readonly concurrency: number
  /** Milliseconds for one item. */
  readonly timeout: number
  /** Milliseconds until the next look when nobody wakes the loop. */
  readonly rest: number
  /** Told when `take` rejects, at once and then once a minute; it is tried again after each rest. */
  failed(error: unknown): void
}

export interface Loop {
  start(): void
  /** There may be something to do now. */
  wake(): void
  /** One look without the loop: takes what there is and resolves with the number of items when they are done. */
  once(): Promise<number>
  /** Takes nothing more and resolves when all is done. What is still under way after `grace` milliseconds is cut. */
  stop(grace: number): Promise<void>
}

/** Milliseconds between two words about the same trouble. */
const QUIET = 60_000

/** Does work as long as there is some; then looks again when woken, or after a rest. */
export function loop<Item>(work: Work<Item>): Loop {
  const underWay = new Map<Promise<void>, AbortController>()
  let stopped = false
  let rested: (() => void) | undefined
  let woken = false
  let running: Promise<void> | undefined
  let quietUntil = 0

  const wake = () => {
    woken = true
    rested?.()
  }

  /** Resolves with the number of items that were begun. */
  async function begin(): Promise<number> {
    const free = work.concurrency - underWay.size
    if (free <= 0) return 0
    const items = await work.take(free)
    for (const item of items) {
      const controller = new AbortController()
      const timer = setTimeout(() => controller.abort(), work.timeout)
      const done = work
        .do(item, controller.signal)
        .catch(work.failed)
        .finally(() => {
          clearTimeout(timer)
          underWay.delete(done)
          wake()
        })
      underWay.set(done, controller)
    }
    return items.length
  }

  async function rest(): Promise<void> {
    if (woken || stopped) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>(resolve => {
      rested = resolve
      timer = setTimeout(resolve, work.rest)
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
        if (performance.now() >= quietUntil) {
          quietUntil = performance.now() + QUIET
          work.failed(error)
        }
        woken = false
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
      wake()
      const timer = setTimeout(() => {
        for (const controller of underWay.values()) controller.abort()
      }, grace)
      await running
      await Promise.all(underWay.keys())
      clearTimeout(timer)
    },
  }
}
