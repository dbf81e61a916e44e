import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { eventId } from '../../src/signup/contact.ts'
import { openForCommand } from '../../src/store/sqlite/open.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, type Program, runProgram, until } from '../harness/program.ts'
import type { Said } from '../harness/receiver.ts'
import { type Deed, never, type Received, startReceiver } from '../harness/receiver.ts'
import { type LoopsFake, loopsFake, loopsSettings } from '../providers/loops.fake.ts'

/** What the vendor and the receiver of webhooks are asked for. */
export const CREATE = '/api/v1/contacts/create'
export const SEND = '/api/v1/events/send'
export const HOOK = '/hook'

/** The program between a vendor and a receiver of webhooks, which live on when it dies. */
export interface Scene {
  readonly path: string
  readonly fake: LoopsFake
  /** Every request for this path so far. */
  asked(path: string): readonly Received[]
  /** From now on requests for this path are never answered, with or without the effect that they ask for. */
  hold(path: string, effect: 'before the effect' | 'after the effect'): void
  /** How many are held since. */
  held(): number
  release(): void
  /** Starts the program on the same file, whoever had it before. */
  run(): Promise<Program>
}

export async function stage(t: TestContext, more: Record<string, string> = {}): Promise<Scene> {
  const cwd = temporaryFolder(t)
  const fake = loopsFake()
  let holding: { readonly path: string; readonly effect: string } | undefined
  let held = 0
  const answering =
    (answer: (received: Received) => Said) =>
    (received: Received): Said | Deed => {
      if (received.path !== holding?.path) return answer(received)
      if (holding.effect === 'after the effect') answer(received)
      held++
      return never
    }
  const vendor = await startReceiver(t, answering(fake.answer))
  const receiver = await startReceiver(
    t,
    answering(() => ({ status: 204 })),
  )
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    SHUTDOWN_DELAY: '0',
    LOG_LEVEL: 'debug',
    RATE_LIMIT: '1000',
    PROVIDER: 'loops',
    ...loopsSettings(vendor.url),
    WEBHOOK_URL: receiver.url + HOOK,
    WEBHOOK_SECRET: `whsec_${Buffer.from('for tests alone, of 32 bytes ...').toString('base64')}`,
    DATABASE_URL: 'sqlite:./waitlist.db',
    ...more,
  }
  const path = join(cwd, 'waitlist.db')
  // The schema is there before the first start, so that a test can stall it.
  openForCommand(path, { make: true }).close()
  return {
    path,
    fake,
    asked: path => [...vendor.received, ...receiver.received].filter(received => received.path === path),
    hold(path, effect) {
      holding = { path, effect }
      held = 0
    },
    held: () => held,
    release() {
      holding = undefined
    },
    async run() {
      const program = await runProgram(t, env, { cwd })
      // However it ends: the log is JSON alone, and no visitor is in it.
      t.after(async () => {
        await program.exited
        assert.ok(logOf(program).length > 0)
        assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote|sancho/i)
      })
      return program
    },
  }
}

/**
 * Stops the program in the middle of a transaction, right before what `change` names: a moment that nobody outside can
 * see. The statement never ends, and what came before it in the transaction is never committed.
 */
export function stallBefore(change: string, { path }: Scene): void {
  withDatabase(path, database =>
    database.exec(
      'create view endless as with recursive row (n) as (select 1 union all select n + 1 from row) select n from row;' +
        `create trigger stall before ${change} begin select count(*) from endless; end`,
    ),
  )
}

/** No transaction of the program's own lasts for five looks. */
export async function isStalled({ path }: Scene): Promise<boolean> {
  for (let look = 0; look < 5; look++) {
    if (look > 0) await wait(50)
    const database = new DatabaseSync(path, { timeout: 0 })
    try {
      database.exec('begin immediate')
      return false
    } catch {
      // Somebody is writing.
    } finally {
      database.close()
    }
  }
  return true
}

/** Nothing stalls any more. */
export function unstall({ path }: Scene): void {
  withDatabase(path, database => database.exec('drop trigger if exists stall; drop view if exists endless'))
}

/** Steps over the lease (55 s) in the file, so that a test need not wait for it: what a dead program held is free. */
export function endLeases({ path }: Scene): void {
  withDatabase(path, database => database.exec('update delivery set due_at = 0'))
}

/** What stands in the file about one address; `delivered` counts. */
export interface Stored {
  readonly state: string
  readonly event: number
  readonly leased: number
  readonly delivered: number
}

export function stored({ path }: Scene, address: string): Stored | null {
  return withDatabase(path, database => {
    const row = database
      .prepare(
        'select state, event_at is not null as event,' +
          " (select count(*) from delivery where delivery.contact = contact.number and token is not null and contact.state = 'pending') as leased," +
          " (select count(*) from delivery where delivery.contact = contact.number and delivery.state = 'delivered') as delivered" +
          ' from contact where email = ?',
      )
      .get(address)
    return row === undefined ? null : ({ ...row } as unknown as Stored)
  })
}

/** Waits until nothing is left to do. */
export async function completed({ path }: Scene): Promise<void> {
  const left = () =>
    withDatabase(path, database => database.prepare("select 1 from delivery where state <> 'delivered'").get())
  await until(() => left() === undefined)
}

/** Everybody is on the list here and at the vendor, once, and everybody who should has heard of it, once. */
export function assertOnce({ path, fake, asked }: Scene, contacts = contactsIn(path)): void {
  for (const { id, email, state, events } of contacts) {
    assert.deepEqual([email, state, events], [email, 'listed', 1])
    assert.deepEqual([email, fake.count(email), fake.starts(email)], [email, 1, 1])
    const told = asked(HOOK).filter(({ json }) => json.data.email === email)
    // What a receiver that drops repetitions counts.
    assert.deepEqual([...new Set(told.map(({ headers }) => headers['webhook-id']))], [eventId({ id }, 'joined')], email)
  }
}
