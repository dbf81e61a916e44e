import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import type { AdminServer } from '../admin/server.ts'
import type { Config } from '../config/config.ts'
import { settings } from '../config/settings.ts'
import type { Domains } from '../domains/files.ts'
import { DOCUMENTS_PER_MINUTE } from '../http/wire/limits.ts'
import { typed } from '../invocation.ts'
import { memoryLimiter } from '../limiters/memory.ts'
import type { RedisLocation } from '../limiters/redis-url.ts'
import type { Announcement } from '../stores/operator/imports.ts'
import type { Commits, Telemetry } from '../telemetry/telemetry.ts'
import { holding } from '../waitlist/alerts/holding.ts'
import { outages } from '../waitlist/alerts/outages.ts'
import { LATE, watch } from '../waitlist/alerts/watch.ts'
import { digests } from '../waitlist/delivery/digest.ts'
import { events } from '../waitlist/delivery/events.ts'
import { handOver } from '../waitlist/delivery/handover.ts'
import { type Joined, type JoinParts, join } from '../waitlist/join.ts'
import type { Challenge } from '../waitlist/ports/challenge.ts'
import type { Channel } from '../waitlist/ports/channel.ts'
import type { OwnDestination } from '../waitlist/ports/destination.ts'
import type { Limiter } from '../waitlist/ports/limiter.ts'
import { type Log, OperatorError } from '../waitlist/ports/log.ts'
import type { Provider } from '../waitlist/ports/provider.ts'
import { StoreUnavailable } from '../waitlist/ports/signups.ts'
import type { Store } from '../waitlist/ports/store.ts'
import type { Signup } from '../waitlist/rules/signup.ts'
import { fillingMailboxes } from '../waitlist/upkeep/fill-mailboxes.ts'
import { pruning } from '../waitlist/upkeep/prune.ts'

export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** The running service. */
export interface Service {
  readonly baseUrl: string
  /** Where it listens. */
  readonly origin: string
  /** Where the operator's own listener is; null: there is none. */
  readonly adminOrigin: string | null
  /** The names of all destinations, including the provider. */
  readonly destinations: readonly string[]
  /** Resolves if the store can no longer be trusted: the process must then end at once. */
  readonly failure: Promise<Error>
  reloadCertificate(): void
  /** Answers and stores what was accepted, then releases everything. Takes at most 8.5 s. */
  stop(): Promise<void>
}

/**
 * The course of a stop in milliseconds, whatever the database and the outside do. First the outbound calls that visitors
 * wait for are aborted, then the others; they are repeated later.
 */
const VISITORS_GRACE = 4_000
const GRACE = 5_500
/** Visitors who still wait are refused now: their signup, or its outcome, could not be stored. */
const ANSWERS = 6_500
/** The database is no longer waited for. Nobody was told that what it still owes is stored. */
const LEFT = 8_500

/** What people call destinations, apart from vendors. */
const called: Readonly<Record<string, string>> = { webhook: 'the webhook', mail: 'the mail server' }

/**
 * Builds the service from its parts, and listens.
 *
 * @throws {OperatorError} when a part cannot be opened as configured; then nothing is left open.
 */
