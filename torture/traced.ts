import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { webhookSecret } from '../test/harness/instances.ts'
import { load, signUp } from '../test/harness/load.ts'
import { startReceiver } from '../test/harness/receiver.ts'
import type { Build } from './build.ts'
import type { Scene } from './scenario.ts'
import { type Call, readTrace, tracedTo } from './trace.ts'

const CLIENTS = 8
/** Visitors who send the form a second time, at once. */
const TWICE = 40
/** Visitors who are there when the process is killed. */
const LEFT = 16

const emailOf = (round: number, client: number, i: number) => `own-${round}-${client}-${i}@quixote.example`

export interface Traced {
  /** Of the service, where it is a changed copy. */
  readonly build?: Build
  /** Signups that are acknowledged before it is stopped. */
  readonly signups: number
  readonly end: 'SIGTERM' | 'SIGKILL'
  /** Makes addresses of its own. */
  readonly round: number
  /** Whether there is a provider, beside a receiver of events. */
  readonly provider: boolean
}

/** Where the receiver is asked. */
export const EVENTS = '/events'

/** Runs the service under load and tells what it did to its files, and when it answered and made attempts. */
export async function traced(scene: Scene, { build, signups, end, round, provider }: Traced): Promise<readonly Call[]> {
  const { ledger, folder } = scene
  const file = join(folder, `trace-${round}`)
  let contacts = 0
  const others = await startReceiver(scene, ({ path }) =>
    path === EVENTS ? { status: 204 } : { status: 200, body: { data: { id: ++contacts, lists: [{ id: 1 }] } } },
  )
  const env = {
    WEBHOOK_URL: others.url + EVENTS,
    WEBHOOK_SECRET: webhookSecret,
    ...(provider && {
      PROVIDER: 'listmonk',
      LISTMONK_BASE_URL: others.url,
      LISTMONK_USER: 'torture',
      LISTMONK_TOKEN: 'torture',
      LISTMONK_LIST_IDS: '1',
    }),
  }
  const entry = build && scene.changed(...build)
  const program = await scene.service(env, { through: tracedTo(file), ...(entry && { entry }) })
  const before = ledger.acknowledged
  const agent = new Agent()
  const send = async (email: string) => ledger.note(email, await signUp(program.baseUrl, agent, email))
  // Whom an earlier process may have stored, and did not answer.
  await Promise.all(ledger.unclear().map(send))
  await load({
    ledger,
    clients: CLIENTS,
    round,
    to: () => program.baseUrl,
    goesOn: answer => answer?.status === 200 && ledger.acknowledged < before + signups,
  })
  for (let i = 0; i < TWICE; i++) {
    const first = send(emailOf(round, CLIENTS, i))
    await wait(1 + scene.random() * 8)
    await Promise.all([first, send(emailOf(round, CLIENTS, i))])
  }
  assert.ok(ledger.acknowledged >= before + signups, 'not everybody was acknowledged')
  const left = end === 'SIGKILL' ? Array.from({ length: LEFT }, (_, i) => send(emailOf(round, CLIENTS + 1, i))) : []
  await wait(end === 'SIGKILL' ? 2 + scene.random() * 8 : 0)
  await program.end(end)
  await Promise.all(left)
  return readTrace(file, join(folder, 'data'))
}
