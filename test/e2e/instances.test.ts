/** Identical instances over one PostgreSQL: the contract of the stores shows the same of stores on one database. */
import assert from 'node:assert/strict'
import { Agent, type ServerResponse } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { LEASE } from '../../src/waitlist/ports/outbox.ts'
import { discordFake, type Fake, slackFake } from '../destinations/chat.ts'
import { balancers } from '../harness/balancers.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { behind, stageInstances } from '../harness/instances.ts'
import { Ledger } from '../harness/ledger.ts'
import { load, type SignupAnswer, signUp, visit } from '../harness/load.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { completedAt, contactsIn, endLeasesAt, rowsIn } from '../harness/postgres-database.ts'
import { type Program, runProgram, until } from '../harness/program.ts'
import { type Deed, never, type Received, type Said, say, startReceiver } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'
import { CREATE } from './provider.scene.ts'

const skip = !isSlow && 'it runs in .ci/run'

const server = await sharedPostgres()

const INSTANCES = 3
/** As many as Loops may be called in a second, with their automations. */
const FEW = 5
type Effect = 'before the effect' | 'after the effect'

/** Answers, or on wish not before it is released. */
function holdable(answer: (received: Received) => Said) {
  let effect: Effect | undefined
  const held: (readonly [ServerResponse, Received])[] = []
  return {
    answer(received: Received): Said | Deed {
      if (effect === undefined || (received.path !== CREATE && received.path !== '/hook')) return answer(received)
      if (effect === 'after the effect') answer(received)
      return response => void held.push([response, received])
    },
    held: () => held.length,
    hold(which: Effect) {
      effect = which
    },
    /** Those who are still there are answered, so that no attempt must time out first. */
    release() {
      effect = undefined
      for (const [response, received] of held) if (!response.destroyed) say(answer(received))(response, received)
    },
  }
}

function visitorsOf(t: TestContext) {
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  /** So many at once. */
  return ({ baseUrl }: Program, count: number): Promise<(SignupAnswer | null)[]> =>
    Promise.all(Array.from({ length: count }, (_, i) => signUp(baseUrl, agent, `sancho${i}@quixote.example`)))
}

const statuses = (answers: readonly (SignupAnswer | null)[]) => answers.map(answer => answer?.status ?? null)
const all = <T>(count: number, each: T): T[] => new Array<T>(count).fill(each)

/** Instances before one vendor, who lives on when they die. */
async function stage(t: TestContext, more: Record<string, string> = {}) {
  const fake = loopsFake()
  const vendor = holdable(fake.answer)
  const { url, received } = await startReceiver(t, vendor.answer)
  const database = await server.database()
  const env = { PROVIDER: 'loops', ...loopsSettings(url), PROVIDER_TIMEOUT: '20s', ...more }
  const instances = await stageInstances(t, database, env)
  return {
    database,
    fake,
    vendor,
    instances,
    url,
    visit: visitorsOf(t),
    asked: (path: string) => received.filter(received => received.path === path),
    /** Nothing is left to do, and everybody is on the list here and at the vendor once, and heard of once. */
    async assertOnce(count: number) {
      await instances.assertAllDelivered(2)
      const contacts = await contactsIn(database)
      assert.equal(contacts.length, count)
      for (const { email, state } of contacts) {
        assert.deepEqual([email, state, fake.count(email), fake.starts(email)], [email, 'listed', 1, 1])
      }
    },
  }
}

/** What is taken over is not waited for until its lease ends. `since`: before it was leased. */
const assertTakenOver = (since: number) => assert.ok(performance.now() - since < LEASE, 'a lease was waited for')

describe('what is pending at a vendor is shared', { concurrency: true, timeout: 180_000 }, () => {
  for (const effect of ['before the effect', 'after the effect'] as const) {
    test(`one of ${INSTANCES} is killed while it asks, ${effect}: the others complete its contacts`, {
      skip: effect === 'before the effect' && skip,
    }, async t => {
      const { database, vendor, instances, visit, assertOnce } = await stage(t)
      const [first, ...others] = await Promise.all([instances.run(), instances.run(), instances.run()])
      vendor.hold(effect)
      const since = performance.now()
      const visitors = visit(first, FEW)
      await until(() => vendor.held() === FEW)
      assert.equal(await first.end('SIGKILL'), null)
      assert.deepEqual(statuses(await visitors), all(FEW, null))
      vendor.release()
      await endLeasesAt(database)
      await assertOnce(FEW)
      assertTakenOver(since)
      for (const other of others) {
        assert.deepEqual(await visit(other, FEW), all(FEW, { status: 200, alreadyExisted: true }))
      }
    })
  }
})

