/**
 * Mailboxes behind addresses: which spellings a well-known provider delivers to one mailbox, as it documents. Of other
 * domains nothing is known, so no two of their addresses are taken for one. Addresses are keys: in ASCII lower case.
 *
 * Each contact is stored with its mailbox, so a rule that changes needs a migration.
 */

interface Spelling {
  /** The domain that a mailbox is named by, for those with several. */
  readonly domain?: string
  /** Characters of the local part that make no difference. */
  readonly ignored?: RegExp
  /** What begins a part that makes no difference. */
  readonly tag?: '+' | '-'
}

/**
 * Dots: support.google.com/mail/answer/7436150, for gmail.com, not for the domains of companies. The plus and
 * googlemail.com: support.google.com/mail.
 */
const google: Spelling = { domain: 'gmail.com', ignored: /\./g, tag: '+' }
/** Announced for Outlook.com in September 2013; "Plus addressing" on learn.microsoft.com, for Exchange Online. */
const microsoft: Spelling = { tag: '+' }
/**
 * Who has an address in mac.com has it in me.com and icloud.com, and who has one in me.com has it in icloud.com
 * (support.apple.com). The plus is known from its users alone, but Apple gives nobody an address that has one.
 */
const apple: Spelling = { domain: 'icloud.com', tag: '+' }
/** Dots, dashes and underscores: proton.me/support/change-username. Plus and domains: proton.me/support/addresses-and-aliases. */
const proton: Spelling = { domain: 'proton.me', ignored: /[._-]/g, tag: '+' }
/** "Plus addressing and subdomain addressing": fastmail.help/hc/en-us/articles/360060591053. */
const fastmail: Spelling = { tag: '+' }
/** Temporary addresses have a name of their own before a dash, which no other address has: help.yahoo.com. */
const yahoo: Spelling = { tag: '-' }
/** Every mailbox is in all of these domains: yandex.com/support/domain/additional/mailbox-alias.xml. */
const yandex: Spelling = { domain: 'yandex.ru' }

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

const spellings = new Map<string, Spelling>(
  (
    [
      [google, 'gmail.com googlemail.com'],
      [
        microsoft,
        `outlook.com outlook.fr outlook.de outlook.es outlook.it outlook.jp outlook.kr outlook.pt outlook.at outlook.be
        outlook.dk outlook.ie outlook.in outlook.com.br outlook.com.au outlook.com.ar outlook.com.tr outlook.co.th
        hotmail.com hotmail.co.uk hotmail.fr hotmail.de hotmail.es hotmail.it hotmail.nl hotmail.be hotmail.se hotmail.ca
        hotmail.co.jp hotmail.com.br hotmail.com.ar hotmail.com.tr hotmail.com.au live.com live.co.uk live.fr live.de
        live.nl live.it live.be live.se live.dk live.no live.ca live.jp live.cn live.com.au live.com.mx live.com.pt msn.com`,
      ],
      [apple, 'icloud.com me.com mac.com'],
      [proton, 'proton.me protonmail.com protonmail.ch pm.me'],
      [fastmail, 'fastmail.com fastmail.fm'],
      [
        yahoo,
        `yahoo.com yahoo.co.uk yahoo.fr yahoo.de yahoo.it yahoo.es yahoo.ca yahoo.in yahoo.co.in yahoo.co.id yahoo.com.br
        yahoo.com.ar yahoo.com.mx yahoo.com.au yahoo.com.tw yahoo.com.hk yahoo.com.sg yahoo.com.ph yahoo.com.vn yahoo.gr
        yahoo.ie yahoo.se yahoo.no yahoo.dk yahoo.pl yahoo.ro ymail.com rocketmail.com`,
      ],
      [yandex, 'yandex.ru ya.ru yandex.com yandex.by yandex.kz yandex.ua'],
    ] as const
  ).flatMap(([spelling, domains]) => words(domains).map(domain => [domain, spelling] as const)),
)

/** The mailbox that an address ends in; null: not known to have other spellings. */
export function mailboxOf(key: string): string | null {
  const at = key.indexOf('@')
  let local = key.slice(0, at)
  let domain = key.slice(at + 1)
  // Fastmail: what@ada.fastmail.com is ada+what@fastmail.com.
  const [, user, above] = /^([^.]+)\.(fastmail\.(?:com|fm))$/.exec(domain) ?? []
  if (user !== undefined) [local, domain] = [user, above!]
  const spelling = spellings.get(domain)
  if (spelling === undefined) return null
  const { ignored, tag } = spelling
  const end = tag === undefined ? -1 : local.indexOf(tag)
  // What begins with the sign has no name before it. The name before a dash is no address without it.
  if (end > 0) local = local.slice(0, tag === '-' ? end + 1 : end)
  if (ignored !== undefined) local = local.replace(ignored, '') || local
  return `${local}@${spelling.domain ?? domain}`
}
