import type { Delivery, Settlement } from '../../store/outbox.ts'
import type { Failure, Outage } from '../ports/destination.ts'
import type { Creation, Provider } from '../ports/provider.ts'
import type { Breaker } from './breaker.ts'
import { type Attempted, type DeliveryKind, type DispatcherParts, dispatcher } from './deliver.ts'
import type { Loop } from './loop.ts'
import { handOverSchedule } from './retry.ts'

/** How a hand-over ended. */
export type HandedOver =
  /** `contactId` is the provider's, of a contact that this signup created there. */
  | { readonly is: 'new'; readonly contactId?: string | undefined }
  | { readonly is: 'known' }
  /** The signup is stored and will be completed in the background. */
  | { readonly is: 'kept'; readonly because: Outage }
  | { readonly is: 'refused'; readonly reason: string }
  /** The lease was lost: another attempt decides, or the operator has erased the contact meanwhile. */
  | { readonly is: 'lost' }

export interface HandOver {
  /** Hands pending contacts over in the background. */
  readonly loop: Loop
  /** Leases the hand-over of the contact with this address; undefined: it is leased already, or has ended. */
  claim(address: string): Promise<Delivery | undefined>
  readonly breaker: Breaker
  /** Makes one attempt for a waiting visitor, or none if the breaker forbids it. Rejects only when the store does. */
  attempt(delivery: Delivery, signal: AbortSignal): Promise<HandedOver>
  /** Resolves when every outcome that the store refused is stored or its lease has ended, or when `signal` is aborted. */
  settled(signal: AbortSignal): Promise<void>
}

export interface HandOverParts extends DispatcherParts {
  readonly provider: Provider
}

/** Simultaneous attempts in the background: few, since waiting visitors need the same provider. */
const CONCURRENCY = 4
/** Milliseconds. Short, so that pending contacts are completed soon after the provider returns. */
const LONGEST_PAUSE = 5_000

/** Why a visitor's signup was not sent to the provider. */
const NOT_SENT: Readonly<Record<Outage, string>> = {
  unreachable: 'the provider does not answer',
  misconfigured: 'the provider refuses our settings',
}

/** Hands contacts over to the provider, and turns its answers into settlements and results for the visitor. */
export function handOver({ provider, ...parts }: HandOverParts): HandOver {
  const kind: DeliveryKind<Creation, Delivery> = {
    name: provider.name,
    concurrency: CONCURRENCY,
    called: 'the provider',
    meanwhile: 'signups are kept and completed later',
    about: ({ contact }) => ({ contact: contact.id }),
    schedule: handOverSchedule,
    longestPause: LONGEST_PAUSE,
    // `createContact` adds an address only if it is new there, so repeating it is safe.
    mayRepeat: () => true,
    tell: ({ contact, doubt }, signal, ...turn) => provider.createContact(contact, doubt, signal, ...turn),
    judge,
  }
  const { loop, breaker, claim, settle, settled, attempt } = dispatcher(kind, parts)

  return {
    loop,
    settled,
    breaker,
    async claim(address) {
      const [delivery] = await claim(provider.name, 1, address)
      return delivery
    },
    async attempt(delivery, signal) {
      const refusal = breaker.refusal()
      if (refusal === null && !signal.aborted) return answerTo(await attempt(delivery, signal), breaker.refusal)
      const because = refusal ?? 'unreachable'
      const why = `not sent: ${refusal === null ? 'the service was stopped' : NOT_SENT[refusal]}`
      await settle(delivery, { is: 'retry', wait: 0, doubt: delivery.doubt, why, counts: false })
      return { is: 'kept', because }
    },
  }
}

/**
 * What becomes of a pending contact. A lease that ends without an outcome leaves doubt, so the row is right even after a
 * crash.
 *
 * | the provider says     | in doubt before | the contact        | event | in doubt after | the visitor hears          |
 * |-----------------------|-----------------|--------------------|-------|----------------|----------------------------|
 * | created               | either          | is listed          | yes   | –              | new                        |
 * | existing              | no              | is listed          | no    | –              | known                      |
 * | existing, ours        | yes             | is listed          | yes   | –              | new                        |
 * | existing, not ours    | yes             | is listed          | no    | –              | known                      |
 * | existing, cannot tell | yes             | is listed          | yes   | –              | new                        |
 * | refused               | either          | is removed         | no    | –              | why the address is refused |
 * | unreached             | no / yes        | stays, tried again | no    | no / yes       | kept                       |
 * | misconfigured         | no / yes        | stays, tried again | no    | where it took effect / yes | kept           |
 * | unclear               | either          | stays, tried again | no    | yes            | kept                       |
 * | nothing: we crashed   | either          | stays, tried again | no    | yes            | nothing                    |
 */
function judge(creation: Exclude<Creation, Failure>, { doubt }: Delivery): Settlement {
  if (creation.is === 'refused') return { is: 'removed', why: creation.reason }
  const { is, providerId } = creation
  return { is: 'listed', joined: is === 'created' || (doubt && creation.ours !== false), providerId }
}

function answerTo({ result, settlement, stored }: Attempted<Creation>, refusal: Breaker['refusal']): HandedOver {
  if (!stored) return { is: 'lost' }
  switch (settlement.is) {
    case 'listed': {
      if (!settlement.joined) return { is: 'known' }
      // Where the provider cannot tell whose contact it is, the id may be that of somebody who was there before.
      const isOurs = result?.is === 'created' || (result?.is === 'existing' && result.ours === true)
      return { is: 'new', contactId: isOurs ? settlement.providerId : undefined }
    }
    case 'removed':
      return { is: 'refused', reason: settlement.why }
    default:
      // If nothing was sent because others failed meanwhile, their reason applies.
      return { is: 'kept', because: result?.is === 'misconfigured' ? 'misconfigured' : (refusal() ?? 'unreachable') }
  }
}