const INTERVAL = 1

interface Message {
  readonly at: number
  readonly text: string
}

/** A chat that takes what its vendor would take. `holds`: the next message is taken, or lost, and never answered. */
async function startChat(t: TestContext, fake: Fake) {
  const messages: Message[] = []
  const refused: string[] = []
  const chat = { messages, refused, holds: null as 'taken' | 'lost' | null, held: [] as string[] }
  const { url } = await startReceiver(t, received => {
    const text = fake.read(received)
    if (text === null) {
      refused.push(received.text)
      return { status: 400 }
    }
    if (chat.holds !== 'lost') messages.push({ at: performance.now(), text })
    if (chat.holds === null) return fake.accepted
    chat.holds = null
    chat.held.push(text)
    return never
  })
  return { ...chat, chat, url: url + fake.path, texts: () => messages.map(({ text }) => text) }
}

const basics = {
  HOST: '127.0.0.1',
  PORT: '0',
  SHUTDOWN_DELAY: '0',
  RATE_LIMIT: '100000',
  CHAT_INTERVAL: `${INTERVAL}s`,
}

/** However it ends: the log has neither visitors nor the secret of an address. */
async function run(t: TestContext, env: Record<string, string>): Promise<Program> {
  const program = await runProgram(t, { ...basics, ...env }, { cwd: temporaryFolder(t) })
  t.after(async () => {
    await program.exited
    const said = program.stdout() + program.stderr()
    for (const secret of ['Zebulon', 'quixote', ...slackFake.secrets, ...discordFake.secrets]) {
      assert.ok(!said.includes(secret), secret)
    }
  })
  return program
}

let visitors = 0
const joins = (program: Program, count: number) =>
  Promise.all(
    Array.from({ length: count }, async () => (await visit(program, `sancho${visitors++}@quixote.example`))?.status),
  )

const SENTENCE =
  /^(?:\w+: )?([\d,]+) (?:person|people) joined the waitlist, ([\d,]+) in all(?: \((.*)may have been announced before\))?$/

/** What a message says: how many joined, how many there are, and how many of the former may have been counted before. */
function read(text: string) {
  const [, people, total, doubt] = SENTENCE.exec(text) ?? assert.fail(`not understood: ${text}`)
  const number = (digits: string) => Number(digits.replaceAll(',', ''))
  const doubtful = doubt === undefined ? 0 : number(doubt === '' ? people! : doubt.split(' ')[0]!)
  return { people: number(people!), total: number(total!), doubtful }
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0)
const endDistance = (url: string) => rowsIn(url, 'update turn set next_at = now()')

describe('chats that several instances tell', { concurrency: true, timeout: 60_000, skip }, () => {
  test('three instances, two chats: each says of everybody once, and keeps its interval', async t => {
    const [slack, discord] = [await startChat(t, slackFake), await startChat(t, discordFake)]
    const database = await server.database()
    const env = { DATABASE_URL: database, SLACK_WEBHOOK_URL: slack.url, DISCORD_WEBHOOK_URL: discord.url }
    const programs = await Promise.all([run(t, env), run(t, env), run(t, env)])
    let people = 0
    for (let round = 0; round < 8; round++) {
      assert.deepEqual(await joins(programs[round % 3]!, round), Array(round).fill(200))
      people += round
      await wait(400)
    }
    await completedAt(database)
    for (const { messages, refused, texts } of [slack, discord]) {
      assert.deepEqual(refused, [])
      const told = texts().map(read)
      assert.equal(sumOf(told.map(each => each.people)), people)
      assert.equal(told.at(-1)?.total, people)
      assert.ok(told.every(({ doubtful }) => doubtful === 0))
      // One for each interval, and one more: the first may have been on its way for a while, where the machine is slow.
      const elapsed = messages.at(-1)!.at - messages[0]!.at
      assert.ok(messages.length >= 2 && messages.length <= 2 + elapsed / (INTERVAL * 1_000), texts().join('\n'))
    }
  })

  for (const holds of ['taken', 'lost'] as const) {
    test(`one is killed when its message was ${holds}, but not answered: another one tells of all, and says that it may be twice`, async t => {
      const slack = await startChat(t, slackFake)
      const database = await server.database()
      const env = { DATABASE_URL: database, SLACK_WEBHOOK_URL: slack.url }
      const names = ['First', 'Second']
      const programs = await Promise.all(names.map(SERVICE_NAME => run(t, { ...env, SERVICE_NAME })))
      slack.chat.holds = holds
      await joins(programs[0]!, 5)
      await until(() => slack.chat.held.length === 1)
      const { people } = read(slack.chat.held[0]!)
      const dead = names.findIndex(name => slack.chat.held[0]!.startsWith(name))
      const other = programs[1 - dead]!
      await joins(other, 3)
      assert.equal(await programs[dead]!.end('SIGKILL'), null)
      // While the dead one has the lease and the distance, nobody says anything.
      await wait(1_500)
      assert.equal(slack.messages.length, holds === 'taken' ? 1 : 0)
      await endLeasesAt(database)
      await endDistance(database)
      await completedAt(database)
      const told = slack
        .texts()
        .slice(holds === 'taken' ? 1 : 0)
        .map(read)
      assert.equal(sumOf(told.map(each => each.people)), 8)
      assert.equal(sumOf(told.map(each => each.doubtful)), people)
      assert.equal(told.at(-1)?.total, 8)
    })
  }
})

