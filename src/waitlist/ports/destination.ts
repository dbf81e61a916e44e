import type { JoinedEvent } from '../rules/contact.ts'
import type { Failure } from './failure.ts'

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
