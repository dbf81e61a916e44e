import type { Limiter, Log } from '../waitlist/ports.ts'
import { throttle } from '../waitlist/throttle.ts'

/** Milliseconds between two attempts that ask a limiter which failed, so that not every visitor waits for it in vain. */
const SPARED = 1_000
/** Milliseconds at the start for which it may still be connecting. */
const STARTING = 2_000
/** Milliseconds between two lines that say that it is away: one that fails on and off fills no log. */
const QUIET = 60_000

/**
 * The shared limiter, and the local one in its place while it is away: signups never wait for it, and never fail with it.
 * Meanwhile each instance counts by itself, so a client has at most one quota more at each of them.
 *
 * An outage is two lines in the log, at its first failure and when it is over, however many attempts it touches. `failed`
 * is the number of times that the shared limiter was asked in vain since the line before.
 */
export function insured(
  shared: Limiter,
  local: Limiter,
  log: Log,
  now: () => number = () => performance.now(),
): Limiter {
  let away = false
  let sparedUntil = Number.NEGATIVE_INFINITY
  const startedAt = now()
  const mayTell = throttle(QUIET, now)
  let told = false
  let failed = 0

  function answered() {
    away = false
    if (!told) return
    told = false
    log.info({ failed }, 'the shared rate limit is used again')
    failed = 0
  }
  function failedWith(error: Error) {
    away = true
    sparedUntil = now() + SPARED
    failed++
    if (told || now() - startedAt < STARTING || !mayTell()) return
    told = true
    log.warn({ why: error.message, failed }, 'the shared rate limit is away: each instance counts by itself')
    failed = 0
  }

  return {
    async take(client) {
      if (away) {
        if (now() < sparedUntil) return local.take(client)
        // This attempt is the one that looks whether it is back; the others do not wait for that.
        sparedUntil = now() + SPARED
      }
      try {
        const allowance = await shared.take(client)
        answered()
        return allowance
      } catch (error) {
        failedWith(error as Error)
        return local.take(client)
      }
    },
    async close() {
      await Promise.all([shared.close(), local.close()])
    },
  }
}
