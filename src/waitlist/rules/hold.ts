import { type HoldReason, holdReasons } from './contact.ts'
import { isMailProvider, mailboxOf } from './mailbox.ts'
import { emailKey, type Signup } from './signup.ts'

/** What is held. */
export interface HoldRules {
  /** New contacts that are let in within the window; null: there is no limit. */
  readonly above: number | null
  /** Milliseconds. */
  readonly window: number
  /** Whether a signup is held for what it looks like. */
  readonly suspicious: boolean
}

/** New contacts of one domain that are let in within a window, unless strangers to each other have mailboxes there. */
export const DOMAIN_MOST = 20

/** The scope of all arrivals; that of a domain is the name it was registered by. */
export const ALL = ''

/** What a store remembers of those who came before, while it decides about a candidate. */
export interface AdmissionWindow {
  /** Whether a contact has this mailbox. */
  knows(mailbox: string): boolean
  /** Whether fewer than `most` were let in within the window. */
  hasRoom(scope: string, most: number): boolean
}

/** What is looked up for a candidate. */
export interface Candidate {
  readonly signup: Pick<Signup, 'name' | 'email' | 'unverified'>
  /** Whether it matters what it looks like. */
  readonly watched: boolean
  /** Null: not known to have other spellings, or not watched. */
  readonly mailbox: string | null
  /** The limits that it counts against: how many may be let in, by scope. */
  readonly scopes: ReadonlyMap<string, number>
}

export function candidateOf(signup: Candidate['signup'], { above, suspicious }: HoldRules): Candidate {
  const key = emailKey(signup.email)
  const domain = domainOf(key)
  const scopes = new Map<string, number>()
  if (suspicious && !isMailProvider(domain)) scopes.set(registeredDomainOf(domain), DOMAIN_MOST)
  if (above !== null) scopes.set(ALL, above)
  return { signup, watched: suspicious, mailbox: suspicious ? mailboxOf(key) : null, scopes }
}

type Rule = (candidate: Candidate, window: AdmissionWindow) => boolean

/** Whether a candidate is held, by the reason that is stored. The first that says so counts. */
const rules: Readonly<Record<HoldReason, Rule>> = {
  'link-in-name': ({ signup, watched }) => watched && hasLink(signup),
  'same-mailbox': ({ mailbox }, { knows }) => mailbox !== null && knows(mailbox),
  'domain-burst': ({ scopes }, { hasRoom }) =>
    [...scopes].some(([scope, most]) => scope !== ALL && !hasRoom(scope, most)),
  unverified: ({ signup }) => signup.unverified === true,
  'above-limit': ({ scopes }, { hasRoom }) => scopes.has(ALL) && !hasRoom(ALL, scopes.get(ALL)!),
}

/** Null: the candidate is let in, and takes a place in each of its scopes. */
export const holdReasonOf = (candidate: Candidate, window: AdmissionWindow): HoldReason | null =>
  holdReasons.find(reason => rules[reason](candidate, window)) ?? null

/** Second labels under which a country registers names, as "co" in co.uk. */
const REGISTRIES =
  /^(?:co|com|net|org|edu|ac|gov|gob|gouv|govt|mil|or|ne|go|gr|ad|ed|sch|school|ltd|plc|me|nom|nic|id|web|in|firm|gen|ind|info|biz|name|asso)$/

/**
 * The last two labels, or three under a country's "co" and its like: a bot makes up as many subdomains as it likes. The
 * public suffix list is not asked, which is large and changes weekly. So those who share a suffix that is not in the
 * expression (a city's, a host's) share its places: some of them are held that need not be.
 */
export function registeredDomainOf(domain: string): string {
  const labels = domain.split('.')
  const inCountry = labels.at(-1)!.length === 2 && REGISTRIES.test(labels.at(-2) ?? '')
  return labels.slice(inCountry ? -3 : -2).join('.')
}

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
