import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { webhookSecret } from '../harness/instances.ts'
import { load, signUp } from '../harness/load.ts'
import { startReceiver } from '../harness/receiver.ts'
import type { Scene } from './scene.ts'
import { type Call, readTrace, tracedTo } from './trace.ts'

const CLIENTS = 8
/** Visitors who send the form twice. */
const TWICE = 40
/** Visitors whose signup is in flight when the process is killed. */
const LEFT = 16
/** The path of the receiver. */
const EVENTS = '/events'

interface Traced {
  readonly entry?: string
  /** Signups that are acknowledged before it is stopped. */
  readonly signups: number
  readonly end: 'SIGTERM' | 'SIGKILL'
  /** Has addresses of its own. */
  readonly round: number
  /** Whether there is a provider, beside a receiver of events. */
  readonly provider: boolean
}

/** Runs the service under load; returns what it did to its files, and when it answered and made attempts. */
export async function traced(scene: Scene, { entry, signups, end, round, provider }: Traced): Promise<readonly Call[]> {
  const { t, ledger, folder, random } = scene
  let contacts = 0
  const others = await startReceiver(t, ({ path }) =>
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
  const file = join(folder, `trace-${round}`)
  const program = await scene.start(env, { through: tracedTo(file), ...(entry === undefined ? {} : { entry }) })
  const before = ledger.acknowledged
  const agent = new Agent()
  const send = async (email: string) => ledger.note(email, await signUp(program.baseUrl, agent, email))
  const emailOf = (client: number, i: number) => `own-${round}-${client}-${i}@quixote.example`
  // An earlier process may have stored them without an answer.
  await Promise.all(ledger.unclear().map(send))
  await load({
    ledger,
    clients: CLIENTS,
    round,
    to: () => program.baseUrl,
    goesOn: answer => answer?.status === 200 && ledger.acknowledged < before + signups,
  })
  for (let i = 0; i < TWICE; i++) {
    const first = send(emailOf(CLIENTS, i))
    await wait(1 + random() * 8)
    await Promise.all([first, send(emailOf(CLIENTS, i))])
  }
  assert.ok(ledger.acknowledged >= before + signups, 'not everybody was acknowledged')
  const left = end === 'SIGKILL' ? Array.from({ length: LEFT }, (_, i) => send(emailOf(CLIENTS + 1, i))) : []
  await wait(end === 'SIGKILL' ? 2 + random() * 8 : 0)
  await program.end(end)
  await Promise.all(left)
  return readTrace(file, join(folder, 'data'))
}

/** What was promised to others so far: addresses, in lower case. */
export class Promised {
  /** Visitors who were told that they are on the list. */
  readonly acknowledged = new Set<string>()
  /** The provider was asked to add them. */
  readonly handedOver = new Set<string>()
  /** The receiver was sent their event. */
  readonly delivered = new Set<string>()

  note(call: Call): void {
    if (call.is === 'answer' && call.status === 200 && call.email !== undefined) this.acknowledged.add(call.email)
    if (call.is === 'send') (call.path === EVENTS ? this.delivered : this.handedOver).add(call.email)
  }
}

const STORED = `select email_key, event_at,
  state <> 'pending' or (select token is not null or doubt or attempts from delivery
    where contact = contact.number and kind = 'handover') as tried,
  (select state <> 'waiting' or token is not null or doubt or attempts from delivery
    where contact = contact.number and kind = 'joined') as claimed from contact`

/** Writes what is left on a disk to the folder of the scene. @returns the database. */
export function writeDisk({ folder }: Scene, files: ReadonlyMap<string, Buffer>): string {
  const left = join(folder, 'left')
  rmSync(left, { recursive: true, force: true })
  mkdirSync(left)
  for (const [name, bytes] of files) {
    // The index of the log is memory; it is made again.
    if (!name.endsWith('-shm') && !name.endsWith('-lock')) writeFileSync(join(left, basename(name)), bytes)
  }
  return join(left, 'waitlist.db')
}

/** Who was acknowledged is there, once, with an event, and each attempt that began is known to have begun. */
export function assertPromised(path: string, { acknowledged, handedOver, delivered }: Promised, where: string): void {
  const database = new DatabaseSync(path)
  try {
    assert.equal(database.prepare('pragma integrity_check').get()?.integrity_check, 'ok', where)
    const isMade = database.prepare("select 1 from sqlite_schema where name = 'contact'").get() !== undefined
    const rows = isMade ? database.prepare(STORED).all() : []
    const stored = new Map(rows.map(row => [row.email_key as string, row]))
    const lacking = (emails: ReadonlySet<string>, what: 'event_at' | 'tried' | 'claimed') =>
      [...emails].filter(email => !stored.get(email)?.[what])
    assert.deepEqual(lacking(acknowledged, 'event_at'), [], `lost: ${where}`)
    assert.deepEqual(lacking(handedOver, 'tried'), [], `handed over without a claim: ${where}`)
    assert.deepEqual(lacking(delivered, 'claimed'), [], `delivered without a claim: ${where}`)
    assert.equal(stored.size, rows.length, `doubled: ${where}`)
  } finally {
    database.close()
  }
}
