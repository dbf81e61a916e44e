import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import type { AdminServer } from '../admin/server.ts'
import type { Challenge } from '../challenges/index.ts'
import type { Config } from '../config/config.ts'
import { confirm as confirmContact, find } from '../confirm/store.ts'
import { eraseContact } from '../erase/store.ts'
import { openDomains } from '../holds/domains.ts'
import { openServer } from '../http/server.ts'
import { invitationRoute } from '../invite/route.ts'
import { openChannel } from '../notify/cursor.ts'
import { inFlight } from '../signup/in-flight.ts'
import { holding } from '../waitlist/alerts/holding.ts'
import { outages } from '../waitlist/alerts/outages.ts'
import { LATE, watch } from '../waitlist/alerts/watch.ts'
import { digests } from '../waitlist/delivery/digest.ts'
import { events } from '../waitlist/delivery/events.ts'
import { handOver } from '../waitlist/delivery/handover.ts'
import type { Channel } from '../waitlist/ports/destination.ts'
import type { Provider } from '../waitlist/ports/provider.ts'
import { cleaning } from '../waitlist/upkeep/clean.ts'
import {
  challengeLimiter,
  challengeOf,
  limiterOf,
  linkingOf,
  openDestinations,
  storeOf,
  targetsOf,
} from './adapters.ts'
import { stop } from './stop.ts'
import type { Telemetry } from './telemetry.ts'

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
  const provider = destinations.provider && counting(destinations.provider, telemetry)
  const targets = targetsOf(config, destinations)
  const store = await storeOf(config, targets, log, telemetry).catch(async error => {
    await destinations.close()
    throw error
  })
  let challenge: Challenge | null = null
  let admin: AdminServer | null = null
  const close = async () => {
    await destinations.close()
    await store.close()
    // Last, so that a stop can be watched.
    admin?.close()
  }
  try {
    const outbound = new AbortController()
    const lateAfter = lateness(channels)
    const title = config.provider?.vendor.title ?? ''
    const alerts = outages({ store, channels, signal: outbound.signal })
    const announce = () => {
      for (const { loop } of eventOutboxes) loop.wake()
    }
    const parts = { store, log, announce }
    const eventOutboxes = [
      ...ofEvents.map(destination => {
        const { name } = destination
        const about = { name, called: labels[name] ?? `the automation of ${title}`, keeps: 'events' } as const
        return events({ ...parts, destination, onStateChange: alerts.of(about) })
      }),
      ...channels.map(channel => {
        const about = { name: channel.name, called: channel.title, keeps: 'events' } as const
        return digests({ ...parts, channel, onStateChange: alerts.of(about) })
      }),
    ]
    const handing =
      provider &&
      handOver({
        ...parts,
        provider,
        onStateChange: alerts.of({ name: provider.name, called: title, keeps: 'signups' }),
      })
    const outboxes = [...eventOutboxes, ...(handing === null ? [] : [handing])]
    const { holds } = config
    const watching = channels.length === 0 ? null : watch({ store, outages: alerts, lateAfter })
    const holdAlert = holds && holding({ store, log, window: holds.window, telling: alerts.holding })
    const upkeep = cleaning({ store, provider: targets.provider, log })
    for (const { name } of channels) await store.transaction(tx => openChannel(tx, name))
    const visits = inFlight(
      {
        store,
        handOver: handing,
        timeout: provider?.timeout ?? 0,
        signal: outbound.signal,
        announce,
        held: holdAlert?.note,
      },
      config.disclosesMembership,
    )

    const limiter = limiterOf(config, store, log)
    challenge = await challengeOf(config, store.secret, log)
    linking = await linkingOf(config, store.secret)
    const { blockedDomainsFile: blocked } = config
    const domains = blocked === null ? null : openDomains(blocked, log)
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
        destinations: [
          ...(handing === null || provider === null ? [] : [{ name: provider.name, outage: handing.breaker.outage }]),
          ...eventOutboxes.map(({ breaker: { outage } }, i) => ({ name: names[i]!, outage })),
        ],
        isDraining: () => isDraining,
        invitation: invitationRoute({ store, token, log }),
        log,
      })
    }
    const server = await openServer(config, {
      version,
      store,
      join: visits.join,
      limiter,
      challengeLimiter: challengeLimiter(config),
      challenge,
      links: {
        secret: linking.secret,
        find: contact => store.transaction(tx => find(tx, contact)),
        async confirm(contact) {
          const confirmed = await store.transaction(tx => confirmContact(tx, contact, targets))
          if (confirmed === 'now') for (const { loop } of outboxes) loop.wake()
          return confirmed
        },
        async leave(contact) {
          await store.transaction(async tx => {
            const found = await find(tx, contact)
            if (found) await eraseContact(tx, found.number, found.email, contact.createdAt.getTime())
          })
          await store.truncateLog()
        },
      },
      accepts: domains?.accepts ?? null,
      signal: outbound.signal,
      log,
      telemetry,
    })
    for (const { loop } of outboxes) loop.start()
    upkeep.start()
    watching?.start()
    void holdAlert?.start()
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
        watching?.stop()
        holdAlert?.stop()
        const isDone = await stop({ server, store, visits, outboxes, upkeep, outbound, log, close })
        admin?.close()
        return isDone
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Returns after how many milliseconds what waits for a destination is late. A channel is told once in its interval. */
export const lateness =
  (channels: readonly Channel[]) =>
  (destination: string): number =>
    LATE + (channels.find(({ name }) => name === destination)?.minInterval ?? 0)

/** The same provider; counts how its calls end. */
function counting(provider: Provider, telemetry: Telemetry | null): Provider {
  if (telemetry === null) return provider
  return {
    ...provider,
    async createContact(...call) {
      const creation = await provider.createContact(...call)
      telemetry.countProviderCall('notSent' in creation && creation.notSent ? 'not_sent' : creation.is)
      return creation
    },
  }
}
