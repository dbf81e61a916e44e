/** How often the other side may be called. */
export interface Rate {
  /** Calls that may begin within any `per` milliseconds. */
  readonly calls: number
  readonly per: number
  /** Calls that may be under way at once. */
  readonly connections: number
}

/** To be called once, when the call is over. */
export type Leave = () => void

/** Time as a pace sees it; a test may step it. */
export interface Clock {
  /** Milliseconds that only grow. */
  now(): number
  /** Calls `run` in about `wait` milliseconds, unless the function that it returns is called before. */
  after(wait: number, run: () => void): () => void
}

const realTime: Clock = {
  now: () => performance.now(),
  after(wait, run) {
    const timer = setTimeout(run, wait)
    return () => clearTimeout(timer)
  },
}

export interface Pace {
  /** Resolves when a call may begin; null when `deadline` came first, or when too many wait already. */
  enter(deadline: AbortSignal): Promise<Leave | null>
}

/** Clocks differ and packets are late: what we send within `per` must not arrive within less. */
const MARGIN = 1.05

interface Waiting {
  readonly go: (leave: Leave) => void
  readonly deadline: AbortSignal
  readonly onAbort: () => void
}

/**
 * Keeps a documented limit exactly: a call begins when fewer than `calls` began within the last `per` milliseconds and
 * fewer than `connections` are under way; the others wait in order of arrival, at most `room` of them.
 */
export function pace({ calls, per, connections }: Rate, room: number, clock: Clock = realTime): Pace {
  const window = per * MARGIN
  /** When the last `calls` calls began, in order; the oldest is overwritten next. */
  const begun = new Float64Array(calls).fill(Number.NEGATIVE_INFINITY)
  let oldest = 0
  let underWay = 0
  let queue: Waiting[] = []
  let cancel: (() => void) | undefined

  const untilFree = () => begun[oldest]! + window - clock.now()

  function admit(): Leave {
    begun[oldest] = clock.now()
    oldest = (oldest + 1) % calls
    underWay++
    let over = false
    return () => {
      if (over) return
      over = true
      underWay--
      advance()
    }
  }

  function advance(): void {
    while (queue.length > 0 && underWay < connections && untilFree() <= 0) {
      const { go, deadline, onAbort } = queue.shift()!
      deadline.removeEventListener('abort', onAbort)
      go(admit())
    }
    if (queue.length === 0) {
      // Nobody waits for it any more, and a timer would keep the process alive.
      cancel?.()
      cancel = undefined
    } else if (underWay < connections) {
      cancel ??= clock.after(Math.max(1, Math.ceil(untilFree())), () => {
        cancel = undefined
        advance()
      })
    }
  }

  return {
    enter(deadline) {
      if (deadline.aborted) return Promise.resolve(null)
      if (queue.length === 0 && underWay < connections && untilFree() <= 0) return Promise.resolve(admit())
      if (queue.length >= room) return Promise.resolve(null)
      return new Promise(go => {
        const onAbort = () => {
          queue = queue.filter(each => each.go !== go)
          advance()
          go(null)
        }
        deadline.addEventListener('abort', onAbort, { once: true })
        queue.push({ go, deadline, onAbort })
        advance()
      })
    },
  }
}
