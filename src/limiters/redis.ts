import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { Redis } from 'ioredis'
import type { Limiter, SharedPace } from '../waitlist/ports/limiter.ts'
import { OperatorError } from '../waitlist/ports/log.ts'
import { gcra, type Quota } from './memory.ts'
import type { RedisLocation, RedisTls } from './redis-url.ts'

export interface RedisLimiterOptions extends Quota {
  readonly location: RedisLocation
  /** Milliseconds that one attempt may wait for the server, and the visitor with it. */
  readonly timeout?: number
}

/** Milliseconds for an attempt, which a visitor waits for, and for a turn, which a call waits for anyway. */
const TAKE_TIMEOUT = 50
const TURN_TIMEOUT = 500

/**
 * One command for an attempt, by the server's clock, which all instances share. The key of a client holds the time at which
 * its quota is full again, in microseconds, and expires then. Returns whether the attempt is admitted, and the microseconds
 * until that time.
 *
 * A time more than a window ahead comes from a clock that was set back, or from a longer window that was configured
 * before. The quota then counts as just used up, so that nobody is locked out for longer than a window.
 */
const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local burst, interval = tonumber(ARGV[1]), tonumber(ARGV[2])

local stored = tonumber(redis.call('GET', KEYS[1]) or 0)
local fullAgainAt = math.min(math.max(stored, now), now + burst)
local admitted = 0
if fullAgainAt + interval <= now + burst then
  admitted = 1
  fullAgainAt = fullAgainAt + interval
end
if fullAgainAt ~= stored and fullAgainAt > now then
  redis.call('SET', KEYS[1], string.format('%.0f', fullAgainAt), 'PX', math.ceil((fullAgainAt - now) / 1000))
end
return {admitted, string.format('%.0f', fullAgainAt - now)}`

/**
 * A limiter that any number of instances share. `take` rejects at once while the server is away, and after 50 ms when it
 * does not answer: nothing is queued and nothing is sent again. An unanswered attempt may have counted, so a client may
 * be refused one attempt too early, but never admitted one too many.
 *
 * @throws {OperatorError} when a file that `location` names cannot be read. It opens even while the server is away.
 */
export function redisLimiter({ location, timeout = TAKE_TIMEOUT, ...quota }: RedisLimiterOptions): Limiter {
  const { interval, burst, decision } = gcra(quota)
  type Taken = [admitted: 0 | 1, used: string]
  const { run, close } = redisScript<Taken>(location, timeout, 'waitlistTake', TAKE)
  return {
    async take(client) {
      const [admitted, used] = await run([`waitlist:limit:${client}`], burst, interval)
      return decision(admitted === 1, Number(used))
    },
    close,
  }
}

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
export function redisPace(location: RedisLocation, timeout: number = TURN_TIMEOUT): SharedPace {
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

/** Milliseconds for making a connection, TLS included. */
const CONNECT = 1_000
/** Milliseconds between two attempts to connect. */
const AGAIN = 500
/** Milliseconds without any answer after which a connection is given up. Much longer than a visitor waits for it. */
const SILENCE = 1_000

/**
 * A script with its own connection. `timeout`: milliseconds for one run.
 *
 * @throws {OperatorError} when a file that `location` names cannot be read. It opens even while the server is away.
 */
function redisScript<Answer>(location: RedisLocation, timeout: number, name: string, lua: string) {
  const redis = connect(location, Math.max(SILENCE, timeout))
  // The last failure: without a connection a command only reports that there is none.
  let why = 'there is no connection yet'
  /** Set if the database with this number does not exist or is forbidden: commands would then run in number 0. */
  let misplaced: string | undefined

  redis.on('error', (error: Error & { readonly command?: { readonly name: string } }) => {
    why = reasonOf(error)
    if (error.command?.name === 'select') misplaced = why
  })
  redis.on('connect', () => {
    misplaced = undefined
  })
  redis.on('ready', () => {
    why = 'the connection was closed'
  })
  // Sent by its digest; in full if the server does not know the script, in which case nothing was run yet.
  redis.defineCommand(name, { lua })
  const commands = redis as unknown as Record<string, (keys: number, ...rest: (string | number)[]) => Promise<Answer>>

  return {
    /** Rejects with the reason: at once while the server is away, or when it does not answer in time. */
    async run(keys: readonly string[], ...values: number[]): Promise<Answer> {
      if (misplaced !== undefined) throw new Error(misplaced)
      try {
        return await within(timeout, commands[name]!(keys.length, ...keys, ...values))
      } catch (error) {
        if (error instanceof Late) throw error
        // The server's own words. If they make us disconnect, they are the reason for later failures too.
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
    // If this process was busy, the answer may be waiting to be read, which happens before an immediate.
    const late = () => reject(new Late(`no answer within ${milliseconds} ms`))
    const timer = setTimeout(() => setImmediate(late), milliseconds)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** A name with several addresses gives an empty message. */
function reasonOf(error: Error & { readonly errors?: readonly Error[] }): string {
  return (error.errors?.[0] ?? error).message
}

/**
 * A connection that reconnects by itself and queues nothing. Without a connection a command fails at once; no command is
 * ever sent twice; and a server that leaves commands unanswered for `silence` milliseconds is disconnected. So nothing
 * piles up while it is away.
 *
 * @throws {OperatorError} when a certificate file cannot be read.
 */
function connect({ tls, ...server }: RedisLocation, silence: number): Redis {
  return new Redis({
    ...server,
    ...(tls !== null && { tls: readTls(tls) }),
    connectTimeout: CONNECT,
    socketTimeout: silence,
    retryStrategy: () => AGAIN,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // Commands of one turn of the event loop are sent together, which nearly halves the cost under load.
    enableAutoPipelining: true,
    // While the server is loading, commands fail with that reason, instead of waiting until it is ready.
    enableReadyCheck: false,
    // The server became a replica. Its name may lead to another one by now.
    reconnectOnError: error => error.message.includes('READONLY'),
    // Nothing here needs version 3, and the handshake of version 2 needs no extra permission.
    protocol: 2,
    disableClientInfo: true,
    connectionName: 'waitlist',
  })
}

function readTls({ ca, cert, key }: RedisTls): ConnectionOptions {
  const read = (path: string | undefined): Buffer | undefined => {
    try {
      return path === undefined ? undefined : readFileSync(path)
    } catch (error) {
      throw new OperatorError(`${path} of REDIS_URL cannot be read: ${(error as Error).message}`)
    }
  }
  return { ca: read(ca), cert: read(cert), key: read(key) }
}
