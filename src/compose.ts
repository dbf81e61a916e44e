import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { webhook } from './destinations/webhook.ts'
import { memoryLimiter } from './limiters/memory.ts'
import { nameOf, type RedisPlace } from './limiters/redis-url.ts'
import type { Moved, MoveOptions } from './stores/move.ts'
import { type StorePlace, storeName } from './stores/place.ts'
import type { Records } from './stores/records.ts'
import { deliveries } from './waitlist/deliver.ts'
import { type Joined, type JoinParts, join } from './waitlist/join.ts'
import { CannotOpen, type Limiter, type Log, type Provider, type Store } from './waitlist/ports.ts'
import { register } from './waitlist/register.ts'
import type { Signup } from './waitlist/signup.ts'

export const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** The running service. */
export interface Service {
  readonly baseUrl: string
  /** Where it listens itself. */
  readonly origin: string
  /** The names of those who are told of new contacts. */
  readonly destinations: readonly string[]
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
 * Makes the service of its parts and starts to listen.
 *
 * @throws {CannotOpen} when a part cannot be opened as configured; nothing is left open then.
 */
export async function start(config: Config, log: Logger): Promise<Service> {
  const { providerTimeout: timeout } = config
  const { provider, webhook } = await openOutside(config)
  const destinations = [provider?.automation ?? null, webhook].filter(each => each !== null)
  const names = destinations.map(({ name }) => name)
  const openStore = await storeOf(config, log, { provider: provider?.name ?? null, destinations: names })
  // The store opens, in its own thread, while this one loads the HTTP server.
  const [opened, http] = await Promise.allSettled([openStore(), import('./http/server.ts')])
  if (opened.status === 'rejected') {
    await Promise.all([provider?.close(), webhook?.close()])
    throw opened.reason
  }
  const store = opened.value
  let limiter: Limiter | undefined
  const close = async () => {
    await Promise.all([limiter?.close(), provider?.close(), webhook?.close()])
    await store.close()
  }
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

    limiter = await openLimiter(config, log)
    const server = await http.value.openServer({ ...config.server, version }, { store, join: visit, limiter, log })
    for (const loop of loops) loop.start()
    return {
      baseUrl: server.baseUrl,
      origin: server.origin,
      destinations: names,
      failure: store.failure,
      reloadCertificate: server.reloadCertificate,
      async stop() {
        const timer = setTimeout(() => leaving.abort(), VISITORS_GRACE)
        await Promise.all([server.close(), ...loops.map(loop => loop.stop(GRACE))])
        clearTimeout(timer)
        leaving.abort()
        await Promise.allSettled(visits)
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Loads the engine that is used, and no other; what it returns opens the store. */
async function storeOf(
  { store, storeConnections: connections, eventName }: Config,
  log: Log,
  outside: { readonly provider: string | null; readonly destinations: readonly string[] },
): Promise<() => Promise<Store>> {
  if (store.kind === 'sqlite') {
    const { sqliteStore } = await import('./stores/sqlite.ts')
    return () => sqliteStore({ path: store.path, eventName, ...outside })
  }
  const { postgresStore } = await import('./stores/postgres.ts')
  return () => postgresStore({ url: store.url, connections, eventName, log, ...outside })
}

async function openLimiter({ server: { quota }, redis: place }: Config, log: Log): Promise<Limiter> {
  const local = memoryLimiter(quota)
  if (place === null) return local
  const [{ redisLimiter }, { insured }] = await Promise.all([
    import('./limiters/redis.ts'),
    import('./limiters/insured.ts'),
  ])
  return insured(redisLimiter({ place, ...quota }), local, log)
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

/** Tries the store, the shared limiter, the provider's key and the webhook; none of them is changed by it. */
export async function tryOutside(config: Config): Promise<readonly Trial[]> {
  const { redis } = config
  const { provider, webhook } = await openOutside(config)
  const deadline = () => AbortSignal.timeout(config.providerTimeout)
  const trial = async (what: string, good: string, check: Provider['check']): Promise<Trial> => {
    if (check === undefined) return { what, is: 'untried', why: UNTRIED }
    const failure = await check(deadline())
    return failure === null ? { what, is: 'ok', why: good } : { what, is: 'wrong', why: failure.why }
  }
  try {
    return await Promise.all([
      tried('database', async () => (await recordsOf(config)).look()),
      tried('rate limit', async () => (redis === null ? 'in the memory of each process' : askLimiter(redis))),
      provider ? trial(`provider ${provider.name}`, 'the key is accepted', provider.check) : NO_PROVIDER,
      webhook ? trial('webhook', 'the receiver accepts what is sent', webhook.check) : NO_WEBHOOK,
    ])
  } finally {
    await Promise.all([provider?.close(), webhook?.close()])
  }
}

async function tried(what: string, look: () => Promise<string>): Promise<Trial> {
  try {
    return { what, is: 'ok', why: await look() }
  } catch (error) {
    if (!(error instanceof CannotOpen)) throw error
    return { what, is: 'wrong', why: error.message }
  }
}

/** One attempt under a name that no client has, forgotten at once. It fails while there is no connection yet. */
async function askLimiter(place: RedisPlace): Promise<string> {
  const { redisLimiter } = await import('./limiters/redis.ts')
  const limiter = redisLimiter({ place, limit: 1_000, window: 1, patience: 1_000 })
  try {
    for (const until = performance.now() + 3_000; ; ) {
      try {
        await limiter.take('waitlist check')
        return `${nameOf(place)} counts`
      } catch (error) {
        if (performance.now() > until) throw new CannotOpen(`${nameOf(place)}: ${(error as Error).message}`)
        await new Promise(resolve => setTimeout(resolve, 100))
      }
    }
  } finally {
    await limiter.close()
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
export function inForce({ server, store, redis, provider, webhook, eventName }: Config): Record<string, unknown> {
  const { proxies, ipv6Prefix } = server.client
  return {
    store: storeName(store),
    limiter: `${redis === null ? 'memory' : nameOf(redis)}, ${server.quota.limit} attempts in ${server.quota.window} s`,
    clients: `IPv4 address or IPv6 /${ipv6Prefix}, ${
      { none: 'of the socket', hops: 'told by trusted proxies', networks: 'told by trusted proxies' }[proxies.kind]
    }`,
    tls: server.tls !== null,
    provider: provider?.vendor ?? 'none',
    webhook: webhook === null ? 'none' : new URL(webhook.url).origin,
    event: eventName,
  }
}

/** What an operator asks of the store, beside the running services. */
export async function recordsOf({ store }: Pick<Config, 'store'>): Promise<Records> {
  return store.kind === 'sqlite'
    ? (await import('./stores/sqlite/records.ts')).sqliteRecords(store.path)
    : (await import('./stores/postgres/records.ts')).postgresRecords(store.url)
}

export type { Moved, Progress, Sums } from './stores/move.ts'
export { storeName }

/** Copies all that the store keeps to another one, and compares both. No service may use either of them meanwhile. */
export async function moveTo({ store }: Pick<Config, 'store'>, to: StorePlace, options: MoveOptions): Promise<Moved> {
  return (await import('./stores/move.ts')).move(store, to, options)
}
