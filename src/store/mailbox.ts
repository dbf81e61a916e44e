/**
 * Mailboxes behind addresses: which spellings a large provider delivers to one mailbox, as it documents. Of other domains
 * nothing is known, so no two of their addresses are taken for one. Addresses are keys: in ASCII lower case.
 *
 * Each contact is stored with its mailbox, so a rule that changes needs a migration.
 */

/** Domains in which what follows a plus makes no difference, by the one that a mailbox is named by. */
const domains = {
  // support.google.com/mail; dots make no difference either: support.google.com/mail/answer/7436150.
  'gmail.com': ['gmail.com', 'googlemail.com'],
  // "Plus addressing" on learn.microsoft.com.
  'outlook.com': ['outlook.com'],
  'hotmail.com': ['hotmail.com'],
  'live.com': ['live.com'],
  // Domains: support.apple.com. The plus is known from users alone, but Apple gives nobody an address that has one.
  'icloud.com': ['icloud.com', 'me.com', 'mac.com'],
  // proton.me/support/addresses-and-aliases.
  'proton.me': ['proton.me', 'protonmail.com', 'pm.me'],
  // fastmail.help/hc/en-us/articles/360060591053.
  'fastmail.com': ['fastmail.com'],
}

const names = new Map(Object.entries(domains).flatMap(([name, all]) => all.map(domain => [domain, name])))

/** The mailbox that an address ends in; null: not known to have other spellings. */
export function mailboxOf(key: string): string | null {
  const at = key.indexOf('@')
  const domain = names.get(key.slice(at + 1))
  if (domain === undefined) return null
  // What begins with a plus has no name before it.
  const [name] = /^.[^+]*/.exec(key.slice(0, at))!
  return `${domain === 'gmail.com' ? name.replaceAll('.', '') : name}@${domain}`
}
