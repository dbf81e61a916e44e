/** The words of ARCHITECTURE.md as types. */

/**
 * `unconfirmed`: recorded, and mailed a link that confirms the address. `pending`: recorded, and not yet taken by the provider.
 * `held`: recorded, and kept back until the operator releases it. `listed`: on the list; without a provider, at once.
 * `invited`: on the list, and let in.
 */
export const contactStates = ['unconfirmed', 'pending', 'held', 'listed', 'invited'] as const
export type ContactState = (typeof contactStates)[number]

/**
 * Why a signup is held instead of listed, the worst first. Only the worst is stored, so releasing the `unverified` lets in no
 * name with a link.
 *
 * - `link-in-name`: its name has an address, a link or an encoded word in it, which a mail would carry to a stranger.
 * - `same-mailbox`: another spelling of an address that is known already, with dots or after a plus.
 * - `unverified`: the verifier of its challenge did not answer.
 * - `above-limit`: as many as the operator's limit were let in within the window.
 */
export const holdReasons = ['link-in-name', 'same-mailbox', 'unverified', 'above-limit'] as const
export type HoldReason = (typeof holdReasons)[number]

/** A person on the list. */
export interface Contact {
  /** UUIDv7 (RFC 9562 §5.7), lower case, given by the store. */
  readonly id: string
  readonly name: string
  /** As first typed. Addresses are compared in ASCII lower case. */
  readonly email: string
  readonly state: ContactState
  /** Why it is held; absent in any other state. */
  readonly reason?: HoldReason | undefined
  /** When the signup was recorded. */
  readonly createdAt: Date
  /** Present exactly in the state `unconfirmed`. */
  readonly confirmation?: ConfirmationMails | undefined
  /** When the address was confirmed by its link; absent: it never had to be. */
  readonly confirmedAt?: Date | undefined
  /** Where the signup came from; absent if that is not known. */
  readonly source?: Source | undefined
  /** The provider's id for this contact, if it gave one. */
  readonly providerId?: string | undefined
  /** "This contact joined": created in the transaction that lists it. Absent if the provider knew the contact before. */
  readonly event?: ContactEvent | undefined
  /** Present exactly in the state `invited`. */
  readonly invitation?: Invitation | undefined
}

/** The query parameters that say where a signup came from: those of campaigns, and a code of who referred it. */
export const sourceParameters = ['utm_source', 'utm_medium', 'utm_campaign', 'utm_term', 'utm_content', 'ref'] as const

/** Where a signup came from: at least one parameter, each 1..100 code points, cleaned like a name. */
export type Source = { readonly [Parameter in (typeof sourceParameters)[number]]?: string }

/** What a source is counted and found by; null: it names neither. */
export const sourceLabel = (source: Source | undefined): string | null => source?.utm_source ?? source?.ref ?? null

/** Mails that ask a contact to confirm its address. */
interface ConfirmationMails {
  /** When the last one was stored to be sent. */
  readonly at: Date
  /** How many of them there are: 1..`RESEND_MOST`. */
  readonly times: number
}

/** Mails within a day to one address that is not confirmed, when the signup is repeated. */
export const RESEND_MOST = 4
/** Milliseconds from a mail that a server accepted until another is sent. */
export const RESEND_AFTER = 600_000

interface ContactEvent {
  /** The name that automations know it by, such as `waitlist.joined`. */
  readonly name: string
  readonly at: Date
}

/** "This contact was invited": created in the transaction that invites it. */
export interface Invitation {
  /** The code that the owner's app redeems: 128 random bits in base64url, 22 characters. */
  readonly code: string
  readonly at: Date
  /** The name of its event. */
  readonly name: string
  /** When the owner's app redeemed the code; absent: not yet. */
  readonly redeemedAt?: Date | undefined
}

/** What happens to a contact, each at most once, and destinations are notified of. */
export const publicEvents = ['joined', 'invited'] as const
export type PublicEvent = (typeof publicEvents)[number]

/** What destinations deliver for a contact: its events, and the mail with the link that confirms its address. */
export const eventKinds = [...publicEvents, 'confirmation'] as const
export type EventKind = (typeof eventKinds)[number]

/** What a delivery is for: a contact that is handed over to the provider, or one of these. */
export type DeliveryKind = 'handover' | EventKind

