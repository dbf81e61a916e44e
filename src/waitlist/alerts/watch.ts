import type { Store } from '../../store/store.ts'
import { resolvesWithin } from '../timers.ts'
import type { Outages } from './outages.ts'

export interface WatchParts {
  readonly store: Pick<Store, 'check' | 'counts'>
  readonly outages: Pick<Outages, 'store' | 'late'>
  /** Milliseconds after which what waits for a destination is late. */
  lateAfter(destination: string): number
}

/** Milliseconds between two checks of the store, each of which may cost a commit. */
const STORE_EVERY = 30_000
/** Milliseconds within which a store that takes signups answers. */
const STORE_TIMEOUT = 10_000
/** Milliseconds between two checks of what waits, each of which may cost a second of a processor. */
const OUTBOX_EVERY = 300_000
/** Milliseconds after which what waits is late, unless it is meant to wait. Receivers that restart are back long before. */
export const LATE = 60 * 60_000

/**
 * Detects what no visitor and no attempt may show in time: that the store is stuck, and that deliveries are late. Each must
 * be seen twice in a row, since a database restarts within seconds, and replayed deliveries are old from the start.
 */
export function watch({ store, outages, lateAfter }: WatchParts) {
  let tookLast = true
  let oldLast: ReadonlySet<string> = new Set()

  /** Checks once whether the store takes signups. */
  async function checkStore(): Promise<void> {
    const takes = await resolvesWithin(store.check(), STORE_TIMEOUT)
    if (takes || !tookLast) outages.store(takes)
    tookLast = takes
  }

  /** Checks once whether something has waited for too long. */
  async function checkOutbox(): Promise<void> {
    // A store that fails has an alert of its own.
    const counts = await store.counts().catch(() => null)
    if (counts === null) return
    const { at, deliveries } = counts
    const age = (oldest: Date | null) => (oldest === null ? 0 : at.getTime() - oldest.getTime())
    const old = deliveries.filter(({ destination, oldest }) => age(oldest) > lateAfter(destination))
    const names = old.map(({ destination }) => destination)
    outages.late(new Set(names.filter(name => oldLast.has(name))))
    oldLast = new Set(names)
  }

  const timers: NodeJS.Timeout[] = []
  return {
    checkStore,
    checkOutbox,
    start() {
      timers.push(repeated(checkStore, STORE_EVERY), repeated(checkOutbox, OUTBOX_EVERY))
    },
    stop() {
      for (const timer of timers) clearInterval(timer)
    },
  }
}

/** Never twice at the same time. */
function repeated(check: () => Promise<void>, every: number): NodeJS.Timeout {
  let checking = false
  return setInterval(async () => {
    if (checking) return
    checking = true
    await check().finally(() => {
      checking = false
    })
  }, every).unref()
}
