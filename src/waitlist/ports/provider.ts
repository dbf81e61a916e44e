import type { Contact } from '../../signup/contact.ts'
import type { Destination, Failure } from './destination.ts'

/** The provider's answer to a contact. */
export type Creation =
  | { readonly is: 'created'; readonly providerId?: string | undefined }
  /** `ours`: in doubt, whether one of our attempts created it, if the provider can tell. */
  | { readonly is: 'existing'; readonly providerId?: string | undefined; readonly ours?: boolean | undefined }
  /** The address is refused for good. `reason` completes "the email provider does not accept this address: …". */
  | { readonly is: 'refused'; readonly reason: string }
  | Failure

/** What became of a person at the provider. */
export type Removal =
  /** Erased, or on the way: docs/providers.md says what the vendor keeps, and for how long. */
  | { readonly is: 'removed' }
  | { readonly is: 'absent' }
  /** Its API cannot erase, and nothing was done. `how` tells the owner what to do: "delete the contact in …". */
  | { readonly is: 'by hand'; readonly how: string }
  | Failure

/** The upstream tool that holds the list for its owner. */
export interface Provider {
  readonly name: string

  /** Milliseconds that one creation may take, not counting the wait in our own queue. */
  readonly timeout: number

  /**
   * Adds the address if it is new there, and never changes an existing contact.
   *
   * `doubt`: an earlier call for this contact may have taken effect. The provider then says, if it can, whether an
   * existing contact came from that call. `signal` aborts the call. `mayBegin` is called when its turn in our own queue
   * has come; if it returns false, nothing is sent. There, what is `forVisitor` goes before what nobody waits for. Never
   * rejects.
   */
  createContact(
    contact: Contact,
    doubt: boolean,
    signal: AbortSignal,
    mayBegin?: () => boolean,
    forVisitor?: boolean,
  ): Promise<Creation>

  /**
   * Erases the contact with this very address, ASCII case aside: from all lists there, with all that is known of it.
   * May be repeated. What no signup could have as its address is absent. `signal` aborts the call. Never rejects.
   */
  remove(email: string, signal: AbortSignal): Promise<Removal>

  /** Starts the owner's automation; null if the settings name none, or the provider starts it by itself. */
  readonly automation: Destination | null

  /** Tries the credentials and what the settings name: null when all is good. Changes nothing and never rejects. */
  check(signal: AbortSignal): Promise<Failure | null>

  close(): Promise<void>
}