/** An event as destinations get it. */
export interface WaitlistEvent extends ContactEvent {
  readonly kind: EventKind
  /** The same in all attempts and for all destinations, so that receivers can drop repeats: 40 of `[a-z0-9_-]`. */
  readonly id: string
  readonly contact: Contact
  /** That of the invitation, if the event is of one. */
  readonly code?: string | undefined
}

const prefixes: Readonly<Record<PublicEvent, string>> = { joined: 'evt', invited: 'inv' }

/** A contact has at most one event of each kind, so the contact's id names it. */
export const eventId = ({ id }: Pick<Contact, 'id'>, kind: PublicEvent): string => `${prefixes[kind]}_${id}`

/** The event of this kind that a contact has. */
export function eventOf(contact: Contact, kind: EventKind): WaitlistEvent {
  const { event, invitation, confirmation } = contact
  if (kind === 'joined' && event !== undefined) return { kind, id: eventId(contact, kind), ...event, contact }
  if (kind === 'invited' && invitation !== undefined) {
    const { name, at, code } = invitation
    return { kind, id: eventId(contact, kind), name, at, contact, code }
  }
  if (kind === 'confirmation' && confirmation !== undefined) {
    return { kind, id: `ask_${contact.id}`, name: kind, at: confirmation.at, contact }
  }
  throw new Error('this contact has no such event')
}

/** `waiting` until it is due, `delivered`, or `abandoned` for a reason until the operator replays it. */
export const deliveryStates = ['waiting', 'delivered', 'abandoned'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** A delivery as the operator sees it in a list: without the contact's name and address. */
export interface DeliveryRecord {
  /** Identifies it; counted from 1. */
  readonly number: number
  readonly contactId: string
  /** Null for a hand-over, and for a mail that asks to confirm: their contact has no event yet. */
  readonly eventId: string | null
  readonly kind: DeliveryKind
  readonly destination: string
  readonly state: DeliveryState
  /** Attempts since it was created or replayed, not counting those during an outage. */
  readonly attempts: number
  /** When it is due; during an attempt, when its lease ends. */
  readonly due: Date
  /** How the last attempt ended. */
  readonly why: string | null
  /** When it was delivered or abandoned. */
  readonly settledAt: Date | null
}

declare const parsed: unique symbol

/**
 * What a visitor sent, trimmed and valid: `name` has 1..100 code points, at least one of them visible, `email` 3..255
 * characters, all ASCII.
 */
export interface Signup {
  readonly name: string
  readonly email: string
  /** Where it came from, if that is kept and known. */
  readonly source?: Source | undefined
  /** The solved challenge that it came with, if one is asked for. */
  readonly proof?: Proof | undefined
  /** Whether the verifier of its challenge did not answer. */
  readonly unverified?: boolean | undefined
  readonly [parsed]: true
}

/** A solution that is good for one address. */
export interface Proof {
  /** Identifies the challenge; 1..100 ASCII characters. */
  readonly nonce: string
  readonly expires: Date
}

/** RFC 5321's 64 and 254 are minimums that receivers must accept, not grammar. */
export const EMAIL_MAX = 255

/** RFC 5321 §4.1.2 Dot-string; all of atext (RFC 5322 §3.2.3) is allowed. */
const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
/** RFC 1035 §2.3.1 label, at most 63 characters. */
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
/** The last label starts with a letter, which excludes IPv4 addresses and numbers (RFC 3696 §2). */
const TOP_LABEL = '[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'

/** The subset of RFC 5321 `Mailbox` that we accept: no quoted local part, no address literal, at least two labels. */
export const EMAIL_PATTERN = `${ATOM}(?:\\.${ATOM})*@(?:${LABEL}\\.)+${TOP_LABEL}`

const email = new RegExp(`^${EMAIL_PATTERN}$`)

/** Whether a text is an address that a signup may have. */
export const isEmail = (text: string): boolean => text.length <= EMAIL_MAX && email.test(text)

/**
 * Two addresses are the same contact if they are equal in ASCII lower case. Local parts are case-sensitive formally
 * (RFC 5321 §2.4), but not in practice. `+tags` and dots are kept.
 */
export const emailKey = (email: string): string => email.toLowerCase()
