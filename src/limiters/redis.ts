import type { Limiter } from '../waitlist/ports/limiter.ts'
import { both, gcra, networkQuota, type Quota } from './gcra.ts'
import { redisScript } from './redis-script.ts'
import type { RedisLocation } from './redis-url.ts'

export interface RedisLimiterOptions extends Quota {
  readonly location: RedisLocation
  /** Milliseconds that one attempt may wait for the server, and the visitor with it. */
  readonly timeout?: number
}

const TIMEOUT = 50

/**
 * One command for an attempt, by the server's clock, which all instances share. Each key, of a client and perhaps of its
 * network, holds the time at which its quota is full again, in microseconds, and expires then. Returns whether the attempt
 * is admitted, and for each key the microseconds until that time.
 *
 * A time more than a window ahead comes from a clock that was set back, or from a longer window that was configured
 * before. The quota then counts as just used up, so that nobody is locked out for longer than a window.
 */
const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local window = tonumber(ARGV[1])

local function look(key, interval)
  local stored = tonumber(redis.call('GET', key) or 0)
  local before = math.min(math.max(stored, now), now + window)
  return stored, before, before + interval
end
local function settle(key, stored, fullAgainAt)
  if fullAgainAt ~= stored and fullAgainAt > now then
    redis.call('SET', key, string.format('%.0f', fullAgainAt), 'PX', math.ceil((fullAgainAt - now) / 1000))
  end
  return string.format('%.0f', fullAgainAt - now)
end

local latest = now + window + 1
local client, network = KEYS[1], KEYS[2]
local stored, before, after = look(client, ARGV[2])
if not network then
  if after > latest then
    return {0, settle(client, stored, before)}
  end
  return {1, settle(client, stored, after)}
end
local networkStored, networkBefore, networkAfter = look(network, ARGV[3])
if after > latest or networkAfter > latest then
  return {0, settle(client, stored, before), settle(network, networkStored, networkBefore)}
end
return {1, settle(client, stored, after), settle(network, networkStored, networkAfter)}`

/**
 * A limiter that any number of instances share. `take` rejects at once while the server is away, and after 50 ms when it
 * does not answer: nothing is queued and nothing is sent again. An unanswered attempt may have counted, so a client may
 * be refused one attempt too early, but never admitted one too many.
 *
 * @throws {OperatorError} when a file that `location` names cannot be read. It opens even while the server is away.
 */
export function redisLimiter({ location, timeout = TIMEOUT, ...quota }: RedisLimiterOptions): Limiter {
  const one = gcra(quota)
  const all = gcra(networkQuota(quota))
  // Rounded up to whole microseconds, so that nobody gets more than the quota. A command takes longer than that costs.
  const times = [one.windowMs, one.interval, all.interval].map(ms => Math.ceil(ms * 1000))
  type Taken = [admitted: 0 | 1, used: string, usedByNetwork?: string]
  const { run, close } = redisScript<Taken>(location, timeout, 'waitlistTake', TAKE)
  return {
    async take(client, network) {
      const keys = network === undefined ? [client] : [client, network]
      const [admitted, used, usedByNetwork] = await run(
        keys.map(key => `waitlist:limit:${key}`),
        ...times,
      )
      const own = one.decision(admitted === 1, Number(used) / 1000)
      return usedByNetwork === undefined ? own : both(own, all.decision(admitted === 1, Number(usedByNetwork) / 1000))
    },
    close,
  }
}
