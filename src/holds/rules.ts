import { emailKey, type Signup } from '../signup/contact.ts'

/** What is held. */
export interface HoldRules {
  /** New contacts that are let in within so many milliseconds; null: there is no limit. */
  readonly above: { readonly count: number; readonly time: number } | null
  /** Whether a signup is held for what it looks like. */
  readonly suspicious: boolean
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
