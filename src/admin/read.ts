import { statfs } from 'node:fs/promises'
import type { Histogram } from '../telemetry/histogram.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Refusal } from '../waitlist/ports/channel.ts'
import type { Store } from '../waitlist/ports/store.ts'
import { resolvesWithin } from '../waitlist/resolves-within.ts'
import { readProcess } from './process.ts'
import type { Reading } from './reading.ts'
import { ttlCache } from './ttl-cache.ts'

export interface Readable {
  readonly service: string
  readonly version: string
  readonly telemetry: Telemetry
  readonly store: Pick<Store, 'check' | 'counts'>
  /** The folder of the embedded database; null: the database is elsewhere. */
  readonly folder: string | null
  /** The name of the provider; null: there is none. */
  readonly provider: string | null
  /** The provider first. */
  readonly destinations: readonly { readonly name: string; outage(): Refusal | null }[]
  /** Milliseconds after which what waits for a destination is late. */
  lateAfter(destination: string): number
  isDraining(): boolean
  readonly eventLoop: Histogram
}

/** Milliseconds that a request waits for a new count, which may take seconds and then goes on. */
const PATIENCE = 250
/** Milliseconds between two counts, and the part of all time that counting may take. */
const COUNTED = 5_000
const COUNTING = 0.02
/** Milliseconds between two questions whether a signup could be stored, which may cost a commit; and how long one may take. */
const TRIED = 30_000
const TRIAL = 1_000
const MEASURED = 5_000

/** Returns the function that reads everything. It never rejects, and takes little more than a second. */
export function reader(parts: Readable): () => Promise<Reading> {
  const { service, version, telemetry, store, folder, provider, destinations, lateAfter, isDraining, eventLoop } = parts
  const startedAt = new Date()
  const counting = ttlCache(store.counts, {
    fresh: COUNTED,
    share: COUNTING,
    patience: PATIENCE,
  })
  const trying = ttlCache(() => resolvesWithin(store.check(), TRIAL), { fresh: TRIED, patience: TRIAL + PATIENCE })
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
