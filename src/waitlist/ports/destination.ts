import type { JoinedEvent } from '../rules/contact.ts'

/** A destination's answer to an event. */
export type DeliveryResult =
  | { readonly is: 'delivered' }
  /** The receiver no longer exists (410): nothing more should be sent. */
  | { readonly is: 'gone'; readonly why: string }
  /** It refuses this event for good; others may be accepted. */
  | { readonly is: 'refused'; readonly why: string }
  | Failure

/** Who is notified that a contact joined: the provider's automation, a webhook, a mail to the contact. */
export interface Destination {
  readonly name: string

  /** Milliseconds for which a repeated event is recognised by its id and ignored; 0: never. */
  readonly repeatable: number

  /** Milliseconds that one attempt may take once it has begun. */
  readonly timeout: number

  /** Attempts that may be under way at once. */
  readonly concurrency: number

  /** Sends one event, always with the same id. `signal` and `mayBegin` as for `Provider.createContact`. Never rejects. */
  deliver(event: JoinedEvent, signal: AbortSignal, mayBegin?: () => boolean): Promise<DeliveryResult>
}

/** A destination with settings and connections of its own, which the provider's automation is not. */
export interface OwnDestination extends Destination {
  /** Tries address and credentials: null when they are good. Tells of no contact and never rejects. */
  check(signal: AbortSignal): Promise<Failure | null>
  close(): Promise<void>
}

/**
 * Why an outbound call failed. `why` is for the log and contains no address, name or secret. `retryAfter` is the wait
 * that the other side asked for, in milliseconds.
 */
export type Failure =
  /** Certainly without effect: no connection, too many requests, our own limits. */
  | {
      readonly is: 'unreached'
      readonly why: string
      readonly retryAfter?: number | undefined
      /** Our own limits kept the call back, which says nothing about the other side. */
      readonly notSent?: true | undefined
      /** The other side answers, and holds back this delivery alone. */
      readonly alone?: true
    }
  /** It may have taken effect: cut off or timed out after it was sent, a server error, an answer that makes no sense. */
  | {
      readonly is: 'unclear'
      readonly why: string
      readonly retryAfter?: number | undefined
      /** Our own limits kept a later call back, after an earlier one took effect. */
      readonly notSent?: true | undefined
    }
  /** Our key or our settings are refused: the operator must fix them. */
  | {
      readonly is: 'misconfigured'
      readonly why: string
      /** Part of it took effect: the contact may exist already. */
      readonly tookEffect?: true
    }
