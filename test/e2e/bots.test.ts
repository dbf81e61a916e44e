import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { seeded } from '../harness/seed.ts'
import { quickSolution } from '../harness/solve.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

/** One signup of the attack, or of a person in the middle of it. */
interface Visit {
  readonly kind: Kind
  readonly name: string
  readonly email: string
  /** Who sends it, as a trusted proxy says. */
  readonly client: string
  /** What is sent where a challenge is asked for: a solution of its own, one that all of the kind send, or none. */
  readonly solution: 'own' | 'replayed' | 'none'
}

/** How many there are of each kind. */
const kinds = {
  'direct POSTs from one IPv4 address': 4,
  'direct POSTs from one IPv6 network (/56)': 4,
  'direct POSTs, each from an address of its own': 8,
  'POSTs with one solution': 5,
  'browsers that solve each challenge': 6,
  'such browsers, with a link in the name': 3,
  'such browsers, spellings of one Gmail box': 5,
  'such browsers, random addresses of one domain': 5,
  'such browsers, throw-away domains of your list': 5,
  'such browsers, mailboxes of strangers, once each': 5,
  people: 2,
} as const
type Kind = keyof typeof kinds

/** What an operator has in the file: a domain itself, and one above those that are sent. */
const THROWAWAY = ['junk.example', 'trash.example']
const throwaway = (i: number) => (i % 2 ? `mx${i}.trash.example` : 'junk.example')

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

/** All visits in their order, the same each time. */
function attack(): Visit[] {
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
    'direct POSTs from one IPv6 network (/56)': i => ({
      ...invented(),
      client: `2001:db8:ffff:${(i % 256).toString(16)}::1`,
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
    'such browsers, throw-away domains of your list': i => ({
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
    people: i => ({
      name: someone(),
      email: ['eva.lund@gmail.com', 'evalund+work@gmail.com'][i]!,
      client: either(),
      solution: 'own',
    }),
  }

  const visits = (Object.entries(kinds) as [Kind, number][]).flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, i) => ({ kind, ...makers[kind](i) })),
  )
  return shuffled(visits, below)
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

const CHALLENGE_SECRET = 'a-secret-for-tests-alone-of-more-than-32-characters'

/** The three switches. What the work costs is measured elsewhere; here it matters that it is done. */
const settings = {
  CHALLENGE: 'altcha',
  CHALLENGE_SECRET,
  HOLD_SUSPICIOUS: 'true',
  BLOCKED_DOMAINS_FILE: 'blocked.txt',
}

type Outcome = 'through' | 'held' | 'refused'
type Outcomes = Map<Kind, Record<Outcome, number>>

const LANES = 16

/**
 * Sends all visits in their order, and returns what became of them: by the answers, which must be what the email tool,
 * the webhook and the database have.
 */
async function underAttack(t: TestContext, visits: readonly Visit[]): Promise<Outcomes> {
  const cwd = temporaryFolder(t)
  writeFileSync(join(cwd, 'blocked.txt'), THROWAWAY.join('\n'))
  const fake = loopsFake()
  const tool = await startReceiver(t, fake.answer)
  const hook = await startReceiver(t, () => ({ status: 204 }))
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    SHUTDOWN_DELAY: '0',
    TRUST_PROXY: '1',
    // So slow that no attempt comes back: the figures are those of any machine.
    RATE_LIMIT: '20/1d',
    PROVIDER: 'loops',
    ...loopsSettings(tool.url),
    WEBHOOK_URL: hook.url,
    WEBHOOK_SECRET: `whsec_${Buffer.from('for tests alone, of 32 bytes ...').toString('base64')}`,
    ...settings,
  }
  const { baseUrl } = await runProgram(t, env, { cwd })
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())

  const outcomes: Outcomes = new Map(
    (Object.keys(kinds) as Kind[]).map(kind => [kind, { through: 0, held: 0, refused: 0 }]),
  )
  const emails: Record<Outcome, string[]> = { through: [], held: [], refused: [] }
  const solve = () => quickSolution(CHALLENGE_SECRET)
  const replayed = await solve()

  async function send({ kind, name, email, client, solution }: Visit): Promise<void> {
    const own = solution === 'own' ? await solve() : replayed
    const altcha = solution === 'none' ? undefined : own
    const outcome = outcomeOf(await ask(`${baseUrl}/api/waitlist`, agent, client, { name, email, altcha }))
    outcomes.get(kind)![outcome]++
    emails[outcome].push(email)
  }
  const queue = visits.values()
  const lane = async () => {
    for (const visit of queue) await send(visit)
  }
  await Promise.all(Array.from({ length: LANES }, lane))

  // A delivery may be repeated.
  const told = () => new Set(hook.received.map(({ json }) => json.data.email as string))
  await until(() => told().size >= emails.through.length)
  assert.deepEqual([...told()].toSorted(), emails.through.toSorted())
  assert.deepEqual(
    visits
      .map(({ email }) => email)
      .filter(email => fake.count(email) === 1)
      .toSorted(),
    emails.through.toSorted(),
  )
  const stored = contactsIn(join(cwd, 'data', 'waitlist.db'))
  const inState = (wanted: string) => stored.filter(({ state }) => state === wanted).map(({ email }) => email)
  assert.deepEqual(inState('listed').toSorted(), emails.through.toSorted())
  assert.deepEqual(inState('held').toSorted(), emails.held.toSorted())
  assert.equal(stored.length, emails.through.length + emails.held.length)
  return outcomes
}

function outcomeOf({ status, text }: { status: number; text: string }): Outcome {
  const { automationTriggered, alreadyExisted } = JSON.parse(text)
  if (status === 400 || status === 429) return 'refused'
  assert.deepEqual([status, alreadyExisted], [200, false], text)
  return automationTriggered ? 'through' : 'held'
}

interface Answered {
  readonly status: number
  readonly text: string
}

/** A GET, or a POST of this body, as a proxy passes it on. */
function ask(url: string, agent: Agent, client: string, body?: object): Promise<Answered> {
  const method = body === undefined ? 'GET' : 'POST'
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': client }
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, agent, headers }, async response => {
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      resolve({ status: response.statusCode!, text })
    })
    asked.on('error', reject)
    asked.end(body && JSON.stringify(body))
  })
}

const sum = (outcomes: Outcomes): Record<string, number> =>
  Object.fromEntries([...outcomes].map(([kind, { through }]) => [kind, through]))

test('under attack, a solution passes one signup, a mailbox is on the list once, and nobody else is held', async t => {
  const visits = attack()
  const outcomes = await underAttack(t, visits)
  const sent = (kind: Kind) => visits.filter(visit => visit.kind === kind).length
  assert.deepEqual(sum(outcomes), {
    'direct POSTs from one IPv4 address': 0,
    'direct POSTs from one IPv6 network (/56)': 0,
    'direct POSTs, each from an address of its own': 0,
    'POSTs with one solution': 1,
    'browsers that solve each challenge': sent('browsers that solve each challenge'),
    'such browsers, with a link in the name': 0,
    'such browsers, spellings of one Gmail box': 1,
    'such browsers, random addresses of one domain': sent('such browsers, random addresses of one domain'),
    'such browsers, throw-away domains of your list': 0,
    'such browsers, mailboxes of strangers, once each': sent('such browsers, mailboxes of strangers, once each'),
    // Two addresses of one.
    people: 1,
  })
})
