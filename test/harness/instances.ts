import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Agent } from 'undici'
import { temporaryFolder } from './folder.ts'
import { assertDelivered, Ledger, load, visit } from './load.ts'
import { completedAt, contactsIn, endLeasesAt } from './postgres-database.ts'
import { logOf, type Program, runProgram, until } from './program.ts'
import { startReceiver } from './receiver.ts'

/** Signs what the receiver is sent. */
export const webhookSecret = `whsec_${Buffer.from('for tests alone, of 32 bytes ...').toString('base64')}`

/** Identical instances over one database, and the receiver of their webhooks. */
export async function openInstances(t: Pick<TestContext, 'after'>, database: string, env: Record<string, string> = {}) {
  const cwd = temporaryFolder(t)
  const receiver = await startReceiver(t, () => ({ status: 204 }))
  return {
    /** Starts one more. */
    async run(more: Record<string, string> = {}): Promise<Program> {
      const settings = {
        HOST: '127.0.0.1',
        RATE_LIMIT: '1000000',
        DATABASE_URL: database,
        WEBHOOK_URL: receiver.url,
        WEBHOOK_SECRET: webhookSecret,
      }
      const program = await runProgram(t, { ...settings, ...env, ...more }, { cwd })
      t.after(async () => {
        await program.exited
        assert.ok(logOf(program).length > 0, 'the log is JSON')
        assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote/i, 'no visitor in the log')
      })
      return program
    },
    /** Waits until every event was delivered; then each contact has one, which came under its one id. */
    async assertAllDelivered(): Promise<void> {
      await completedAt(database)
      const contacts = await contactsIn(database)
      for (const { email, events, deliveries } of contacts) {
        assert.deepEqual([email, events, deliveries], [email, 1, 1])
      }
      assertDelivered(contacts, receiver.received)
    },
  }
}

/** Whether its health report is green. */
export const isHealthy = ({ baseUrl }: Program): Promise<boolean> =>
  fetch(`${baseUrl}/api/health`).then(
    ({ ok }) => ok,
    () => false,
  )

const CLIENTS = 18

/** Starts three instances under load. Each client sends to one of them, without a balancer, which would hide its answers. */
export async function underLoad(
  t: Pick<TestContext, 'after' | 'diagnostic'>,
  database: string,
  envOf: (index: number) => Record<string, string> = () => ({}),
) {
  const instances = await openInstances(t, database)
  const programs = await Promise.all([0, 1, 2].map(index => instances.run(envOf(index))))
  const ledger = new Ledger()
  const killed = new Set<Program>()
  const acknowledged = new Map<Program, number>()
  const sentTo: Program[] = []
  const statuses: Record<string, number> = {}
  let isOver = false
  let hasFailed = false
  const loading = load({
    ledger,
    clients: CLIENTS,
    round: 0,
    rest: 10,
    to(client) {
      const running = programs.filter(program => !killed.has(program))
      sentTo[client] = running[client % running.length]!
      return sentTo[client].baseUrl
    },
    goesOn(answer, client) {
      const program = sentTo[client]!
      const status = answer?.status ?? 'none'
      statuses[status] = (statuses[status] ?? 0) + 1
      if (status === 'none') assert.ok(killed.has(program), 'an instance that nobody killed did not answer')
      else assert.ok(status === 200 || status === 500, `answered with ${status}`)
      if (status === 200) acknowledged.set(program, (acknowledged.get(program) ?? 0) + 1)
      return !isOver
    },
  })
  loading.catch(() => {
    hasFailed = true
  })

  return {
    programs,
    /** Kills one and starts another in its place. */
    async replace(index: number): Promise<void> {
      const program = programs[index]!
      killed.add(program)
      assert.equal(await program.end('SIGKILL'), null)
      programs[index] = await instances.run(envOf(index))
    },
    /** Brings trouble, then waits until every instance takes signups as if nothing had been. */
    async during(trouble: () => Promise<unknown>): Promise<void> {
      await trouble()
      const hasRecovered = async (program: Program) => {
        await until(async () => hasFailed || (await isHealthy(program)))
        const before = acknowledged.get(program) ?? 0
        await until(() => hasFailed || (acknowledged.get(program) ?? 0) > before)
      }
      await Promise.all(programs.map(hasRecovered))
      if (hasFailed) await loading
    },
    /** Everybody without an answer tries again, as visitors do; then all that was answered is true of what is stored. */
    async assertNothingLost(): Promise<void> {
      isOver = true
      await loading
      t.diagnostic(`answers by status: ${JSON.stringify(statuses)}`)
      const agent = new Agent({ connections: CLIENTS })
      t.after(() => agent.destroy())
      const again = ledger.unclear().map(async (email, number) => {
        const answer = await visit(programs[number % programs.length]!, email, {}, agent)
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
