import type { Failure } from '../http-client/call.ts'
import type { Delivery, Settlement } from '../store/outbox.ts'
import { type Outage, outageWords } from './breaker.ts'
import type { Creation, Provider } from './destination.ts'
import { type Attempted, type WorkerParts, worker } from './worker.ts'

/** How a hand-over ended. */
export type HandedOver =
  /** `contactId` is the provider's. */
  | { readonly is: 'new'; readonly contactId?: string | undefined }
  | { readonly is: 'known' }
  /** The signup is stored and will be completed in the background. */
  | { readonly is: 'kept'; readonly because: Outage }
  | { readonly is: 'refused'; readonly reason: string }
  /** The lease was lost: another attempt decides, or the operator has erased the contact. */
  | { readonly is: 'lost' }

export type Handover = ReturnType<typeof handover>

/** Simultaneous attempts in the background: few, since waiting visitors need the same provider. */
const CONCURRENCY = 4
/** Milliseconds. Short, so that pending contacts are completed soon after the provider returns. */
const LONGEST_PAUSE = 5_000
const DAY = 86_400
/** Seconds after each failure, in the end once a day. Somebody waits for the welcome, so it is soon at first. */
const DELAYS = [2, 5, 15, 60, 300, 1_800, 7_200, 21_600, 43_200]

/** Hands contacts over to the provider, and turns its answers into settlements and results for the visitor. */
export function handover(provider: Provider, label: string, parts: WorkerParts) {
  const { store } = parts
  const { name } = provider
  const background = worker<Creation>(
    {
      ...{ name, label, concurrency: CONCURRENCY, longestPause: LONGEST_PAUSE },
      delay: failures => DELAYS[failures - 1] ?? DAY,
      // An address is added only if it is new there, so repeating it is safe.
      mayRepeat: () => true,
      send: ({ contact, doubt }, signal) => provider.create(contact, doubt, signal),
      settlementOf,
    },
    parts,
  )
  const { breaker, attempt, settle } = background

  return {
    ...background,
    /** Leases the hand-over of the contact with this address; undefined: it is leased already, or has ended. */
    async claim(address: string): Promise<Delivery | undefined> {
      const [delivery] = await store.claim(name, 1, address)
      return delivery
    },
    /** Makes one attempt for a waiting visitor, or none during an outage. Rejects only when the store does. */
    async attempt(delivery: Delivery, signal: AbortSignal): Promise<HandedOver> {
      const outage = breaker.refusal()
      if (outage === null && !signal.aborted) return answerTo(await attempt(delivery, signal), breaker.refusal)
      const reason = outage === null ? 'the service was stopped' : `the provider ${outageWords[outage]}`
      await settle(delivery, { is: 'retry', wait: 0, doubt: delivery.doubt, why: `not sent: ${reason}`, counts: false })
      return { is: 'kept', because: outage ?? 'unreachable' }
    },
  }
}

/**
 * What becomes of a pending contact. A lease that ends without an outcome leaves doubt, so the row is right even after a
 * crash. With doubt, the provider answers `created` where it finds what an earlier attempt may have created.
 *
 * | the provider                           | the contact        | event | in doubt after | the visitor is told        |
 * |----------------------------------------|--------------------|-------|----------------|----------------------------|
 * | created                                | is listed          | yes   | –              | new                        |
 * | existing                               | is listed          | no    | –              | known                      |
 * | refused                                | is removed         | no    | –              | why the address is refused |
 * | unreachable, rate limited, misconfigured | stays, tried again | no  | as before      | kept                       |
 * | in doubt, or we crashed                | stays, tried again | no    | yes            | kept, or nothing           |
 */
const settlementOf = (creation: Exclude<Creation, Failure>): Settlement =>
  creation.is === 'refused'
    ? { is: 'removed', why: creation.reason }
    : { is: 'listed', joined: creation.is === 'created', providerId: creation.providerId }

function answerTo({ result, settlement, isStored }: Attempted<Creation>, refusal: () => Outage | null): HandedOver {
  if (!isStored) return { is: 'lost' }
  if (settlement.is === 'listed')
    return settlement.joined ? { is: 'new', contactId: settlement.providerId } : { is: 'known' }
  if (settlement.is === 'removed') return { is: 'refused', reason: settlement.why }
  return { is: 'kept', because: result?.is === 'misconfigured' ? 'misconfigured' : (refusal() ?? 'unreachable') }
}
