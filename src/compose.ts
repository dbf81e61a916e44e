import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { webhook } from './destinations/webhook.ts'
import { memoryLimiter } from './limiters/memory.ts'
import { sqliteStore } from './stores/sqlite.ts'
import { backUp } from './stores/sqlite-backup.ts'
import {
  backlog,
  type DeliveryFilter,
  listDeliveries,
  type Replay,
  type ReplayWish,
  replayDeliveries,
  showDelivery,
} from './stores/sqlite-deliveries.ts'
import { readContacts } from './stores/sqlite-reader.ts'
import type { Contact, DeliveryRecord } from './waitlist/contact.ts'
import { deliveries } from './waitlist/deliver.ts'
import { type Joined, type JoinParts, join } from './waitlist/join.ts'
import type { Provider } from './waitlist/ports.ts'
import { register } from './waitlist/register.ts'
import type { Signup } from './waitlist/signup.ts'

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

/** Milliseconds that calls to the outside may take to end when the service stops; then they are cut, and come again. */
const GRACE = 7_000
/** The same for what visitors wait for: soon enough that they are still answered. */
const VISITORS_GRACE = 4_000

/**
 * Makes the service of its parts and opens the door.
 *
 * @throws {CannotOpen} when a part cannot be opened as configured; nothing is left open then.
 */
export async function start(config: Config, log: Logger): Promise<Service> {
  const { providerTimeout: timeout } = config
  const { provider, webhook } = await openOutside(config)
  const destinations = [provider?.automation ?? null, webhook].filter(each => each !== null)
  // The store opens in its own thread while this one loads the HTTP server.
  const [opened, http] = await Promise.allSettled([
    sqliteStore({
      ...{ path: config.store.path, eventName: config.eventName },
      ...{ provider: provider?.name ?? null, destinations: destinations.map(({ name }) => name) },
    }),
    import('./http/server.ts'),
  ])
  if (opened.status === 'rejected') throw opened.reason
  const store = opened.value
  try {
    if (http.status === 'rejected') throw http.reason
    const outboxes = destinations.map(destination => deliveries({ store, destination, log }))
    const announce = () => {
      for (const outbox of outboxes) outbox.wake()
    }
    const registering = provider && register({ store, provider, timeout, log, announce })
    const loops = registering === null ? outboxes : [...outboxes, registering.background]
    const leaving = new AbortController()
    const parts = { store, register: registering, timeout, leaving: leaving.signal, announce }
    const visits = new Set<Promise<Joined>>()
    /** Without a provider nothing outlasts the answer to a visitor, who is waited for anyway. */
    const visit = registering === null ? (signup: Signup) => join(signup, parts) : tracked(visits, parts)

    const limiter = memoryLimiter(config.door.quota)
    const door = await http.value.openDoor({ ...config.door, version }, { store, join: visit, limiter, log })
    for (const loop of loops) loop.start()
    return {
      baseUrl: door.baseUrl,
      failure: store.failure,
      reloadCertificate: door.reloadCertificate,
      async stop() {
        const timer = setTimeout(() => leaving.abort(), VISITORS_GRACE)
        await Promise.all([door.close(), ...loops.map(loop => loop.stop(GRACE))])
        clearTimeout(timer)
        leaving.abort()
        await Promise.allSettled(visits)
        await Promise.all([limiter.close(), provider?.close(), webhook?.close()])
        await store.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Visits that are under way, so that each ends before the store does. */
function tracked(visits: Set<Promise<Joined>>, parts: JoinParts): (signup: Signup) => Promise<Joined> {
  return signup => {
    const visit = join(signup, parts)
    visits.add(visit)
    const over = () => visits.delete(visit)
    visit.then(over, over)
    return visit
  }
}

/** What came of trying one thing outside, and what there is to say about it. */
export interface Trial {
  readonly what: string
  readonly is: 'ok' | 'wrong' | 'untried'
  readonly why: string
}

/** Tries the provider's key and the webhook; neither is changed by it. */
export async function tryOutside(config: Config): Promise<readonly Trial[]> {
  const { provider, webhook } = await openOutside(config)
  const deadline = () => AbortSignal.timeout(config.providerTimeout)
  const trial = async (what: string, good: string, check: Provider['check']): Promise<Trial> => {
    if (check === undefined) return { what, is: 'untried', why: UNTRIED }
    const failure = await check(deadline())
    return failure === null ? { what, is: 'ok', why: good } : { what, is: 'wrong', why: failure.why }
  }
  try {
    return await Promise.all([
      provider ? trial(`provider ${provider.name}`, 'the key is accepted', provider.check) : NO_PROVIDER,
      webhook ? trial('webhook', 'the receiver accepts what is sent', webhook.check) : NO_WEBHOOK,
    ])
  } finally {
    await Promise.all([provider?.close(), webhook?.close()])
  }
}

const UNTRIED = 'the key is not tried, since it offers no call that is cheap and changes nothing'
const NO_PROVIDER: Trial = { what: 'provider', is: 'ok', why: 'none; the database is the list' }
const NO_WEBHOOK: Trial = { what: 'webhook', is: 'ok', why: 'none' }

interface Outside {
  readonly provider: Provider | null
  readonly webhook: ReturnType<typeof webhook> | null
}

/** What is called outside. Its code is loaded only where there is something to call. */
async function openOutside({ provider, webhook, providerTimeout }: Config): Promise<Outside> {
  return {
    provider: provider && (await (await import('./providers/open.ts')).openProvider(provider, providerTimeout)),
    webhook: webhook && (await import('./destinations/webhook.ts')).webhook(webhook),
  }
}

/** What is in force, for the start-up line: no secret, no surprise. */
export function inForce({ door, store, provider, webhook, eventName }: Config): Record<string, unknown> {
  const { proxies, ipv6Prefix } = door.client
  return {
    store: `sqlite:${store.path}`,
    limiter: `memory, ${door.quota.limit} attempts in ${door.quota.window} s`,
    clients: `IPv4 address or IPv6 /${ipv6Prefix}, ${
      { none: 'of the socket', hops: 'told by trusted proxies', networks: 'told by trusted proxies' }[proxies.kind]
    }`,
    tls: door.tls !== null,
    provider: provider?.vendor ?? 'none',
    webhook: webhook === null ? 'none' : new URL(webhook.url).origin,
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

/** What has not come to its end, as numbers. Works beside a running service. */
export function backlogOf(config: Config): ReturnType<typeof backlog> {
  return backlog(config.store.path)
}

/** The newest deliveries first. Works beside a running service. */
export function deliveriesOf(config: Config, filter: DeliveryFilter): readonly DeliveryRecord[] {
  return listDeliveries(config.store.path, filter)
}

/** One delivery and its event; undefined when there is none with this number. Works beside a running service. */
export function deliveryOf(config: Config, number: number): ReturnType<typeof showDelivery> {
  return showDelivery(config.store.path, number)
}

/** Makes deliveries due again, as if they were new. A running service finds them within a second or so. */
export function replay(config: Config, wish: ReplayWish): Replay {
  return replayDeliveries(config.store.path, wish)
}
