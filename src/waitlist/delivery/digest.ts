import { claimDigest, type Digest, settleDigest } from '../../notify/cursor.ts'
import { countListed } from '../../store/counts.ts'
import type { Store } from '../../store/store.ts'
import type { Channel, DeliveryResult } from '../ports/destination.ts'
import { within } from '../timers.ts'
import { type DeliveryKind, type Dispatcher, type DispatcherParts, dispatcher } from './deliver.ts'
import { eventSchedule } from './retry.ts'
import type { Claims, Leased } from './settle.ts'

/** Milliseconds. Nobody waits for it, so probes may be rare. */
const LONGEST_PAUSE = 300_000
/** Milliseconds between two claims while nothing is due. Another process may end its own digest sooner. */
const RECLAIM = 2_000
/** Milliseconds. A message goes without the total rather than late. */
const COUNT_TIMEOUT = 5_000

export interface DigestsParts extends Omit<DispatcherParts, 'store'> {
  readonly store: Pick<Store, 'transaction' | 'read'>
  readonly channel: Channel
}

/** One attempt at a digest. */
interface Attempt extends Leased {
  readonly digest: Digest
}

/**
 * Tells a channel of all who joined and all who were invited since the last time, in one message. A channel does not recognise
 * a repetition: after a crash one message may be sent again, and says so.
 */
export function digests(parts: DigestsParts): Dispatcher<DeliveryResult, Attempt> {
  const { store, channel, clock = () => performance.now() } = parts
  const { minInterval, withNames } = channel
  let number = 0
  let claimAt = Number.NEGATIVE_INFINITY

  const claims: Claims<Attempt> = {
    async claim(name) {
      // Each signup wakes the loop, which need not ask the store each time.
      if (clock() < claimAt) return []
      const digest = await store.transaction(tx => claimDigest(tx, name))
      if (digest === null || typeof digest === 'number') {
        claimAt = clock() + Math.min(digest ?? RECLAIM, RECLAIM)
        return []
      }
      // It is the channel that fails, and not this digest, which is therefore never given up.
      return [{ number: ++number, token: digest.token, attempts: 0, doubt: digest.doubt, digest }]
    },
    settle: ({ digest }, settlement) =>
      store.transaction(tx =>
        settlement.is === 'retry'
          ? settleDigest(tx, digest, { until: null, wait: settlement.wait, doubt: settlement.doubt })
          : settleDigest(tx, digest, { until: digest.until, wait: minInterval, doubt: false }),
      ),
  }

  const kind: DeliveryKind<DeliveryResult, Attempt> = {
    name: channel.name,
    concurrency: 1,
    called: channel.title,
    meanwhile: 'what it is told is kept and told later',
    schedule: eventSchedule,
    longestPause: LONGEST_PAUSE,
    mayRepeat: () => true,
    async tell({ digest: { joined, invited, names, doubt } }, signal) {
      // After the claim, so that it counts them too.
      const total = await within(
        store.read(countListed).catch(() => null),
        COUNT_TIMEOUT,
        null,
      )
      return channel.tell({ is: 'digest', joined, invited, doubt, names: withNames ? names : [], total }, signal)
    },
    judge: result => (result.is === 'delivered' ? result : { is: 'abandoned', why: result.why }),
    about: ({ digest: { joined, invited } }) => ({ joined, invited }),
  }
  return dispatcher(kind, { ...parts, store: claims })
}
