import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import type { TestContext } from 'node:test'
import { type Deed, type Received, type Receiver, startReceiver } from '../harness/receiver.ts'
import { temporaryFolder } from './folder.ts'
import { assertDelivered, Ledger, load, signUp } from './load.ts'
import { completedAt, contactsIn, endLeasesAt } from './postgres-database.ts'
import { logOf, type Program, runProgram, until } from './program.ts'
import type { Said } from './receiver.ts'

/** Identical instances over one database, and the receiver of their webhooks. */
export interface Instances {
  readonly database: string
  readonly receiver: Receiver
  /** Starts one more, or another program. */
  run(more?: Record<string, string>, entry?: string): Promise<Program>
  /** Waits until every event was delivered; then each contact has one, which came under its one id. */
  assertAllDelivered(destinations?: number): Promise<void>
}

/** Signs what the receiver is sent. */
export const webhookSecret = `whsec_${Buffer.from('for tests alone, of 32 bytes ...').toString('base64')}`

/** `answer` is what the receiver of webhooks says. */
export async function stageInstances(
  t: Pick<TestContext, 'after'>,
  database: string,
  env: Record<string, string>,
  answer: (received: Received) => Said | Deed = () => ({ status: 204 }),
): Promise<Instances> {
  const cwd = temporaryFolder(t)
  const receiver = await startReceiver(t, answer)
  return {
    database,
    receiver,
    async run(more = {}, entry) {
      const program = await runProgram(
        t,
        {
          HOST: '127.0.0.1',
          PORT: '0',
          TRUST_PROXY: '1',
          RATE_LIMIT: '1000000',
          DATABASE_URL: database,
          WEBHOOK_URL: `${receiver.url}/hook`,
          WEBHOOK_SECRET: webhookSecret,
          ...env,
          ...more,
        },
        { cwd, ...(entry && { entry }) },
      )
      // However it ends: the log is JSON alone, and no visitor is in it.
      t.after(async () => {
        await program.exited
        assert.ok(logOf(program).length > 0)
        assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote/i)
      })
      return program
    },
    async assertAllDelivered(destinations = 1) {
      await completedAt(database)
      const contacts = await contactsIn(database)
      for (const { email, events, deliveries } of contacts) {
        assert.deepEqual([email, events, deliveries], [email, 1, destinations])
      }
      assertDelivered(contacts, receiver.received)
    },
  }
}

/** Whether it says that it takes signups. */
export const isHealthy = ({ baseUrl }: Program): Promise<boolean> =>
  fetch(`${baseUrl}/api/health`).then(
    ({ ok }) => ok,
    () => false,
  )

const CLIENTS = 18

/** Instances under load, in trouble. */
export interface UnderLoad {
  readonly ledger: Ledger
  /** Those that run now. */
  readonly programs: Program[]
  /** Kills the one at this place and starts another one there. */
  replace(place: number): Promise<void>
  /** Brings trouble, then waits until every instance takes signups as if nothing had been. */
  during(trouble: () => Promise<unknown>): Promise<void>
  /** Everybody who was not told tries again, as visitors do; then all that was told is true of what is stored. */
  assertNothingLost(): Promise<void>
}

export interface UnderLoadOptions {
  readonly instances: number
  /** Milliseconds between an answer and the next signup of a client. */
  readonly rest: number
  readonly envOf?: (place: number) => Record<string, string>
  /** Of another program. */
  readonly entry?: string | undefined
}

/** Starts instances. Each client asks one of them, without a balancer, which would hide what it says. */
export async function underLoad(
  t: Pick<TestContext, 'after' | 'diagnostic'>,
  database: string,
  { instances: count, rest, envOf = () => ({}), entry }: UnderLoadOptions,
): Promise<UnderLoad> {
  const instances = await stageInstances(t, database, {})
  const run = (place: number) => instances.run(envOf(place), entry)
  const programs = await Promise.all(Array.from({ length: count }, (_, place) => run(place)))
  const ledger = new Ledger()
  const acknowledged = new Map<Program, number>()
  const killed = new Set<Program>()
  const asked: Program[] = []
  const statuses: Record<string, number> = {}
  let isOver = false
  const loading = load({
    ledger,
    clients: CLIENTS,
    round: 0,
    rest,
    to(client) {
      const running = programs.filter(program => !killed.has(program))
      asked[client] = running[client % running.length]!
      return asked[client].baseUrl
    },
    goesOn(answer, client) {
      const program = asked[client]!
      const status = answer?.status ?? 'none'
      statuses[status] = (statuses[status] ?? 0) + 1
      if (status === 'none') assert.ok(killed.has(program), 'an instance that nobody killed did not answer')
      else assert.ok(status === 200 || status === 500, `answered with ${status}`)
      if (status === 200) acknowledged.set(program, (acknowledged.get(program) ?? 0) + 1)
      return !isOver
    },
  })
  let hasFailed = false
  loading.catch(() => {
    hasFailed = true
  })

  return {
    ledger,
    programs,
    async replace(place) {
      const program = programs[place]!
      killed.add(program)
      assert.equal(await program.end('SIGKILL'), null)
      programs[place] = await run(place)
    },
    async during(trouble) {
      await trouble()
      const isBack = async (program: Program) => {
        await until(async () => hasFailed || (await isHealthy(program)))
        const before = acknowledged.get(program) ?? 0
        await until(() => hasFailed || (acknowledged.get(program) ?? 0) > before)
      }
      await Promise.all(programs.map(isBack))
      if (hasFailed) await loading
    },
    async assertNothingLost() {
      isOver = true
      await loading
      t.diagnostic(`answers by status: ${JSON.stringify(statuses)}`)
      const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
      t.after(() => agent.destroy())
      const again = ledger.unclear().map(async (email, number) => {
        const answer = await signUp(programs[number % count]!.baseUrl, agent, email)
        assert.equal(answer?.status, 200)
        ledger.note(email, answer)
      })
      await Promise.all(again)
      ledger.assertTrueOf(await contactsIn(database))
      await endLeasesAt(database)
      await instances.assertAllDelivered()
      for (const code of await Promise.all(programs.map(program => program.end('SIGTERM')))) assert.equal(code, 0)
    },
  }
}
