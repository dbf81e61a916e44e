import { seeded } from '../harness/seed.ts'

/** One signup of the attack, or of a person in the middle of it. */
export interface Visit {
  readonly kind: Kind
  readonly name: string
  readonly email: string
  /** Who sends it, as a trusted proxy says. */
  readonly client: string
  /** What is sent where a challenge is asked for: a solution of its own, one that all of the kind send, or none. */
  readonly solution: 'own' | 'replayed' | 'none'
}

/** How many there are of each kind: 5,000 bots and 200 people. */
export const kinds = {
  'direct POSTs from one IPv4 address': 400,
  'direct POSTs from one IPv6 network (/48)': 400,
  'direct POSTs, each from an address of its own': 800,
  'POSTs with one solution': 500,
  'browsers that solve each challenge': 600,
  'such browsers, with a link in the name': 300,
  'such browsers, spellings of one Gmail box': 500,
  'such browsers, random addresses of one domain': 500,
  'such browsers, 50 throw-away domains of your list': 500,
  'such browsers, mailboxes of strangers, once each': 500,
  people: 200,
} as const
export type Kind = keyof typeof kinds

/** What an operator has in the file: half of the domains as they are, half of them by what is above. */
export const THROWAWAY = ['*.trash.example', ...Array.from({ length: 25 }, (_, i) => `junk${i}.example`)]
const throwaway = (i: number) => (i % 50 < 25 ? `junk${i % 50}.example` : `mx${i % 50}.trash.example`)

const SEED = 14
const mailboxProviders = ['gmail.com', 'outlook.com', 'hotmail.com', 'yahoo.com', 'icloud.com', 'gmx.de', 'qq.com']
const given = ['Ada', 'Ben', 'Chloé', 'Dmitri', 'Eszter', 'Farid', 'Grace', 'Hiro', 'Inês', 'J.R.', 'Dr.', 'O’Neil']
const family = ['Okafor', 'Nakamura', 'Silva', 'Lindqvist', 'Haddad', 'Müller', 'van den Berg', 'Kowalski', 'Ng']
/** Bots write links in several ways; the last one is none to a program. */
const links = [
  'Win now https://casino.example/x',
  'www.casino.example',
  'casino-bonus.com',
  'Bitcoin casino.example/btc',
  'write to win@casino.example',
  'casino dot example',
]

/** All visits in their order, the same each time. `share`: of how many one is there. */
export function attack(share = 1): Visit[] {
  const random = seeded(SEED)
  const below = (count: number) => Math.floor(random() * count)
  const letters = (count: number) =>
    Array.from({ length: count }, () => 'abcdefghijklmnopqrstuvwxyz'[below(26)]).join('')
  const anyOf = <T>(list: readonly T[]): T => list[below(list.length)]!
  const someone = () => `${anyOf(given)} ${anyOf(family)}`

  // From 198.18.0.0/15 (RFC 2544) and 2001:db8::/32 (RFC 3849): no client of one kind is one of another.
  let clients = 0
  const ipv4 = () => `198.18.${++clients >> 8}.${clients & 255}`
  const ipv6 = () => `2001:db8:${(++clients).toString(16)}::1`
  const either = () => (clients % 2 === 0 ? ipv4() : ipv6())
  const several = (count: number) => {
    const all = Array.from({ length: count }, either)
    return (i: number) => all[i % count]!
  }
  const [one, exits, hired, rented] = [ipv4(), several(70), several(100), several(100)]

  const invented = () => ({ name: someone(), email: `${letters(12)}@${anyOf(mailboxProviders)}` })
  const makers: Record<Kind, (i: number) => Omit<Visit, 'kind'>> = {
    'direct POSTs from one IPv4 address': () => ({ ...invented(), client: one, solution: 'none' }),
    'direct POSTs from one IPv6 network (/48)': i => ({
      ...invented(),
      client: `2001:db8:ffff:${i.toString(16)}::1`,
      solution: 'none',
    }),
    'direct POSTs, each from an address of its own': () => ({ ...invented(), client: either(), solution: 'none' }),
    'POSTs with one solution': () => ({ ...invented(), client: either(), solution: 'replayed' }),
    'browsers that solve each challenge': () => ({ ...invented(), client: either(), solution: 'own' }),
    'such browsers, with a link in the name': i => ({
      ...invented(),
      name: links[i % links.length]!,
      client: either(),
      solution: 'own',
    }),
    'such browsers, spellings of one Gmail box': i => ({
      name: someone(),
      email: `${dotted('mallorymallet', i >> 1)}${i % 2 ? `+${letters(4)}` : ''}@gmail.com`,
      client: hired(i),
      solution: 'own',
    }),
    'such browsers, random addresses of one domain': i => ({
      name: someone(),
      email: `${letters(10)}@inbox.example`,
      client: rented(i),
      solution: 'own',
    }),
    'such browsers, 50 throw-away domains of your list': i => ({
      name: someone(),
      email: `${letters(10)}@${throwaway(i)}`,
      client: either(),
      solution: 'own',
    }),
    'such browsers, mailboxes of strangers, once each': i => ({
      name: someone(),
      email: i % 2 ? `${letters(9)}@${anyOf(mailboxProviders)}` : `info@company${i}.example`,
      client: exits(i),
      solution: 'own',
    }),
    people: i => ({ ...person(i, someone(), letters(8)), client: either(), solution: 'own' }),
  }

  const visits = (Object.entries(kinds) as [Kind, number][]).flatMap(([kind, count]) =>
    Array.from({ length: Math.ceil(count / share) }, (_, i) => ({ kind, ...makers[kind](i) })),
  )
  return shuffled(visits, below)
}

/** People are not all alike: 25 colleagues, two with a second address, three with a site in the name, two who hide theirs. */
function person(i: number, name: string, word: string): Pick<Visit, 'name' | 'email'> {
  if (i < 4) return { name, email: ['eva.lund@gmail.com', 'evalund+work@gmail.com', 'omar@pm.me', 'o.mar@pm.me'][i]! }
  if (i < 7)
    return { name: `${name} (${['www.shop.example', 'studio.example/me', 'mine.io'][i - 4]})`, email: `${word}@gmx.de` }
  if (i < 9) return { name, email: `${word}@${throwaway(i)}` }
  if (i < 34) return { name, email: `${word}@bigcompany.example` }
  return { name, email: i % 3 ? `${word}@${mailboxProviders[i % 7]}` : `me@${word}.example` }
}

/** The `i`-th spelling of a local part with dots between its letters. */
const dotted = (local: string, i: number): string =>
  [...local].map((letter, at) => (at > 0 && (i >> (at - 1)) % 2 === 1 ? `.${letter}` : letter)).join('')

function shuffled<T>(list: T[], below: (count: number) => number): T[] {
  for (let i = list.length - 1; i > 0; i--) {
    const j = below(i + 1)
    ;[list[i], list[j]] = [list[j]!, list[i]!]
  }
  return list
}
