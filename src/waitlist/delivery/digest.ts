import type { Channel, DeliveryResult } from '../ports/destination.ts'
import type { Digest, DigestSettlement, Leased, Outbox } from '../ports/outbox.ts'
import type { Upkeep } from '../ports/upkeep.ts'
import { within } from '../timers.ts'
import { type DeliveryKind, type Dispatcher, type DispatcherParts, dispatcher } from './deliver.ts'
import type { Claims } from './leases.ts'
import { eventSchedule } from './retry.ts'

/** Deliveries in one digest, since with SQLite signups wait while they are leased. The rest comes in the next one. */
const MOST = 10_000
/** Milliseconds. Nobody waits for it, so probes may be rare. */
const LONGEST_PAUSE = 300_000
/** Milliseconds between two claims while the last digest is too recent. Another process may end its own sooner. */
const RECLAIM = 2_000
/** Milliseconds. A message goes without the total rather than late. */
const COUNT_TIMEOUT = 5_000

export interface DigestsParts extends Omit<DispatcherParts, 'store'> {
  readonly store: Pick<Outbox, 'claimDigest' | 'settleDigest'> & Pick<Upkeep, 'countListed'>
  readonly channel: Channel
}

/** One attempt at a digest. */
interface Attempt extends Leased {
  readonly digest: Digest
}

/**
 * Tells a channel of all who joined and all who were invited since the last time, in one message.
 *
 * | answer    | the deliveries of the digest                                               |
 * |-----------|----------------------------------------------------------------------------|
 * | delivered | are done                                                                   |
 * | refused   | are abandoned                                                               |
 * | a failure | see `judgeFailure`; the next digest has them again, and those who came since |
 *
 * A channel does not recognise a repetition. So that nobody is left out, what may have arrived is told again, and the message
 * says how many of those it counts may have been counted before.
 */
export function digests(parts: DigestsParts): Dispatcher<DeliveryResult, Attempt> {
  const { store, channel, clock = () => performance.now() } = parts
  const { distance, withNames } = channel
  let attempts = 0
  let claimAt = Number.NEGATIVE_INFINITY

  const claims: Claims<Attempt> = {
    async claim(name) {
      // Each signup wakes the loop, which need not ask the store each time.
      if (clock() < claimAt) return []
      const digest = await store.claimDigest(name, MOST, distance)
      if (typeof digest === 'number') claimAt = clock() + Math.min(digest, RECLAIM)
      if (digest === null || typeof digest === 'number') return []
      // Each has a number of its own: it is the channel that fails, not one of the deliveries.
      return [{ number: ++attempts, token: digest.token, attempts: digest.attempts, doubt: false, digest }]
    },
    settle: ({ digest }, settlement) => store.settleDigest(digest, settlement as DigestSettlement, distance),
  }

  let counting = false
  /** Null also while an earlier count has not ended, so that there is never more than one. */
  async function total(): Promise<number | null> {
    if (counting) return null
    counting = true
    const counted = store
      .countListed()
      .catch(() => null)
      .finally(() => {
        counting = false
      })
    return within(counted, COUNT_TIMEOUT, null)
  }

  const kind: DeliveryKind<DeliveryResult, Attempt> = {
    name: channel.name,
    concurrency: 1,
    called: channel.title,
    meanwhile: 'what it is told is kept and told later',
    schedule: eventSchedule,
    longestPause: LONGEST_PAUSE,
    mayRepeat: () => true,
    async tell({ digest: { deliveries, doubtful, invited, names } }, signal) {
      const joined = deliveries.length - invited
      // After the claim, so that it counts them too.
      const all = await total()
      const alert = { is: 'digest', joined, invited, doubtful, names: withNames ? names : [], total: all } as const
      return channel.tell(alert, signal)
    },
    judge: result => (result.is === 'delivered' ? result : { is: 'abandoned', why: result.why }),
    about: ({ digest }) => ({ deliveries: digest.deliveries.length }),
  }
  return dispatcher(kind, { ...parts, store: claims })
}
