import type { SharedPace } from '../waitlist/ports/limiter.ts'
import { redisScript } from './redis-script.ts'
import type { RedisLocation } from './redis-url.ts'

/** Milliseconds for the server. Longer than the limiter's timeout, since a call waits for its turn anyway. */
const TIMEOUT = 500
/** Milliseconds that a turn may be ahead. If one is further ahead, the server's clock was set back. */
const LONGEST = 60_000
/** Milliseconds for which a failed server is not asked again. */
const COOLDOWN = 1_000

/**
 * Takes the next turn by the server's clock, which all instances share: now, or a window after the turn that was taken
 * `calls` turns ago. The list holds the last turns, in microseconds, the oldest first. Returns the microseconds until the
 * turn, or -1 if that is too long; then no turn is taken.
 */
const TURN = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local calls, window, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local turn = now
if redis.call('LLEN', KEYS[1]) >= calls then
  turn = math.max(now, tonumber(redis.call('LINDEX', KEYS[1], -calls)) + window)
end
if turn > now + window + ${LONGEST * 1000} then
  redis.call('DEL', KEYS[1])
  turn = now
end
if turn - now > longest then
  return -1
end
redis.call('RPUSH', KEYS[1], string.format('%.0f', turn))
redis.call('LTRIM', KEYS[1], -calls, -1)
redis.call('PEXPIRE', KEYS[1], math.ceil((turn - now + window) / 1000))
return turn - now`

/**
 * A pace that any number of instances share. While the server is away every turn is now, and each instance keeps the rate
 * by itself. The limiter, which asks the same server, logs the outage.
 *
 * @throws {OperatorError} when a file that `location` names cannot be read. It opens even while the server is away.
 */
export function redisPace(location: RedisLocation, timeout: number = TIMEOUT): SharedPace {
  const { run, close } = redisScript<number>(location, timeout, 'waitlistTurn', TURN)
  let cooldownUntil = Number.NEGATIVE_INFINITY
  return {
    async take(key, calls, per, longest) {
      if (performance.now() < cooldownUntil) return 0
      try {
        const most = Math.floor(Math.min(longest, LONGEST) * 1000)
        const wait = await run([`waitlist:pace:${key}`], calls, Math.ceil(per * 1000), most)
        return wait < 0 ? null : wait / 1000
      } catch {
        cooldownUntil = performance.now() + COOLDOWN
        return 0
      }
    },
    close,
  }
}
