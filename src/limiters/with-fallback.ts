import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Limiter } from '../waitlist/ports/limiter.ts'
import type { Log } from '../waitlist/ports/log.ts'
import { throttle } from '../waitlist/quiet-log.ts'

/** Milliseconds between two attempts that ask a failed limiter, so that other visitors do not wait for it. */
const COOLDOWN = 1_000
/** Milliseconds after the start in which it may still be connecting. */
const STARTING = 2_000
/** Milliseconds between two warnings, so that a limiter that fails on and off does not fill the log. */
const QUIET = 60_000

/**
 * The shared limiter, replaced by the local one while it is away, so that its outages neither delay nor fail signups.
 * Meanwhile each instance counts by itself, so a client has at most one more quota at each of them.
 *
 * An outage is two lines in the log, at its first failure and when it is over, however many attempts it affects. `failed`
 * counts the failures of the shared limiter since the line before.
 */
export function withFallback(
  shared: Limiter,
  local: Limiter,
  log: Log,
  now: () => number = () => performance.now(),
  telemetry: Telemetry | null = null,
): Limiter {
  let away = false
  let cooldownUntil = Number.NEGATIVE_INFINITY
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
    cooldownUntil = now() + COOLDOWN
    failed++
    if (telemetry !== null) telemetry.limiter.failures++
    if (told || now() - startedAt < STARTING || !mayTell()) return
    told = true
    log.warn({ why: error.message, failed }, 'the shared rate limit is away: each instance counts by itself')
    failed = 0
  }

  return {
    async take(client) {
      if (away) {
        if (now() < cooldownUntil) return local.take(client)
        // Only this attempt checks whether it is back.
        cooldownUntil = now() + COOLDOWN
      }
      try {
        const decision = await shared.take(client)
        answered()
        return decision
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
