import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { memoryLimiter } from './limiters/memory.ts'
import { sqliteStore } from './stores/sqlite.ts'
import { backUp } from './stores/sqlite-backup.ts'
import { readContacts } from './stores/sqlite-reader.ts'
import type { Contact } from './waitlist/contact.ts'

export const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** The running service. */
export interface Service {
  readonly baseUrl: string
  /** Resolves, if ever, when what is stored can no longer be trusted: the process must end at once. */
  readonly failure: Promise<Error>
  reloadCertificate(): void
  /** Answers and stores what was accepted, then lets go of everything. */
  stop(): Promise<void>
}

/**
 * Makes the service of its parts and opens the door.
 *
 * @throws {CannotOpen} when a part cannot be opened as configured; nothing is left open then.
 */
export async function start(config: Config, log: Logger): Promise<Service> {
  // The store opens in its own thread while this one loads the HTTP server.
  const [store, { openDoor }] = await Promise.all([
    sqliteStore({ path: config.store.path, eventName: config.eventName }),
    import('./http/server.ts'),
  ])
  const limiter = memoryLimiter(config.door.quota)
  try {
    const door = await openDoor({ ...config.door, version }, { store, limiter, log })
    return {
      baseUrl: door.baseUrl,
      failure: store.failure,
      reloadCertificate: door.reloadCertificate,
      async stop() {
        await door.close()
        await limiter.close()
        await store.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** What is in force, for the start-up line: no secret, no surprise. */
export function inForce({ door, store, eventName }: Config): Record<string, unknown> {
  const { proxies, ipv6Prefix } = door.client
  return {
    store: `sqlite:${store.path}`,
    limiter: `memory, ${door.quota.limit} attempts in ${door.quota.window} s`,
    clients: `IPv4 address or IPv6 /${ipv6Prefix}, ${
      { none: 'of the socket', hops: 'told by trusted proxies', networks: 'told by trusted proxies' }[proxies.kind]
    }`,
    tls: door.tls !== null,
    provider: 'none',
    destinations: [],
    event: eventName,
  }
}

/** All contacts in the order in which they joined. Works beside a running service. */
export function contactsOf(config: Config): Iterable<Contact> {
  return readContacts(config.store.path)
}

/** Copies the database to a new file. Works beside a running service. */
export function backUpTo(config: Config, target: string): void {
  backUp(config.store.path, target)
}
