import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { type Deed, type Received, type Receiver, startReceiver } from '../harness/receiver.ts'
import { assertDelivered } from './delivered.ts'
import { temporaryFolder } from './folder.ts'
import { completedAt, contactsIn } from './postgres-database.ts'
import { logOf, type Program, runProgram } from './program.ts'
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
