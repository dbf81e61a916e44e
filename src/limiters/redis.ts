import type { Cluster, Redis } from 'ioredis'
import type { Limiter } from '../waitlist/ports.ts'
import { gcra, type Quota } from './gcra.ts'
import { connectRedis } from './redis-connection.ts'
import type { RedisPlace } from './redis-url.ts'

export interface RedisLimiterOptions extends Quota {
  readonly place: RedisPlace
  /** Milliseconds that one attempt may wait for the server: the visitor waits too. */
  readonly patience?: number
}

const PATIENCE = 50
/** Milliseconds without any answer after which a connection is given up. Long, beside the moment that others wait. */
const SILENCE = 1_000

/**
 * One command for an attempt, on the server's clock, which all instances share. The key is the moment at which the
 * quota is full again, in microseconds, and is forgotten when it is. Returns whether the attempt is admitted, and the
 * microseconds until then.
 *
 * A moment further ahead than a window comes from a clock that was set back, or from a longer window before; then the
 * quota counts as used up now, so that nobody is locked out until the clock is there again.
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

type Commands = (Redis | Cluster) & {
  waitlistTake(key: string, interval: number, window: number): Promise<[admitted: 0 | 1, used: string]>
}

/**
 * A limiter that any number of instances share. `take` rejects at once while the server is away, and after 50 ms when it
 * does not answer: nothing is queued and nothing is sent again. An attempt that was not answered may have counted, so a
 * client may be refused one attempt too early, never admitted one too many.
 *
 * @throws {CannotOpen} when a file that `place` names cannot be read. Where the server is away it opens all the same.
 */
export function redisLimiter({ place, patience = PATIENCE, ...quota }: RedisLimiterOptions): Limiter {
  const { windowMs, interval, allowance } = gcra(quota)
  // Whole microseconds, rounded so that nobody gets more than promised; a command takes longer than what that costs.
  const [step, window] = [Math.ceil(interval * 1000), windowMs * 1000]
  const redis: Redis | Cluster = connectRedis(place, Math.max(SILENCE, patience))
  // What went wrong last: without a connection a command only says that there is none.
  let why = 'there is no connection yet'
  /** The server has no database with this number, or does not let us in; what is asked would be counted in number 0. */
  let misplaced: string | undefined

  redis.on('error', (error: Error & { readonly command?: { readonly name: string } }) => {
    why = reasonOf(error)
    if (error.command?.name === 'select') misplaced = why
  })
  redis.on('connect', () => {
    misplaced = undefined
  })
  redis.on('node error', (error: Error) => {
    why = reasonOf(error)
  })
  redis.on('ready', () => {
    why = 'the connection was closed'
  })
  // Sent by its digest; in full where the server does not know it (any more), which then has counted nothing yet.
  redis.defineCommand('waitlistTake', { numberOfKeys: 1, lua: TAKE })

  return {
    async take(client) {
      if (misplaced !== undefined) throw new Error(misplaced)
      const answer = (redis as Commands).waitlistTake(`waitlist:limit:${client}`, step, window)
      try {
        const [admitted, used] = await within(patience, answer)
        return allowance(admitted === 1, Number(used) / 1000)
      } catch (error) {
        if (error instanceof Late) throw error
        // The server's own words. It may be left because of them, and then they are the reason.
        if ((error as Error).name === 'ReplyError') why = (error as Error).message
        throw new Error(why)
      }
    },
    async close() {
      redis.disconnect()
    },
  }
}

class Late extends Error {}

function within<Answer>(milliseconds: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    // When this process was busy the answer may wait to be read: that comes before an immediate.
    const late = () => reject(new Late(`no answer within ${milliseconds} ms`))
    const timer = setTimeout(() => setImmediate(late), milliseconds)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** A cluster only says that all its nodes failed, and nothing is said of a name with several addresses. */
function reasonOf(error: Error & { readonly lastNodeError?: Error; readonly errors?: readonly Error[] }): string {
  return (error.lastNodeError ?? error.errors?.[0] ?? error).message
}
