import type { Counts } from '../../waitlist/alerts/counts.ts'

/** What the list amounts to. */
export interface Counting {
  /** Counts everything, of one moment. Among a million contacts it takes some tenths of a second. */
  counts(): Promise<Counts>
}
