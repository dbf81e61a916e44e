import { statfs } from 'node:fs/promises'
import type { Store } from '../store/store.ts'
import type { Histogram, Telemetry } from '../telemetry/telemetry.ts'
import type { Counts } from '../waitlist/alerts/counts.ts'
import type { Outage } from '../waitlist/ports/destination.ts'
import { resolvesWithin } from '../waitlist/timers.ts'
import { type ProcessReading, readProcess } from './process.ts'
import { ttlCache } from './ttl-cache.ts'

/** All that the page and the metrics show, read at one moment: counts, never a person. */
export interface Reading extends Pick<Readable, 'service' | 'version' | 'provider' | 'telemetry' | 'eventLoop'> {
  readonly startedAt: Date
  /** When this was read, by the clock of this process. */
  readonly at: Date
  /** The service is about to stop. */
  readonly isDraining: boolean
  /** Whether a signup could be stored, and when that was last tried; null: not yet. */
  readonly store: { readonly takesSignups: boolean; readonly triedAt: Date } | null
  /** Of the disk that holds the embedded database, in bytes; null: the database is elsewhere. */
  readonly freeSpace: number | null
  /** Of the whole list, whichever process took the signups. Null: not yet. */
  readonly counts: Counts | null
  /** Milliseconds since those were counted, since counting may take seconds; null: there are none. */
  readonly countsAge: number | null
  /** Why the last attempt to count failed; null: it did not. */
  readonly countsFailed: string | null
  /** Those that are set now, the provider first. */
  readonly destinations: readonly DestinationReading[]
  readonly process: ProcessReading
}

/** `outage`: the breaker is open, since the destination does not answer or refuses our settings. Null: it is closed. */
export interface DestinationReading {
  readonly name: string
  readonly outage: Outage | null
  /** Milliseconds after which what waits for it is late. */
  readonly lateAfter: number
}

export interface Readable {
  readonly service: string
  readonly version: string
  /** Of this process, since it started. */
  readonly telemetry: Telemetry
  readonly store: Pick<Store, 'check' | 'counts'>
  /** The folder of the embedded database; null: the database is elsewhere. */
  readonly folder: string | null
  /** The name of the provider; null: there is none. */
  readonly provider: string | null
  /** The provider first. */
  readonly destinations: readonly { readonly name: string; outage(): Outage | null }[]
  /** Milliseconds after which what waits for a destination is late. */
  lateAfter(destination: string): number
  isDraining(): boolean
  /** By how many seconds this process came too late to what it had to do, since it started. */
  readonly eventLoop: Histogram
}

/** Milliseconds that a request waits for a new count, which may take seconds and then goes on. */
const PATIENCE = 250
/** Milliseconds between two counts, and the part of all time that counting may take. */
const COUNTED = 5_000
const COUNTING = 0.02
/** Milliseconds between two questions whether a signup could be stored, which may cost a commit; and how long one may take. */
const TRIED = 30_000
const TRY_TIMEOUT = 1_000
const MEASURED = 5_000

/** Returns the function that reads everything. It never rejects, and takes little more than a second. */
export function reader(parts: Readable): () => Promise<Reading> {
  const { service, version, telemetry, store, folder, provider, destinations, lateAfter, isDraining, eventLoop } = parts
  const startedAt = new Date()
  const counting = ttlCache(store.counts, { fresh: COUNTED, share: COUNTING, patience: PATIENCE })
  const trying = ttlCache(() => resolvesWithin(store.check(), TRY_TIMEOUT), {
    fresh: TRIED,
    patience: TRY_TIMEOUT + PATIENCE,
  })
  const measuring = ttlCache(() => freeSpaceOf(folder), { fresh: MEASURED, patience: PATIENCE })

  return async () => {
    const [counted, tried, free, process] = await Promise.all([counting(), trying(), measuring(), readProcess()])
    const at = new Date()
    return {
      service,
      version,
      startedAt,
      at,
      isDraining: isDraining(),
      store: tried.value === null ? null : { takesSignups: tried.value, triedAt: tried.at! },
      freeSpace: free.value,
      counts: counted.value,
      countsAge: counted.at && at.getTime() - counted.at.getTime(),
      countsFailed: counted.failed,
      destinations: destinations.map(({ name, outage }) => ({ name, outage: outage(), lateAfter: lateAfter(name) })),
      provider,
      telemetry,
      process,
      eventLoop,
    }
  }
}

async function freeSpaceOf(folder: string | null): Promise<number | null> {
  if (folder === null) return null
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
