import type { Histogram } from '../telemetry/histogram.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Counts } from '../waitlist/alerts/counts.ts'
import type { Refusal } from '../waitlist/ports/channel.ts'
import type { ProcessReading } from './process.ts'

/** All that the page and the metrics show, read at one moment: counts, never a person. */
export interface Reading {
  readonly service: string
  readonly version: string
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
  /** The name of the provider; null: there is none. */
  readonly provider: string | null
  /** Of this process, since it started. */
  readonly telemetry: Telemetry
  readonly process: ProcessReading
  /** By how many seconds this process came too late to what it had to do, since it started. */
  readonly eventLoop: Histogram
}

/** `outage`: the breaker is open, since the destination does not answer or refuses our settings. Null: it is closed. */
export interface DestinationReading {
  readonly name: string
  readonly outage: Refusal | null
  /** Milliseconds after which what waits for it is late. */
  readonly lateAfter: number
}