export async function start(config: Config, log: Logger): Promise<Service> {
  const telemetry = config.admin && (await import('../telemetry/telemetry.ts')).telemetry()
  const { destinations, channels, ...others } = await openOutside(config, config.redis)
  const provider = others.provider && telemetry ? counting(others.provider, telemetry.calls) : others.provider
  const outside = [provider, ...destinations, ...channels]
  const told = [provider?.automation, ...destinations].filter(each => each != null)
  const names = [...told, ...channels].map(({ name }) => name)
  const openStore = await storeOf(config, log, telemetry?.commits ?? null, {
    provider: provider?.name ?? null,
    destinations: names,
  })
  // The store opens, in its own thread, while this one loads the HTTP server.
  const [opened, http] = await Promise.allSettled([openStore(), import('../http/server.ts')])
  if (opened.status === 'rejected') {
    await Promise.all(outside.map(each => each?.close()))
    throw opened.reason
  }
  const store = opened.value
  let limiter: Limiter | undefined
  let challenge: Challenge | null = null
  let domains: Domains | null = null
  let admin: AdminServer | null = null
  const close = async () => {
    await Promise.all([limiter, challenge, domains, ...outside].map(each => each?.close()))
    await store.close()
    // Last, so that a stop can be watched.
    admin?.close()
  }
  try {
    if (http.status === 'rejected') throw http.reason
    const announce = () => {
      for (const { loop } of outboxes) loop.wake()
    }
    const parts = { store, log, announce }
    const { chatInterval: distance, chatNames: withNames } = config
    const lateAfter = lateness(config)
    const leaving = new AbortController()
    const title = config.provider?.vendor.title ?? ''
    const alerts = outages({ store, channels, leave: leaving.signal })
    const onStateChangeOf = (name: string, called: string) => alerts.of({ name, called, keeps: 'events' })
    const outboxes = [
      ...told.map(destination => {
        const { name } = destination
        return events({
          ...parts,
          destination,
          onStateChange: onStateChangeOf(name, called[name] ?? `the automation of ${title}`),
        })
      }),
      ...channels.map(channel => {
        const onStateChange = onStateChangeOf(channel.name, channel.title)
        return digests({ ...parts, channel, distance, withNames, onStateChange })
      }),
    ]
    const handing =
      provider &&
      handOver({
        ...parts,
        provider,
        onStateChange: alerts.of({ name: provider.name, called: title, keeps: 'signups' }),
      })
    const watching = channels.length === 0 ? null : watch({ store, outages: alerts, lateAfter })
    const { holds } = config
    const holdNews =
      holds && holding({ store, log, window: holds.window, command: typed('waitlist held'), telling: alerts.holding })
    const visits = inFlight(
      {
        store,
        handOver: handing,
        timeout: config.providerTimeout,
        leave: leaving.signal,
        announce,
        held: holdNews?.note,
      },
      config,
    )

    limiter = await openLimiter(config, log, telemetry)
    challenge = await challengeOf(config, store.secret, log)
    domains = config.domains && (await (await import('../domains/files.ts')).openDomains(config.domains, log))
    let isDraining = false
    if (config.admin !== null && telemetry !== null) {
      const { openAdmin } = await import('../admin/server.ts')
      admin = await openAdmin(config.admin, {
        service: config.service,
        version,
        telemetry,
        store,
        folder: config.store.kind === 'sqlite' && config.store.path !== ':memory:' ? dirname(config.store.path) : null,
        provider: provider?.name ?? null,
        destinations: [
          ...(handing === null || provider === null ? [] : [{ name: provider.name, outage: handing.breaker.outage }]),
          ...outboxes.map(({ breaker: { outage } }, i) => ({ name: names[i]!, outage })),
        ],
        lateAfter,
        isDraining: () => isDraining,
        log,
      })
    }
    const server = await http.value.openServer(config, {
      version,
      store,
      join: visits.join,
      limiter,
      documentLimiter: documentLimiter(),
      challengeLimiter: challengeLimiter(config),
      challenge,
      accepts: domains?.accepts ?? null,
      leave: leaving.signal,
      log,
      telemetry,
    })
    const background = handing === null ? outboxes : [...outboxes, handing]
    for (const { loop } of background) loop.start()
    watching?.start()
    void holdNews?.start()
    const { keepDeliveries: keep } = config
    const pruner = keep === null ? null : pruning({ store, keep, log })
    pruner?.start()
    const filler = holds?.suspicious ? fillingMailboxes({ store, log }) : null
    filler?.start()
    return {
      baseUrl: server.baseUrl,
      origin: server.origin,
      adminOrigin: admin?.origin ?? null,
      destinations: provider === null ? names : [provider.name, ...names],
      failure: store.failure,
      reloadCertificate: server.reloadCertificate,
      async stop() {
        watching?.stop()
        holdNews?.stop()
        isDraining = true
        const answered = new AbortController()
        const left = Promise.withResolvers<void>()
        const timers = [
          setTimeout(() => leaving.abort(), VISITORS_GRACE),
          setTimeout(() => {
            answered.abort()
            store.refuse()
            visits.refuse()
          }, ANSWERS),
          setTimeout(() => {
            log.warn('the database does not answer: attempts whose outcome was not stored will be repeated')
            left.resolve()
          }, LEFT),
        ]
        const done = async () => {
          const others = [pruner, filler].map(each => each?.stop(0))
          await Promise.all([server.close(), ...others, ...background.map(({ loop }) => loop.stop(GRACE))])
          leaving.abort()
          await visits.over()
          await Promise.all(background.map(({ settled }) => settled(answered.signal)))
          await close()
        }
        await Promise.race([done(), left.promise])
        admin?.close()
        for (const timer of timers) clearTimeout(timer)
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Returns after how many milliseconds what waits for a destination is late. A chat is told once in its interval. */
export const lateness =
  ({ channels, chatInterval }: Config) =>
  (destination: string): number =>
    LATE + (Object.hasOwn(channels, destination) ? chatInterval : 0)

/** Lets visitors join, and keeps track of them, so that the store is not closed while somebody waits for the provider. */
function inFlight(rest: Omit<JoinParts, 'behind'>, { disclosesMembership }: Pick<Config, 'disclosesMembership'>) {
  const visits = new Map<Promise<unknown>, (reason: StoreUnavailable) => void>()
  const keep = (visit: Promise<unknown>, refuse: (reason: StoreUnavailable) => void) => {
    visits.set(visit, refuse)
    visit.catch(() => {}).finally(() => visits.delete(visit))
  }
  // Nobody waits for these. What the store refuses is attempted again when the lease has ended.
  const behind = disclosesMembership ? null : (attempt: Promise<unknown>) => keep(attempt, () => {})
  const parts: JoinParts = { ...rest, behind }
  return {
    // Without a provider there is no need: the server waits for the answers anyway.
    join:
      parts.handOver === null
        ? (signup: Signup) => join(signup, parts)
        : (signup: Signup) => {
            const visit = join(signup, parts)
            return new Promise<Joined>((resolve, reject) => {
              keep(visit, reject)
              visit.then(resolve, reject)
            })
          },
    /** Answers everybody who waits. */
    refuse() {
      for (const refuse of visits.values()) refuse(new StoreUnavailable('the outcome was not stored before the stop'))
    },
    over: () => Promise.allSettled(visits.keys()),
  }
}

/** The same provider; counts how its calls end. */
const counting = (provider: Provider, calls: Telemetry['calls']): Provider => ({
  ...provider,
  async createContact(...call) {
    const creation = await provider.createContact(...call)
    calls['notSent' in creation && creation.notSent ? 'notSent' : creation.is]++
    return creation
  },
})

/** Loads only the engine that is used; the returned function opens the store. */
async function storeOf(
  { store, storeConnections: connections, eventName, trackSources, holds, disclosesMembership }: Config,
  log: Log,
  commits: Commits | null,
  outside: { readonly provider: string | null; readonly destinations: readonly string[] },
): Promise<() => Promise<Store>> {
  const options = { eventName, trackSources, holds, syncsKnown: !disclosesMembership, log, commits, ...outside }
  if (store.kind === 'sqlite') {
    const { sqliteStore } = await import('../stores/sqlite/store.ts')
    return () => sqliteStore({ path: store.path, ...options })
  }
  const { postgresStore } = await import('../stores/postgres/store.ts')
  return () => postgresStore({ url: store.url, connections, ...options })
}

async function openLimiter(
  { quota, redis: location }: Config,
  log: Log,
  telemetry: Telemetry | null,
): Promise<Limiter> {
  const local = memoryLimiter(quota)
  if (location === null) return local
  const [{ redisLimiter }, { withFallback }] = await Promise.all([
    import('../limiters/redis.ts'),
    import('../limiters/with-fallback.ts'),
  ])
  return withFallback(redisLimiter({ location, ...quota }), local, log, undefined, telemetry)
}

/** Loads only the code that is used. `shared` returns a random value that is the same for all instances. */
export async function challengeOf(
  { challenge, corsOrigins, baseUrl }: Config,
  shared: Store['secret'],
  log: Log,
): Promise<Challenge | null> {
  if (challenge === null) return null
  const { openChallenge } = await import('../challenges/open.ts')
  const hosts = [...corsOrigins, baseUrl].flatMap(url => (url === null ? [] : new URL(url).hostname))
  const secret = (name: string) =>
    shared(name).catch((error: Error) => {
      throw new OperatorError(`the key of the challenges could not be kept in the database: ${error.message}`)
    })
  return openChallenge(challenge, { secret, hosts, log })
}

/** Clients that are remembered; 1.5 MB at most. Redis is never asked: a document is cheaper than the question. */
const READERS = 10_000

export const documentLimiter = (): Limiter =>
  memoryLimiter({ limit: DOCUMENTS_PER_MINUTE, window: 60, clients: READERS })

/** A few for each attempt at a signup: pages are loaded again, and forms are left open until their challenge expires. */
const CHALLENGES = 3

export const challengeLimiter = ({ quota: { limit, window } }: Pick<Config, 'quota'>): Limiter =>
  memoryLimiter({ limit: CHALLENGES * limit, window, clients: READERS })

/** The other sides of outbound calls. */
export interface Outside {
  readonly provider: Provider | null
  readonly destinations: readonly OwnDestination[]
  readonly channels: readonly Channel[]
}

/**
 * Who is told of a new signup, by the names that deliveries are stored under. No connection is opened.
 *
 * @throws {OperatorError} when a part cannot be opened as configured.
 */
export async function announcementOf(config: Config): Promise<Announcement> {
  const { provider, destinations, channels } = await openOutside(config)
  const told = [provider?.automation, ...destinations, ...channels].filter(each => each != null)
  await Promise.all([provider, ...destinations, ...channels].map(each => each?.close()))
  return { eventName: config.eventName, provider: provider?.name ?? null, destinations: told.map(({ name }) => name) }
}

/** Loads only the code that is used. With `redis`, instances keep the provider's rate together. */
export async function openOutside(
  { provider, providerExisting: existing, webhook, mail, channels, providerTimeout: timeout, service }: Config,
  redis: RedisLocation | null = null,
): Promise<Outside> {
  // First, since the files of mails may be wrong, and nothing may be left open then.
  const destinations = [
    webhook && (await import('../destinations/webhook.ts')).webhook(webhook),
    mail && (await import('../destinations/mail.ts')).mail(mail),
  ]
  const shared = provider && redis && (await import('../limiters/redis-pace.ts')).redisPace(redis)
  const options = { timeout, existing, shared }
  return {
    provider: provider && (await import('../providers/open.ts')).openProvider(provider, options),
    destinations: destinations.filter(each => each !== null),
    channels: await openChannels(channels, service),
  }
}

async function openChannels({ slack, discord }: Config['channels'], name: string): Promise<readonly Channel[]> {
  if (slack === undefined && discord === undefined) return []
  const { chat } = await import('../destinations/chat.ts')
  const service = name === settings.SERVICE_NAME.default ? null : name
  return [
    slack && chat((await import('../destinations/slack.ts')).slack, { url: slack, service }),
    discord && chat((await import('../destinations/discord.ts')).discord, { url: discord, service }),
  ].filter(each => typeof each === 'object')
}
