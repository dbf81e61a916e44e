import type { Logger } from 'pino'
import { openChallenge } from '../challenges/index.ts'
import { type Config, version } from '../config/load.ts'
import { LINKS_SECRET } from '../confirm/token.ts'
import { eventWorker } from '../delivery/events.ts'
import { handover } from '../delivery/handover.ts'
import { openDomains } from '../holds/domains.ts'
import { decideHolds } from '../holds/store.ts'
import { openServer } from '../http/server.ts'
import { invitationRoute } from '../invite/route.ts'
import { languagesOf, readMessages } from '../messages/languages.ts'
import { alerts, type Watched } from '../notify/alerts.ts'
import { channelWorker } from '../notify/channel.ts'
import { memoryLimiter } from '../rate-limit/memory.ts'
import { sharedLimiter } from '../rate-limit/shared.ts'
import { inFlight } from '../signup/join.ts'
import { openDatabase } from '../store/open.ts'
import { openStore } from '../store/store.ts'
import { challengeLimiter, linkActions, linksIn, openDestinations } from './adapters.ts'
import { cleanUp } from './cleanup.ts'
import { routesOf } from './routes.ts'
import { stop } from './shutdown.ts'

/** The running service. */
export interface Service {
  readonly baseUrl: string
  /** Where it listens. */
  readonly origin: string
  /** Where the operator's own listener is; null: there is none. */
  readonly adminOrigin: string | null
  /** Resolves if the store can no longer be trusted: the process must then end at once. */
  readonly failure: Promise<Error>
  /** Reads the certificate and the list of email domains again. */
  reload(): void
  /** Answers and stores what was accepted, then releases everything. Takes at most 8.5 s. False: the database did not answer. */
  stop(): Promise<boolean>
}

/** What people call destinations, apart from vendors. */
const labels: Readonly<Record<string, string>> = { webhook: 'the webhook', mail: 'the mail server' }

/**
 * Builds the service from its parts, and listens.
 *
 * @throws {OperatorError} when a part cannot be opened as configured; then nothing is left open.
 */
export async function start(config: Config, log: Logger): Promise<Service> {
  const { quota, holds, trackSources, signupTargets, blockedDomainsFile, messagesFile } = config
  const telemetry = config.admin && (await import('./telemetry.ts')).openTelemetry()
  const store = await openStore(await openDatabase(config.store, log), {
    targets: signupTargets,
    trackSources,
    holdReasons: holds && decideHolds(holds),
    telemetry,
  })
  await using opened = new AsyncDisposableStack()
  opened.defer(store.close)
  const linksSecret = await store.secret(LINKS_SECRET)
  const destinations = await openDestinations(config, linksIn(config, linksSecret))
  opened.defer(destinations.close)
  const provider = telemetry === null ? destinations.provider : telemetry.counted(destinations.provider)

  const outbound = new AbortController()
  const leaving = new AbortController()
  const title = config.provider?.vendor.title ?? ''
  const alert = alerts({ store, channels: destinations.channels, log, signal: outbound.signal })
  const announce = () => {
    for (const each of eventWorkers) each.wake()
  }
  const parts = (watched: Watched) => ({ store, log, announce, onOutage: alert.watch(watched) })
  const eventWorkers = destinations.events.map(destination => {
    const { name } = destination
    const label = labels[name] ?? `the automation of ${title}`
    return eventWorker(destination, label, parts({ name, label, keeps: 'event' }))
  })
  const channelWorkers = destinations.channels.map(channel =>
    channelWorker(channel, parts({ name: channel.name, label: channel.label, keeps: 'event' })),
  )
  const handOver = provider && handover(provider, title, parts({ name: provider.name, label: title, keeps: 'signup' }))
  const workers = [...(handOver === null ? [] : [handOver]), ...eventWorkers]
  for (const channel of channelWorkers) await channel.open()
  const timeout = provider?.timeout ?? 0
  const visits = inFlight(
    { store, handOver, timeout, signal: outbound.signal, announce, held: alert.held },
    config.disclosesMembership,
  )

  const domains = blockedDomainsFile === null ? null : openDomains(blockedDomainsFile, log)
  let isDraining = false
  let adminOrigin: string | null = null
  const all = [...workers, ...channelWorkers]
  if (config.admin !== null && telemetry !== null) {
    const { openAdmin } = await import('../admin/server.ts')
    const { token, ...listen } = config.admin
    const admin = await openAdmin({
      ...listen,
      service: config.service,
      version,
      telemetry,
      store,
      destinations: all.map(({ name, breaker: { outage } }) => ({ name, outage })),
      isDraining: () => isDraining,
      invitation: invitationRoute({ store, token, log }),
      log,
    })
    adminOrigin = admin.origin
    opened.defer(admin.close)
  }
  const service = {
    version,
    languages: languagesOf(messagesFile === null ? new Map() : readMessages(messagesFile)),
    store,
    join: visits.join,
    limiter: config.store.kind === 'postgres' ? sharedLimiter(quota, store, log) : memoryLimiter(quota),
    challengeLimiter: challengeLimiter(config),
    challenge: await openChallenge(config.challenge, store.secret, log),
    links: linkActions(store, linksSecret, config),
    accepts: domains?.accepts ?? null,
    signal: outbound.signal,
    log,
    telemetry,
  }
  const server = await openServer(config, service, routesOf)
  for (const each of all) each.start()
  void cleanUp(store, signupTargets.provider, log, leaving.signal)
  const resources = opened.move()
  return {
    baseUrl: server.baseUrl,
    origin: server.origin,
    adminOrigin,
    failure: store.failure,
    reload() {
      server.reloadCertificate()
      domains?.reload()
    },
    async stop() {
      isDraining = true
      alert.stop()
      leaving.abort()
      const close = () => resources.disposeAsync()
      return stop({ server, store, visits, workers, channels: channelWorkers, outbound, log, close })
    },
  }
}
