import type { Limiter } from '../waitlist/ports.ts'
import { gcra, type Quota } from './gcra.ts'
import { redisScript } from './redis-script.ts'
import type { RedisLocation } from './redis-url.ts'

export interface RedisLimiterOptions extends Quota {
  readonly location: RedisLocation
  /** Milliseconds that one attempt may wait for the server, and the visitor with it. */
  readonly timeout?: number
}

const TIMEOUT = 50

/**
 * One command for an attempt, by the server's clock, which all instances share. The key holds the time at which the quota
 * is full again, in microseconds, and expires then. Returns whether the attempt is admitted, and the microseconds until
 * that time.
 *
 * A time more than a window ahead comes from a clock that was set back, or from a longer window that was configured
 * before. The quota then counts as just used up, so that nobody is locked out for longer than a window.
 */
const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local stored = tonumber(redis.call('GET', KEYS[1]) or 0)
local before = math.min(math.max(stored, now), now + window)
local after = before + interval
local admitted = 1
if after - now > window + 1 then
  after, admitted = before, 0
end
if after ~= stored then
  redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
end
return {admitted, string.format('%.0f', after - now)}`

/**
 * A limiter that any number of instances share. `take` rejects at once while the server is away, and after 50 ms when it
 * does not answer: nothing is queued and nothing is sent again. An unanswered attempt may have counted, so a client may
 * be refused one attempt too early, but never admitted one too many.
 *
 * @throws {OperatorError} when a file that `location` names cannot be read. It opens even while the server is away.
 */
export function redisLimiter({ location, timeout = TIMEOUT, ...quota }: RedisLimiterOptions): Limiter {
  const { windowMs, interval, allowance } = gcra(quota)
  // Rounded up to whole microseconds, so that nobody gets more than the quota. A command takes longer than that costs.
  const [step, window] = [Math.ceil(interval * 1000), windowMs * 1000]
  const { run, close } = redisScript<[admitted: 0 | 1, used: string]>(location, timeout, 'waitlistTake', TAKE)
  return {
    async take(client) {
      const [admitted, used] = await run(`waitlist:limit:${client}`, step, window)
      return allowance(admitted === 1, Number(used) / 1000)
    },
    close,
  }
}
