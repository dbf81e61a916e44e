import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { discordFake, type Fake, slackFake } from '../destinations/chat.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { completedAt, endLeasesAt, rowsIn } from '../harness/postgres-database.ts'
import { type Program, runProgram, until } from '../harness/program.ts'
import { never, startReceiver } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

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
const signUp = (program: Program, count: number) =>
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

describe('chats that several instances tell', { concurrency: true, timeout: 60_000 }, () => {
  test('three instances, two chats: each says of everybody once, and keeps its interval', async t => {
    const [slack, discord] = [await startChat(t, slackFake), await startChat(t, discordFake)]
    const database = await server.database()
    const env = { DATABASE_URL: database, SLACK_WEBHOOK_URL: slack.url, DISCORD_WEBHOOK_URL: discord.url }
    const programs = await Promise.all([run(t, env), run(t, env), run(t, env)])
    let people = 0
    for (let round = 0; round < 8; round++) {
      assert.deepEqual(await signUp(programs[round % 3]!, round), Array(round).fill(200))
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
    test(`one is killed when its message was ${holds}, but not answered: another one tells of all, and says that it may be twice`, {
      skip: !isSlow && 'it runs in .ci/run',
    }, async t => {
      const slack = await startChat(t, slackFake)
      const database = await server.database()
      const env = { DATABASE_URL: database, SLACK_WEBHOOK_URL: slack.url }
      const names = ['First', 'Second']
      const programs = await Promise.all(names.map(SERVICE_NAME => run(t, { ...env, SERVICE_NAME })))
      slack.chat.holds = holds
      await signUp(programs[0]!, 5)
      await until(() => slack.chat.held.length === 1)
      const { people } = read(slack.chat.held[0]!)
      const dead = names.findIndex(name => slack.chat.held[0]!.startsWith(name))
      const other = programs[1 - dead]!
      await signUp(other, 3)
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

describe('a chat that one instance tells', { concurrency: true, timeout: 60_000 }, () => {})
