/** How often the other side may be called. */
export interface Rate {
  /** Calls that may begin within any `per` milliseconds. */
  readonly calls: number
  readonly per: number
  /** Calls that may be under way at once. */
  readonly connections: number
}

/** Call it once, when the call is over. */
export type Release = () => void

/** The clock of a pace; tests step their own. */
export interface Clock {
  /** Milliseconds; monotonic. */
  now(): number
  /** Calls `run` after about `wait` milliseconds, unless the returned function is called first. */
  after(wait: number, run: () => void): () => void
}

const realTime: Clock = {
  now: () => performance.now(),
  after(wait, run) {
    const timer = setTimeout(run, wait)
    return () => clearTimeout(timer)
  },
}

/**
 * Who goes first: what continues an attempt, so that what was begun is completed even under overload; then what a visitor
 * or the owner waits for; last what nobody waits for.
 */
const ranks = ['continues', 'visitor', 'backlog'] as const
export type Rank = (typeof ranks)[number]

/** A call that wants a turn. */
export interface Wish {
  /** Milliseconds that it may wait. */
  readonly longest: number
  readonly rank: Rank
  /** Ends the wait. */
  readonly over: AbortSignal
}

export interface Pace {
  /** Resolves when a call may begin. Null: `over` was aborted first, or the turn would not come within `longest`. */
  enter(wish: Wish): Promise<Release | null>
}

/** Clocks differ and packets are delayed, yet the calls that we spread over `per` must not arrive in less. */
export const MARGIN = 1.05

interface Waiting extends Wish {
  readonly go: (release: Release | null) => void
}

/**
 * Keeps a documented limit exactly: a call begins when fewer than `calls` began within the last `per` milliseconds and
 * fewer than `connections` are under way. The others wait by rank, and in order of arrival. A call that would certainly wait
 * too long is refused at once, which bounds the queue.
 */
export function pace({ calls, per, connections }: Rate, clock: Clock = realTime): Pace {
  const window = per * MARGIN
  /** When the last `calls` calls began, in order; the oldest is overwritten next. */
  const begun = new Float64Array(calls).fill(Number.NEGATIVE_INFINITY)
  let oldest = 0
  let underWay = 0
  let queue: Waiting[] = []
  let cancel = () => {}
  /** The backlog begins no more than a fifth of the calls in a fifth of the time, so that visitors find turns that are free. */
  const share = Math.ceil(calls / 5)

  /** Milliseconds until a call with `ahead` others before it may begin, if each of those ends at once. */
  function untilTurn(ahead: number): number {
    const free = begun[(oldest + ahead) % calls]! + window
    return Math.max(0, free - clock.now()) + Math.floor(ahead / calls) * window
  }

  /** Milliseconds until the first in the queue may begin. */
  function untilNext(): number {
    if (queue[0]!.rank !== 'backlog') return untilTurn(0)
    const free = begun[(oldest + calls - share) % calls]! + (window * share) / calls
    return Math.max(untilTurn(0), free - clock.now())
  }

  function admit(): Release {
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
    // The timer may be that of a call which is no longer the first, and would keep the process alive for nothing.
    cancel()
    while (queue.length > 0 && underWay < connections) {
      const wait = untilNext()
      if (wait > 0) {
        cancel = clock.after(Math.max(1, Math.ceil(wait)), advance)
        return
      }
      queue.shift()!.go(admit())
    }
  }

  return {
    enter(wish) {
      const { longest, rank, over } = wish
      if (over.aborted) return Promise.resolve(null)
      const ahead = queue.filter(each => ranks.indexOf(each.rank) <= ranks.indexOf(rank)).length
      if (untilTurn(ahead) > longest) return Promise.resolve(null)
      return new Promise(resolve => {
        const waiting: Waiting = {
          ...wish,
          go(release) {
            over.removeEventListener('abort', giveUp)
            forget()
            resolve(release)
          },
        }
        const giveUp = () => {
          queue = queue.filter(each => each !== waiting)
          waiting.go(null)
          advance()
        }
        const forget = clock.after(longest, giveUp)
        over.addEventListener('abort', giveUp, { once: true })
        queue.splice(ahead, 0, waiting)
        advance()
      })
    },
  }
}
