import { dirname } from 'node:path'
import type { Logger } from 'pino'
import type { AdminServer } from '../admin/server.ts'
import type { Config } from '../config/load.ts'
import { eventWorker } from '../delivery/events.ts'
import { handover } from '../delivery/handover.ts'
import { openDomains } from '../holds/domains.ts'
import type { Parts } from '../http/context.ts'
import { readMessages } from '../http/messages/file.ts'
import { languagesOf, untranslated } from '../http/messages/languages.ts'
import { openServer } from '../http/server.ts'
import { invitationRoute } from '../invite/route.ts'
import { alerts } from '../notify/alerts.ts'
import { channelWorker } from '../notify/channel.ts'
import type { Watched } from '../notify/sentences.ts'
import { inFlight } from '../signup/join.ts'
import {
  challengeLimiter,
  challengeOf,
  limiterOf,
  linkActions,
  linkingOf,
  openDestinations,
  storeOf,
  targetsOf,
} from './adapters.ts'
import { cleanUp } from './cleanup.ts'
import { routesOf } from './routes.ts'
import { stop } from './shutdown.ts'
import { version } from './version.ts'

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
  const telemetry = config.admin && (await import('./telemetry.ts')).openTelemetry()
  // Known once the store is open, before the first mail is sent.
  let linking: Awaited<ReturnType<typeof linkingOf>> | null = null
  const destinations = await openDestinations(config, () => linking!.links)
  const { ofEvents, channels, names } = destinations
  const provider = telemetry === null ? destinations.provider : telemetry.counted(destinations.provider)
  const targets = targetsOf(config, destinations)
  const store = await storeOf(config, targets, log, telemetry).catch(async error => {
    await destinations.close()
    throw error
  })
  let admin: AdminServer | null = null
  const close = async () => {
    await destinations.close()
    await store.close()
    // Last, so that a stop can be watched.
    admin?.close()
  }
  try {
    const outbound = new AbortController()
    const leaving = new AbortController()
    const title = config.provider?.vendor.title ?? ''
    const alert = alerts({ store, channels, log, signal: outbound.signal })
    const announce = () => {
      for (const each of eventWorkers) each.wake()
    }
    const parts = (watched: Watched) => ({ store, log, announce, onOutage: alert.watch(watched) })
    const eventWorkers = ofEvents.map(destination => {
      const { name } = destination
      const label = labels[name] ?? `the automation of ${title}`
      return eventWorker(destination, label, parts({ name, label, keeps: 'events' }))
    })
    const channelWorkers = channels.map(channel =>
      channelWorker(channel, parts({ name: channel.name, label: channel.label, keeps: 'events' })),
    )
    const handing =
      provider && handover(provider, title, parts({ name: provider.name, label: title, keeps: 'signups' }))
    const workers = [...(handing === null ? [] : [handing]), ...eventWorkers]
    for (const channel of channelWorkers) await channel.open()
    const timeout = provider?.timeout ?? 0
    const visits = inFlight(
      { store, handOver: handing, timeout, signal: outbound.signal, announce, held: alert.held },
      config.disclosesMembership,
    )

    linking = await linkingOf(config, store.secret)
    const { blockedDomainsFile, messagesFile } = config
    const domains = blockedDomainsFile === null ? null : openDomains(blockedDomainsFile, log)
    let isDraining = false
    if (config.admin !== null && telemetry !== null) {
      const { openAdmin } = await import('../admin/server.ts')
      const { token, ...listen } = config.admin
      admin = await openAdmin({
        ...listen,
        service: config.service,
        version,
        telemetry,
        store,
        folder: config.store.kind === 'sqlite' ? dirname(config.store.path) : null,
        destinations: [...workers, ...channelWorkers].map(({ name, breaker: { outage } }) => ({ name, outage })),
        isDraining: () => isDraining,
        invitation: invitationRoute({ store, token, log }),
        log,
      })
    }
    const service: Parts = {
      version,
      languages: messagesFile === null ? untranslated : languagesOf(readMessages(messagesFile)),
      store,
      join: visits.join,
      limiter: limiterOf(config, store, log),
      challengeLimiter: challengeLimiter(config),
      challenge: await challengeOf(config, store.secret, log),
      links: linkActions(store, linking.secret, targets, () => {
        for (const each of workers) each.wake()
      }),
      accepts: domains?.accepts ?? null,
      signal: outbound.signal,
      log,
      telemetry,
    }
    const server = await openServer(config, service, routesOf)
    for (const each of [...workers, ...channelWorkers]) each.start()
    void cleanUp(store, targets.provider, log, leaving.signal)
    return {
      baseUrl: server.baseUrl,
      origin: server.origin,
      adminOrigin: admin?.origin ?? null,
      destinations: provider === null ? names : [provider.name, ...names],
      failure: store.failure,
      reload() {
        server.reloadCertificate()
        domains?.reload()
      },
      async stop() {
        isDraining = true
        alert.stop()
        leaving.abort()
        const isDone = await stop({ server, store, visits, workers, channels: channelWorkers, outbound, log, close })
        admin?.close()
        return isDone
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}
