import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { textOf } from '../documents.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { seeded } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'
import { solved } from '../harness/solve.ts'
import { listmonkFake, listmonkSettings } from '../providers/listmonk.fake.ts'

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

/** How many there are of each kind: 5,000 bots and 200 people. */
const kinds = {
  'direct POSTs from one IPv4 address': 400,
  'direct POSTs from one IPv6 network (/56)': 400,
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
type Kind = keyof typeof kinds

/** What an operator has in the file: half of the domains as they are, half of them by what is above. */
const THROWAWAY = ['trash.example', ...Array.from({ length: 25 }, (_, i) => `junk${i}.example`)]
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
function attack(share = 1): Visit[] {
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

/** People are not all alike: two have a second address, three a site in their name, two hide theirs. */
function person(i: number, name: string, word: string): Pick<Visit, 'name' | 'email'> {
  if (i < 4) return { name, email: ['eva.lund@gmail.com', 'evalund+work@gmail.com', 'omar@pm.me', 'o.mar@pm.me'][i]! }
  if (i < 7)
    return { name: `${name} (${['www.shop.example', 'studio.example/me', 'mine.io'][i - 4]})`, email: `${word}@gmx.de` }
  if (i < 9) return { name, email: `${word}@${throwaway(i)}` }
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

/** What the work costs is measured elsewhere; here it matters that it is done. */
const challenge = { CHALLENGE: 'altcha', CHALLENGE_RANGE: '2' }
const suspicious = { HOLD_SUSPICIOUS: 'true' }
const above = { HOLD_ABOVE: '100' }
const domains = { BLOCKED_DOMAINS_FILE: 'blocked.txt' }

/** The settings under attack, by their column in docs/bots.md. */
const scenes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'all off': {},
  '`CHALLENGE`': challenge,
  '`HOLD_SUSPICIOUS`': suspicious,
  '`BLOCKED_DOMAINS_FILE`': domains,
  'these three': { ...challenge, ...suspicious, ...domains },
  '`HOLD_ABOVE=100`': above,
  'all four': { ...challenge, ...suspicious, ...domains, ...above },
}

type Outcome = 'through' | 'held' | 'refused'
type Outcomes = Map<Kind, Record<Outcome, number>>

/** The table of docs/bots.md: its columns, each with a cell for each kind. */
function page(): Map<string, Map<string, string>> {
  const rows = textOf('docs/bots.md')
    .split('\n')
    .filter(line => line.startsWith('| '))
    .map(line =>
      line
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim()),
    )
  const head = rows.findIndex(([first]) => first === 'of these')
  const [, ...titles] = rows[head]!
  const body = rows.slice(head + 1, head + 1 + Object.keys(kinds).length)
  assert.deepEqual(
    body.map(([first]) => first),
    Object.entries(kinds).map(([kind, count]) => `${count} ${kind}`),
  )
  const names = Object.keys(kinds)
  return new Map(titles.map((title, i) => [title, new Map(body.map((cells, row) => [names[row]!, cells[i + 1]!]))]))
}

/** How many got through, and what became of the others. */
const cell = ({ through, held, refused }: Record<Outcome, number>): string =>
  [through, held > 0 && `${held} held`, refused > 0 && `${refused} refused`].filter(each => each !== false).join(', ')

const columnOf = (outcomes: Outcomes): Map<string, string> =>
  new Map([...outcomes].map(([kind, counts]) => [kind, cell(counts)]))

const LANES = 16

/**
 * Sends all visits in their order, and returns what became of them: by the answers, which must be what the email tool,
 * the webhook and the database have.
 */
async function underAttack(
  t: TestContext,
  settings: Readonly<Record<string, string>>,
  visits: readonly Visit[],
): Promise<Outcomes> {
  const cwd = temporaryFolder(t)
  writeFileSync(join(cwd, 'blocked.txt'), THROWAWAY.join('\n'))
  const fake = listmonkFake()
  const tool = await startReceiver(t, fake.answer)
  const hook = await startReceiver(t, () => ({ status: 204 }))
  const { LISTMONK_TEMPLATE_ID: _, ...provider } = listmonkSettings(tool.url)
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    SHUTDOWN_DELAY: '0',
    TRUST_PROXY: '1',
    // So slow that no attempt comes back: the figures are those of any machine.
    RATE_LIMIT_WINDOW: '1d',
    PROVIDER: 'listmonk',
    ...provider,
    LISTMONK_LIST_IDS: '1',
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
  const solvedBy = async (client: string) => solved((await ask(`${baseUrl}/api/challenge`, agent, client)).text)
  const replayed = 'CHALLENGE' in settings ? await solvedBy('192.0.2.1') : undefined

  async function send({ kind, name, email, client, solution }: Visit): Promise<void> {
    const own = replayed !== undefined && solution === 'own' ? await solvedBy(client) : replayed
    const altcha = solution === 'none' ? undefined : own
    const outcome = outcomeOf(await ask(`${baseUrl}/api/waitlist`, agent, client, { name, email, altcha }))
    outcomes.get(kind)![outcome]++
    emails[outcome].push(email)
  }
  // Who is let in before others matters to a limit for all of them alone.
  const queue = visits.values()
  const lane = async () => {
    for (const visit of queue) await send(visit)
  }
  await Promise.all(Array.from({ length: 'HOLD_ABOVE' in settings ? 1 : LANES }, lane))

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

describe('an attack', { timeout: 60_000 }, () => {
  test('the table of docs/bots.md has every kind and every switch, and each of its cells adds up', () => {
    const columns = page()
    assert.deepEqual([...columns.keys()], Object.keys(scenes))
    for (const cells of columns.values()) {
      for (const [kind, text] of cells) {
        const numbers = text.match(/\d+/g)!.map(Number)
        assert.equal(
          numbers.reduce((all, each) => all + each),
          kinds[kind as Kind],
          text,
        )
      }
    }
  })

  test('a small one, on three switches: a solution passes one signup, a mailbox is on the list once', async t => {
    const visits = attack(100)
    const { 'these three': settings } = scenes
    const outcomes = await underAttack(t, settings!, visits)
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
      'such browsers, 50 throw-away domains of your list': 0,
      'such browsers, mailboxes of strangers, once each': sent('such browsers, mailboxes of strangers, once each'),
      // Two addresses of one.
      people: 1,
    })
  })
})

describe('an attack of 5,000 bots among 200 people', {
  concurrency: 3,
  timeout: 600_000,
  skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
}, () => {
  const visits = attack()

  test('is of as many as the page says, none of them twice', () => {
    assert.equal(visits.length, 5_200)
    assert.equal(new Set(visits.map(({ email }) => email)).size, 5_200)
  })

  for (const [title, settings] of Object.entries(scenes)) {
    test(`${title}: the page says what became of them`, async t => {
      const outcomes = await underAttack(t, settings, visits)
      assert.deepEqual(columnOf(outcomes), page().get(title))
    })
  }
})
