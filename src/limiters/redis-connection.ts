import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { OperatorError } from '../waitlist/ports.ts'
import type { RedisLocation, RedisTls, RedisUser } from './redis-url.ts'

/** Milliseconds for making a connection, TLS included. */
const CONNECT = 1_000
/** Milliseconds between two attempts to connect. */
const AGAIN = 500

/**
 * A connection that reconnects by itself and queues nothing. Without a connection a command fails at once; no command is
 * ever sent twice; and a server that leaves commands unanswered for `silence` milliseconds is disconnected. So nothing
 * piles up while it is away.
 *
 * @throws {OperatorError} when a certificate file cannot be read.
 */
export function connectRedis(place: RedisLocation, silence: number): Redis | Cluster {
  const tls = place.tls === null ? undefined : readTls(place.tls)
  const options = {
    ...access(place.user),
    tls,
    connectTimeout: CONNECT,
    socketTimeout: silence,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // While the server is loading, commands fail with that reason, instead of waiting until it is ready.
    enableReadyCheck: false,
    // The server became a replica. The name, or the sentinels, may lead to another one by now.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
    // Nothing here needs version 3, and the handshake of version 2 needs no extra permission.
    protocol: 2 as const,
    disableClientInfo: true,
    connectionName: 'waitlist',
  } satisfies RedisOptions
  // Commands of one turn of the event loop are sent together, which nearly halves the cost under load.
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
        sentinelUsername: place.sentinelUser?.username ?? undefined,
        sentinelPassword: place.sentinelUser?.password,
        sentinelTLS: tls,
        enableTLSForSentinelMode: tls !== undefined,
        sentinelCommandTimeout: CONNECT,
        sentinelRetryStrategy: () => AGAIN,
      })
    case 'cluster':
      return connectNodes(
        new Cluster([...place.nodes], {
          redisOptions: options,
          enableOfflineQueue: false,
          clusterRetryStrategy: () => AGAIN,
          // Not sent again: a failed command may have counted.
          retryDelayOnFailover: 0,
          retryDelayOnClusterDown: 0,
          slotsRefreshTimeout: CONNECT,
          // Host names are kept, so that they can be compared with the certificate.
          dnsLookup: (name, found) => found(null, name),
        }),
      )
  }
}

/** Connects to each master when it is found, not when the first command for it fails. */
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
      throw new OperatorError(`${path} of REDIS_URL cannot be read: ${(error as Error).message}`)
    }
  }
  return { ...(ca !== null && { ca: read(ca) }), ...(pair && { cert: read(pair.cert), key: read(pair.key) }) }
}
