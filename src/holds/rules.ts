import { emailKey, type HoldReason, holdReasons, type Signup } from '../signup/contact.ts'
import { mailboxOf } from '../store/mailbox.ts'

/** What is held. */
export interface HoldRules {
  /** New contacts that are let in within so many milliseconds; null: there is no limit. */
  readonly above: { readonly count: number; readonly time: number } | null
  /** Whether a signup is held for what it looks like. */
  readonly suspicious: boolean
}

/** What a store remembers of those who came before, while it decides about a candidate. */
interface AdmissionWindow {
  /** Whether a contact has this mailbox. */
  mailboxExists(mailbox: string): boolean
  /** Whether fewer than the limit were let in within the window. */
  underLimit(): boolean
}

/** What is looked up for a candidate. */
export interface Candidate {
  readonly signup: Pick<Signup, 'name' | 'email' | 'unverified'>
  /** Whether it matters what it looks like. */
  readonly watched: boolean
  /** Null: not known to have other spellings, or not watched. */
  readonly mailbox: string | null
}

export function candidateOf(signup: Candidate['signup'], { suspicious }: HoldRules): Candidate {
  return { signup, watched: suspicious, mailbox: suspicious ? mailboxOf(emailKey(signup.email)) : null }
}

type Rule = (candidate: Candidate, window: AdmissionWindow) => boolean

/** Whether a candidate is held, by the reason that is stored. The first that says so counts. */
const rules: Readonly<Record<HoldReason, Rule>> = {
  'link-in-name': ({ signup, watched }) => watched && hasLink(signup),
  'same-mailbox': ({ mailbox }, { mailboxExists }) => mailbox !== null && mailboxExists(mailbox),
  unverified: ({ signup }) => signup.unverified === true,
  'above-limit': (_, { underLimit }) => !underLimit(),
}

/** Null: the candidate is let in. */
export const holdReasonOf = (candidate: Candidate, window: AdmissionWindow): HoldReason | null =>
  holdReasons.find(reason => rules[reason](candidate, window)) ?? null

// Each begins where a word does: a long name would otherwise be tried from every letter, for a millisecond in all.

/** A scheme, or `www.`, or a host name with a path, whose last label is in one case: "Dipl.Ing/MBA" is none. */
const LINK =
  /:\/\/|\b[Ww]{3}\.|(?<![\p{L}\p{N}-])[\p{L}\p{N}-]+\.(?:\p{Ll}{2,}|\p{Lu}{2,}|\p{Lo}{2,}|xn--[a-z0-9-]+)(?::\d+)?\//u
const ADDRESS = /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/giu
/**
 * A bare host name, which many mail programs make a link of. Only under domains that are no name and no word after one:
 * people are called "J.R. Smith" and "Jean.Pierre", and things "Node.js".
 */
const HOST =
  /(?<![\p{L}\p{N}])(?:[\p{L}\p{N}][\p{L}\p{N}-]*\.)+(?:com|net|org|info|biz|io|ru|cn|xyz|top|click|link|shop|site|online|store|website|icu|vip|bet|casino|sbs|cfd|cyou|buzz|tk)(?![\p{L}\p{N}]|[.-]\p{L})/giu

/** An encoded word (RFC 2047), which mail programs decode in a header: what it stands for is hidden from these rules. */
const ENCODED_WORD = /=\?[^?]*\?[bq]\?/i

/** As browsers read a host name (UTS #46): other dots and letters are the usual ones, and what is invisible is not there. */
const usual = (name: string): string =>
  name
    .normalize('NFKC')
    .replaceAll('\u3002', '.')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')

/**
 * What a mail would carry to a stranger. What belongs to the address itself says nothing: some type their address as
 * their name, and some companies are called like their domain.
 */
export function hasLink({ name, email }: Pick<Signup, 'name' | 'email'>): boolean {
  const key = emailKey(email)
  const rest = usual(name).replace(ADDRESS, each => (emailKey(each) === key ? '' : each))
  if (ENCODED_WORD.test(rest) || LINK.test(rest) || rest.search(ADDRESS) >= 0) return true
  return [...rest.matchAll(HOST)].some(([host]) => emailKey(host) !== domainOf(key))
}

const domainOf = (key: string): string => key.slice(key.indexOf('@') + 1)
