import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { Redis } from 'ioredis'
import { OperatorError } from '../waitlist/ports/log.ts'
import type { RedisLocation, RedisTls } from './redis-url.ts'

/** Milliseconds for making a connection, TLS included. */
const CONNECT = 1_000
/** Milliseconds between two attempts to connect. */
const AGAIN = 500
/** Milliseconds without any answer after which a connection is given up. Much longer than a visitor waits for it. */
const SILENCE = 1_000

/** One script on the server. */
export interface RedisScript<Answer> {
  /** Rejects with the reason: at once while the server is away, or when it does not answer in time. */
  run(keys: readonly string[], ...values: number[]): Promise<Answer>
  close(): Promise<void>
}

/**
 * A script with its own connection. `timeout`: milliseconds for one run.
 *
 * @throws {OperatorError} when a file that `location` names cannot be read. It opens even while the server is away.
 */
export function redisScript<Answer>(
  location: RedisLocation,
  timeout: number,
  name: string,
  lua: string,
): RedisScript<Answer> {
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
    async run(keys, ...values) {
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
