import { type Failure, failureOf, type Reply } from '../http-client/call.ts'
import type { Contact, EventKind, WaitlistEvent } from '../signup/contact.ts'

/** What became of an event. */
export type DeliveryResult =
  | { readonly is: 'delivered' }
  /** It is refused for good, and others may be accepted. */
  | { readonly is: 'refused'; readonly why: string }
  /** `recipientOnly`: it says nothing about other events. */
  | (Failure & { readonly recipientOnly?: true })

/** What an answer to an event means. Any other 4xx is about the address, the secret or our settings. */
export function resultOf(reply: Reply): DeliveryResult {
  if (reply.is === 'ok') return { is: 'delivered' }
  const isRefused = [400, 413, 422].includes(reply.status)
  return isRefused ? { is: 'refused', why: reply.why } : failureOf(reply)
}

/** Who is notified of a contact's events, one by one: the provider's automation, a webhook, or the contact by mail. */
export interface Destination {
  readonly name: string
  readonly events: readonly EventKind[]
  /** Milliseconds for which a repeated event is recognised by its id and ignored; 0: never. */
  readonly repeatable: number
  /** Attempts in flight at once. */
  readonly concurrency: number
  /** Sends an event, always with the same id. `signal` aborts it. Never rejects. */
  deliver(event: WaitlistEvent, signal: AbortSignal): Promise<DeliveryResult>
}

/** A destination with settings of its own, which the provider's automation is not. */
export interface OwnDestination extends Destination {
  /** Tries address and credentials: null when they are good. Never rejects. */
  check(signal: AbortSignal): Promise<Failure | null>
}

/**
 * A contact at the provider. `created`: by this attempt, or perhaps by an earlier one in doubt. `existing`: it was there
 * before. `hasLeft`: it has unsubscribed.
 */
export interface ProviderContact {
  readonly is: 'created' | 'existing'
  readonly providerId?: string | undefined
  readonly hasLeft?: true
}

/** What became of a contact that was handed over. */
export type Creation =
  | ProviderContact
  /** The address is refused for good. `reason` completes "the email provider does not accept this address: …". */
  | { readonly is: 'refused'; readonly reason: string }
  | Failure

/** What became of a person at the provider. */
export type Removal =
  | { readonly is: 'removed' | 'absent' }
  /** Its API cannot erase, and nothing was done. `how` tells the owner what to do: "delete the contact in …". */
  | { readonly is: 'by hand'; readonly how: string }
  | Failure

/** The upstream tool that holds the list for its owner. No method rejects. */
export interface Provider {
  readonly name: string
  /** Milliseconds that one creation may take. */
  readonly timeout: number
  /** Adds the address if it is new there, and never changes an existing contact. `inDoubt`: an earlier attempt may have. */
  create(contact: Contact, inDoubt: boolean, signal: AbortSignal): Promise<Creation>
  /** Erases the contact with this very address, ASCII case aside. May be repeated. */
  remove(email: string, signal: AbortSignal): Promise<Removal>
  /** Starts the owner's automation; null if the settings name none, or the provider starts it by itself. */
  readonly automation: Destination | null
  /** Tries the key and what the settings name: null when all is good. Changes nothing. */
  check(signal: AbortSignal): Promise<Failure | null>
}
