/**
 * Time that passes only when it is told to: `Date.now`, `performance.now`, `setTimeout` and `AbortSignal.timeout` of a whole history. `Math.random` stands still. A call
 * that hangs until its deadline costs nothing, and what waits for what is the same in every run.
 */
export interface Time {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Fires the next timer at its time. False: there is none. */
  next(): boolean
  /** Fires all that is due until then, one after the other; `rest` runs after each. */
  pass(milliseconds: number, rest: () => Promise<void>): Promise<void>
  pause(milliseconds: number): Promise<void>
  /** Gives everybody else the real ones back. */
  restore(): void
}

/** One turn of the event loop. */
export const turn = () => new Promise<void>(resolve => setImmediate(resolve))

export function virtualTime(start: number): Time {
  const { setTimeout, clearTimeout } = globalThis
  const { timeout } = AbortSignal
  const { now: stopwatch } = performance
  const { now: wallClock } = Date
  const { random } = Math
  const timers = new Map<number, { readonly at: number; readonly fire: () => void }>()
  let now = start
  let last = 0

  const after = (milliseconds: number, fire: () => void): number => {
    timers.set(++last, { at: now + milliseconds, fire })
    return last
  }

  function next(until = Number.POSITIVE_INFINITY): boolean {
    let first: number | undefined
    for (const [id, { at }] of timers) {
      if (at <= until && (first === undefined || at < timers.get(first)!.at)) first = id
    }
    if (first === undefined) return false
    const { at, fire } = timers.get(first)!
    timers.delete(first)
    now = Math.max(now, at)
    fire()
    return true
  }

  Object.assign(globalThis, {
    setTimeout(callback: (...values: unknown[]) => void, milliseconds = 0, ...values: unknown[]) {
      const id = after(milliseconds, () => callback(...values))
      return { id, unref: () => {} }
    },
    clearTimeout: (timer: { readonly id: number } | undefined) => void (timer && timers.delete(timer.id)),
  })
  performance.now = () => now - start
  Date.now = () => now
  Math.random = () => 0.5
  AbortSignal.timeout = milliseconds => {
    const controller = new AbortController()
    after(milliseconds, () => controller.abort())
    return controller.signal
  }

  return {
    now: () => now,
    next: () => next(),
    async pass(milliseconds, rest) {
      const end = now + milliseconds
      while (next(end)) await rest()
      now = end
    },
    pause: milliseconds => new Promise(resolve => after(milliseconds, resolve)),
    restore() {
      Object.assign(globalThis, { setTimeout, clearTimeout })
      AbortSignal.timeout = timeout
      performance.now = stopwatch
      Date.now = wallClock
      Math.random = random
    },
  }
}
