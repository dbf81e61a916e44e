import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { CannotOpen } from '../waitlist/ports.ts'
import type { RedisPlace, RedisTls, RedisUser } from './redis-url.ts'

/** Milliseconds in which a connection is made, TLS included. */
const CONNECT = 1_000
/** Milliseconds between two tries to connect. */
const AGAIN = 500

/**
 * A connection that comes back by itself and keeps nothing for later: a command fails at once where there is none, is
 * never sent a second time, and a server that has not said anything for `silence` milliseconds, though it was asked, is
 * left. So nothing piles up while it is away.
 *
 * @throws {CannotOpen} when a file of the certificates cannot be read.
 */
export function connectRedis(place: RedisPlace, silence: number): Redis | Cluster {
  const tls = place.tls === null ? undefined : readTls(place.tls)
  const options = {
    ...access(place.user),
    ...(tls && { tls }),
    connectTimeout: CONNECT,
    socketTimeout: silence,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // Says in the error of a command that the server is loading, instead of asking until it is not.
    enableReadyCheck: false,
    // A server that became a replica; the name, or the sentinels, may mean another one by now.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
    // Nothing here needs version 3, and with 2 the handshake needs no right of its own.
    protocol: 2 as const,
    disableClientInfo: true,
    connectionName: 'waitlist',
  } satisfies RedisOptions
  // What is asked in one turn of the event loop is sent as one piece, which nearly halves the cost under load.
  const alone = { ...options, enableOfflineQueue: false, enableAutoPipelining: true, retryStrategy: () => AGAIN }
  switch (place.kind) {
    case 'single':
      return new Redis({ ...alone, ...place.node, db: place.db })
    case 'sentinel':
      return new Redis({
        ...alone,
        db: place.db,
        name: place.master,
        sentinels: [...place.sentinels],
        ...(place.sentinelUser?.username && { sentinelUsername: place.sentinelUser.username }),
        ...(place.sentinelUser && { sentinelPassword: place.sentinelUser.password }),
        ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
        sentinelCommandTimeout: CONNECT,
        sentinelRetryStrategy: () => AGAIN,
      })
    case 'cluster':
      return connectNodes(
        new Cluster([...place.nodes], {
          redisOptions: options,
          enableOfflineQueue: false,
          clusterRetryStrategy: () => AGAIN,
          // What failed may have been counted.
          retryDelayOnFailover: 0,
          retryDelayOnClusterDown: 0,
          slotsRefreshTimeout: CONNECT,
          // Names stay names, so that they can be compared with the certificate.
          dnsLookup: (name, found) => found(null, name),
        }),
      )
  }
}

/** Each master when it is found, not when the first command for it fails. */
function connectNodes(cluster: Cluster): Cluster {
  cluster.on('+node', (node: Redis) => {
    if (!node.options.readOnly) node.connect().catch(() => {})
  })
  return cluster
}

function access(user: RedisUser | null): { username?: string; password?: string } {
  if (user === null) return {}
  return user.username === null ? { password: user.password } : { username: user.username, password: user.password }
}

function readTls({ ca, pair }: RedisTls): ConnectionOptions {
  const read = (path: string): Buffer => {
    try {
      return readFileSync(path)
    } catch (error) {
      throw new CannotOpen(`${path} of REDIS_URL cannot be read: ${(error as Error).message}`)
    }
  }
  return { ...(ca !== null && { ca: read(ca) }), ...(pair && { cert: read(pair.cert), key: read(pair.key) }) }
}
