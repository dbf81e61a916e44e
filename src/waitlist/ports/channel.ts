import type { Counts } from '../alerts/counts.ts'
import type { DeliveryResult, Failure } from './destination.ts'

/** What a channel is told. */
export type Alert =
  /** So many people joined since the last time. */
  | {
      readonly is: 'joined'
      readonly people: number
      /** How many of them an earlier message may have counted. */
      readonly doubtful: number
      /** The names of the first of them; none, if they are not to be told. */
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

/** A chat that is told how the waitlist grows. */
export interface Channel {
  readonly name: string
  /** For the log. */
  readonly title: string
  /** Sends one message. `signal` aborts the call. Never rejects. */
  tell(alert: Alert, signal: AbortSignal): Promise<DeliveryResult>
  /** Sends a message that says that it is a test: null when it arrived. Never rejects. */
  check(signal: AbortSignal): Promise<Failure | null>
  close(): Promise<void>
}
