import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, type Program, runProgram, until } from '../harness/program.ts'

const CONNECTIONS = 8
const KILLS = 12

/** What was told about one address. */
interface Told {
  acknowledged: number
  new: number
}

/** Everything that clients were told, however the service ended meanwhile. */
type Ledger = Map<string, Told>

const acknowledgements = (ledger: Ledger): number => {
  let sum = 0
  for (const { acknowledged } of ledger.values()) sum += acknowledged
  return sum
}

interface SignupAnswer {
  readonly status: number
  readonly alreadyExisted: boolean
}

/** Null: no whole answer came, so nothing was promised. */
function signUp(baseUrl: string, agent: Agent, email: string): Promise<SignupAnswer | null> {
  return new Promise(resolve => {
    const posted = request(
      `${baseUrl}/api/waitlist`,
      { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
      response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', chunk => {
          text += chunk
        })
        response.on('error', () => resolve(null))
        response.on('close', () => {
          if (!response.complete) return resolve(null)
          resolve({ status: response.statusCode!, alreadyExisted: JSON.parse(text).alreadyExisted })
        })
      },
    )
    posted.on('error', () => resolve(null))
    posted.end(JSON.stringify({ name: 'Zebulon Quixote', email }))
  })
}

/** Signs up on keep-alive connections until the service is gone: mostly new addresses, some that were sent before. */
async function load({ baseUrl }: Program, ledger: Ledger, round: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const client = async (number: number): Promise<void> => {
    for (let i = 0; ; i++) {
      // Every third address is shared: all clients, in all rounds, race for it.
      const address = i % 3 === 0 ? `shared-${round % 3}-${i}` : `own-${round}-${number}-${i}`
      const answer = await signUp(
        baseUrl,
        agent,
        number % 2 ? `${address}@quixote.example` : `${address}@QUIXOTE.example`,
      )
      if (answer === null) return
      assert.equal(answer.status, 200)
      const told = ledger.get(address) ?? { acknowledged: 0, new: 0 }
      told.acknowledged++
      if (!answer.alreadyExisted) told.new++
      ledger.set(address, told)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, number) => client(number)))
  agent.destroy()
}

test(`killed ${KILLS} times under load, it keeps every acknowledged signup, once, with one event`, async t => {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const env = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', LOG_LEVEL: 'debug' }
  const ledger: Ledger = new Map()
  const counts: number[] = []

  for (let round = 0; round < KILLS; round++) {
    const program = await runProgram(t, env, { cwd })
    const before = acknowledgements(ledger)
    const loading = load(program, ledger, round)
    // At any moment, but one at which signups are being acknowledged.
    await until(() => acknowledgements(ledger) > before)
    await wait(Math.random() * 250)
    assert.equal(await program.end('SIGKILL'), null)
    await loading
    counts.push(acknowledgements(ledger))
    assert.doesNotMatch(program.stdout(), /zebulon|quixote/i, 'no name and no address in the log')
  }
  t.diagnostic(`acknowledged after each kill: ${counts.join(', ')}`)

  const last = await runProgram(t, env, { cwd })
  const stored = new Map<string, number>()
  for (const { email, events, state } of contactsIn(path)) {
    const address = email.toLowerCase().split('@')[0]!
    assert.equal(stored.has(address), false, `${address} is stored twice`)
    assert.equal(events, 1, `${address} has ${events} events`)
    assert.equal(state, 'listed')
    stored.set(address, events)
  }
  const lost = [...ledger.keys()].filter(address => !stored.has(address))
  assert.deepEqual(lost, [], 'acknowledged, and not in the database')
  const toldTwice = [...ledger].filter(([, told]) => told.new > 1)
  assert.deepEqual(toldTwice, [], 'told more than once that they are new')
  assert.ok(stored.size >= ledger.size)
  assert.equal(
    withDatabase(path, database => database.prepare('pragma integrity_check').get()?.integrity_check),
    'ok',
  )

  const agent = new Agent()
  const again = await signUp(last.baseUrl, agent, `${[...ledger.keys()][0]}@quixote.example`)
  assert.deepEqual(again, { status: 200, alreadyExisted: true })
  assert.equal(await last.end('SIGTERM'), 0)
  assert.ok(logOf(last).length > 0)
})
