import type { EventKind, WaitlistEvent } from '../../signup/contact.ts'
import type { Counts } from '../alerts/counts.ts'

/** A destination's answer to an event. */
export type DeliveryResult =
  | { readonly is: 'delivered' }
  /** The receiver no longer exists (410): nothing more should be sent. */
  | { readonly is: 'gone'; readonly why: string }
  /** It refuses this event for good; others may be accepted. */
  | { readonly is: 'refused'; readonly why: string }
  | Failure

/**
 * Who is notified that a contact joined or was invited: the provider's automation, a webhook, a mail to the contact, which
 * may also ask for a confirmation.
 */
export interface Destination {
  readonly name: string

  /** What it is told of. */
  readonly events: readonly EventKind[]

  /** Milliseconds for which a repeated event is recognised by its id and ignored; 0: never. */
  readonly repeatable: number

  /** Milliseconds that one attempt may take once it has begun. */
  readonly timeout: number

  /** Attempts that may be under way at once. */
  readonly concurrency: number

  /** Sends one event, always with the same id. `signal` and `mayBegin` as for `Provider.createContact`. Never rejects. */
  deliver(event: WaitlistEvent, signal: AbortSignal, mayBegin?: () => boolean): Promise<DeliveryResult>
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

/** What a channel is told. */
export type Alert =
  /** So many people joined, and so many were invited, since the last time; not neither. */
  | {
      readonly is: 'digest'
      readonly joined: number
      readonly invited: number
      /** Whether an earlier message may have counted some of both. */
      readonly doubt: boolean
      /** The names of the first who joined; none, if they are not to be told. */
      readonly names: readonly string[]
      /** Contacts on the list; null: they could not be counted. */
      readonly total: number | null
    }
  /** A destination does not answer, refuses our settings, or answers again. `called`: what people call it. */
  | { readonly is: Outage | 'answering'; readonly called: string; readonly keeps: 'signups' | 'events' }
  /** Something has waited for a destination for more than an hour, or no longer. */
  | { readonly is: 'late' | 'on time'; readonly called: string }
  /** Signups are being held, or no more. */
  | { readonly is: 'holding' | 'not holding'; readonly held: Counts['held'] }
  /** The store takes no signups, or takes them again. */
  | { readonly is: 'refusing' | 'storing' }

/** Why nothing should wait for a destination: it does not answer, or refuses our settings. */
export type Outage = 'unreachable' | 'misconfigured'

/** A chat, or the owner's mailbox, that is told how the waitlist grows. */
export interface Channel {
  readonly name: string
  /** What people call it, within a sentence. */
  readonly title: string
  /** The minimum between two digests, in milliseconds. */
  readonly minInterval: number
  /** Whether it is told names. */
  readonly withNames: boolean
  /** Sends one message. `signal` aborts the call. Never rejects. */
  tell(alert: Alert, signal: AbortSignal): Promise<DeliveryResult>
  /** Sends a message that says that it is a test: null when it arrived. Never rejects. */
  check(signal: AbortSignal): Promise<Failure | null>
  close(): Promise<void>
}
