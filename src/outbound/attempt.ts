import type { Rank } from './pace.ts'

/**
 * One attempt at a delivery, in one or more calls. They share one timeout, which starts with the first call, so that time
 * spent in our own queue does not count.
 */
export interface Attempt {
  /** Aborted when the time is up, or when the process stops. */
  readonly over: AbortSignal
  /** Called when it is the first call's turn: whether it is still wanted. */
  mayBegin(): boolean
  /** That of the first call in our own queue. */
  readonly rank: Rank
  /** Starts the timeout. Only the first call of an attempt does. */
  begin(): void
  /** Whether a call of this attempt has begun. */
  hasBegun(): boolean
  /** Milliseconds left; the whole timeout until the first call begins. */
  left(): number
}

/** Does `work` as one attempt of at most `timeout` milliseconds. `signal` aborts it, for instance when the process stops. */
export async function attempting<Result>(
  timeout: number,
  signal: AbortSignal,
  work: (attempt: Attempt) => Promise<Result>,
  mayBegin: () => boolean = () => true,
  rank: Rank = 'backlog',
): Promise<Result> {
  const controller = new AbortController()
  const end = () => controller.abort()
  let endsAt: number | undefined
  let timer: NodeJS.Timeout | undefined
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  try {
    return await work({
      over: controller.signal,
      mayBegin,
      rank,
      begin() {
        if (endsAt !== undefined) return
        endsAt = performance.now() + timeout
        timer = setTimeout(() => {
          // Timers may fire a moment early.
          endsAt = 0
          end()
        }, timeout)
      },
      hasBegun: () => endsAt !== undefined,
      left: () => (endsAt === undefined ? timeout : Math.max(0, endsAt - performance.now())),
    })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}