describe('a crowd', { timeout: 180_000, skip }, () => {
  const VISITORS = 200
  const ROUNDS = 30

  for (const { name, start, skip } of balancers) {
    test(`of ${VISITORS} with one address at ${INSTANCES} instances behind ${name}, ${ROUNDS} times: one contact and one event each`, {
      skip,
    }, async t => {
      const { balancer, database, assertAllDelivered } = await behind(t, start, INSTANCES, await server.database())
      const agent = new Agent({ keepAlive: true, maxSockets: VISITORS })
      t.after(() => agent.destroy())
      const ledger = new Ledger()
      for (let round = 0; round < ROUNDS; round++) {
        const answers = await Promise.all(
          Array.from({ length: VISITORS }, async (_, number) => {
            const email = number % 2 ? `crowd-${round}@quixote.example` : `Crowd-${round}@Quixote.Example`
            const answer = await signUp(balancer.url, agent, email)
            ledger.note(email, answer)
            return answer
          }),
        )
        assert.ok(answers.every(answer => answer?.status === 200))
        assert.equal(answers.filter(answer => answer?.alreadyExisted === false).length, 1)
      }
      const contacts = await contactsIn(database)
      assert.equal(contacts.length, ROUNDS)
      ledger.assertTrueOf(contacts)
      await assertAllDelivered()
    })
  }
})

/** So many are restarted at the same time, so that the delays of their stops pass together. */
const LANES = 4
/** So many are never restarted: there is always somebody. */
const STEADY = 2
const CLIENTS = 8
/** Milliseconds between an answer and the next signup of a client. */
const REST = 5
const RESTARTS = 20

for (const { name, start, skip: missing } of balancers) {
  describe(`instances behind ${name}`, { timeout: 180_000, skip: missing || skip }, () => {
    test(`${RESTARTS} rolling restarts under load: no failed request`, async t => {
      const database = await server.database()
      const { balancer, programs, run, assertAllDelivered } = await behind(t, start, LANES + STEADY, database)
      const ledger = new Ledger()
      let isOver = false
      const loading = load({
        ledger,
        clients: CLIENTS,
        round: 0,
        rest: REST,
        to: () => balancer.url,
        goesOn(answer) {
          assert.equal(answer?.status, 200)
          return !isOver
        },
      }).finally(() => {
        isOver = true
      })
      // Told below, when nothing is being restarted any more.
      loading.catch(() => {})
      const lanes = Array.from({ length: LANES }, async (_, lane) => {
        for (let left = RESTARTS / LANES; left > 0 && !isOver; left--) {
          const before = ledger.acknowledged
          const old = programs[lane]!
          assert.equal(await old.end('SIGTERM'), 0)
          await balancer.remove(old.baseUrl)
          const fresh = await run()
          programs[lane] = fresh
          await balancer.add(fresh.baseUrl)
          assert.ok(ledger.acknowledged > before, 'signups went on meanwhile')
        }
      })
      await Promise.allSettled(lanes)
      isOver = true
      await loading
      await Promise.all(lanes)
      t.diagnostic(`${ledger.acknowledged} signups`)
      ledger.assertTrueOf(await contactsIn(database))
      await assertAllDelivered()
    })
  })
}
