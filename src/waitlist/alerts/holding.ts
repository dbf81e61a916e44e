import type { Store } from '../../store/store.ts'
import type { Log } from '../ports/log.ts'
import type { Counts } from './counts.ts'

export interface HoldingParts {
  readonly store: Pick<Store, 'counts'>
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Milliseconds of the limit on signups. */
  readonly window: number
  /** Returns what tells channels whether signups are being held, and what is held. `already`: they know that it began. */
  readonly telling: (already: boolean) => (isHolding: boolean, held: Counts['held']) => void
}

/** Milliseconds from the first held signup to its alert, which can then show what kind of attack it may be. */
const GATHER = 10_000
/** Milliseconds between two checks, which see what other instances hold, too. Each may cost a second of a processor. */
const EVERY = 300_000
/** The minimum of milliseconds without a held signup until it is over: with less, the alerts of a slow attack would not end. */
const MINIMUM_QUIET = 600_000

/**
 * Tells the operator once that signups are being held, and once that this is over. The store decides, so all instances
 * agree, also after a restart.
 */
export function holding({ store, log, window, telling }: HoldingParts) {
  const quiet = Math.max(window, MINIMUM_QUIET)
  let isHolding = false
  let tell: ReturnType<typeof telling> | null = null
  let soon: NodeJS.Timeout | undefined
  let repeated: NodeJS.Timeout | undefined

  async function check(): Promise<void> {
    // A store that fails has an alert of its own (`watch.ts`).
    const counts = await store.counts().catch(() => null)
    if (counts === null) return
    const { at, held } = counts
    const newest = Math.max(...held.map(({ newest }) => newest.getTime()))
    const was = isHolding
    isHolding = at.getTime() - newest < quiet
    tell ??= telling(isHolding)
    if (isHolding === was) return
    const reasons = Object.fromEntries(held.map(({ reason, count }) => [reason, count]))
    if (isHolding) log.warn({ held: counts.contacts.held, reasons }, 'signups are being held: see waitlist held')
    else log.info({ held: counts.contacts.held }, 'no more signups are being held')
    tell(isHolding, held)
  }

  return {
    check,
    /** Checks at once, without an alert for what was held before, and then again and again. */
    async start(): Promise<void> {
      repeated = setInterval(check, EVERY).unref()
      await check()
      tell ??= telling(false)
    },
    /** A signup was held. */
    note(): void {
      if (isHolding || soon !== undefined) return
      soon = setTimeout(() => {
        soon = undefined
        void check()
      }, GATHER).unref()
    },
    stop(): void {
      clearTimeout(soon)
      clearInterval(repeated)
    },
  }
}
