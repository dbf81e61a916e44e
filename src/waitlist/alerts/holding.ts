import type { Log } from '../ports/log.ts'
import type { Upkeep } from '../ports/upkeep.ts'
import type { Counts } from './counts.ts'

export interface HoldingParts {
  readonly store: Pick<Upkeep, 'counts'>
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Milliseconds of the limit on signups. */
  readonly window: number
  /** What an operator types here to see them. */
  readonly command: string
  /** Returns what tells channels whether signups are being held, and what is held. `already`: they know that it began. */
  readonly telling: (already: boolean) => (isHolding: boolean, held: Counts['held']) => void
}

/** Tells the operator once that signups are being held, and once that this is over. */
export interface Holding {
  /** Looks what there was before, which is no news for channels, and then again and again. */
  start(): Promise<void>
  /** A signup was held. */
  note(): void
  /** Looks once. */
  look(): Promise<void>
  stop(): void
}

/** Milliseconds from the first signup that is held to the news of it, which then says what kind of attack it may be. */
const GATHER = 10_000
/** Milliseconds between two looks, each of which may cost a second of a processor: what other instances hold is news too. */
const EVERY = 300_000
/** Milliseconds without a signup that is held after which it is over: never less, or the news of a slow attack had no end. */
const LEAST_QUIET = 600_000

/** What the store has decides, so all instances see the same, also after a restart. */
export function holding({ store, log, window, command, telling }: HoldingParts): Holding {
  const quiet = Math.max(window, LEAST_QUIET)
  let isHolding = false
  let tell: ReturnType<typeof telling> | null = null
  let soon: NodeJS.Timeout | undefined
  let repeated: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    // A store that cannot count is news of its own.
    const counts = await store.counts().catch(() => null)
    if (counts === null) return
    const { at, held } = counts
    const newest = Math.max(...held.map(({ newest }) => newest.getTime()))
    const was = isHolding
    isHolding = at.getTime() - newest < quiet
    tell ??= telling(isHolding)
    if (isHolding === was) return
    const reasons = Object.fromEntries(held.map(({ reason, count }) => [reason, count]))
    if (isHolding) log.warn({ held: counts.contacts.held, reasons }, `signups are being held: see ${command}`)
    else log.info({ held: counts.contacts.held }, 'no more signups are being held')
    tell(isHolding, held)
  }

  return {
    look,
    async start() {
      repeated = setInterval(look, EVERY).unref()
      await look()
      tell ??= telling(false)
    },
    note() {
      if (isHolding || soon !== undefined) return
      soon = setTimeout(() => {
        soon = undefined
        void look()
      }, GATHER).unref()
    },
    stop() {
      clearTimeout(soon)
      clearInterval(repeated)
    },
  }
}
