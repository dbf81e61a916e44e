/** A process that dies or stops while its provider or a receiver hangs: what it leaves is completed, once. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { eventId } from '../../src/signup/contact.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { visit } from '../harness/load.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import * as postgres from '../harness/postgres-database.ts'
import { exitInTime, logOf, type Program, runProgram, until } from '../harness/program.ts'
import { type Deed, never, type Received, type Said, startReceiver } from '../harness/receiver.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'
import type { StoredContact } from '../store/place.ts'

const CREATE = '/api/v1/contacts/create'
const AUTOMATION = '/api/v1/events/send'
const HOOK = '/hook'

type Effect = 'before the effect' | 'after the effect'

/** A vendor and a receiver of webhooks, which live on when the program dies. */
async function stage(t: TestContext, settings: Record<string, string> = {}) {
  const cwd = temporaryFolder(t)
  const fake = loopsFake()
  let hanging: { readonly path: string; readonly effect: Effect } | undefined
  let held = 0
  const hang =
    (answer: (received: Received) => Said) =>
    (received: Received): Said | Deed => {
      if (received.path !== hanging?.path) return answer(received)
      if (hanging.effect === 'after the effect') answer(received)
      held++
      return never
    }
  const accepted = () => ({ status: 204 })
  const vendor = await startReceiver(t, hang(fake.answer))
  const receiver = await startReceiver(t, hang(accepted))
  const env = {
    ...{ HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', LOG_LEVEL: 'debug', RATE_LIMIT: '1000' },
    ...{ PROVIDER: 'loops', ...loopsSettings(vendor.url) },
    ...{ WEBHOOK_URL: receiver.url + HOOK, WEBHOOK_SECRET: webhookSecret, DATABASE_URL: 'sqlite:./waitlist.db' },
    ...settings,
  }
  return {
    ...{ path: join(cwd, 'waitlist.db'), fake },
    /** From now on requests for this path are never answered. */
    hang(path: string, effect: Effect) {
      hanging = { path, effect }
      held = 0
    },
    held: () => held,
    release() {
      hanging = undefined
    },
    async run(): Promise<Program> {
      const program = await runProgram(t, env, { cwd })
      t.after(async () => {
        await program.exited
        assert.ok(logOf(program).length > 0)
        assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote|sancho/i)
      })
      return program
    },
    /** Each contact is on the list here and at the vendor, once, and each destination knows of it, once. */
    assertOnce(contacts: readonly StoredContact[]) {
      for (const { id, email, state, events } of contacts) {
        assert.deepEqual([email, state, events], [email, 'listed', 1])
        assert.deepEqual([email, fake.count(email), fake.starts(email)], [email, 1, 1])
        const ids = receiver.received.filter(({ json }) => json.data.email === email)
        // A receiver drops repetitions by the id.
        const unique = new Set(ids.map(({ headers }) => headers['webhook-id']))
        assert.deepEqual([...unique], [eventId({ id }, 'joined')], email)
      }
    },
  }
}

/** The state of each contact, and how many of its deliveries have arrived. */
const progress = (path: string) =>
  withDatabase(path, database =>
    database
      .prepare(
        'select state, (select count(*) from delivery' +
          " where contact = contact.number and delivery.state = 'delivered') as delivered from contact",
      )
      .all()
      .map(({ state, delivered }) => [state, delivered]),
  )

const isCompleted = (path: string): boolean =>
  withDatabase(path, database => database.prepare("select 1 from delivery where state <> 'delivered'").get()) ===
  undefined

interface Case {
  readonly path: string
  readonly effect: Effect
  /** What is stored of each contact, and what the vendor has: contacts, and starts of the automation. */
  readonly stored: readonly [state: string, delivered: number]
  readonly vendorHas: readonly [contacts: number, starts: number]
  /** The answer to a visitor during a stop; one that is killed answers only those who need not wait for the provider. */
  readonly status: number
  readonly skip?: string | false
}

const skip = !isSlow && 'it runs in .ci/run'
const cases: readonly Case[] = [
  { path: CREATE, effect: 'before the effect', stored: ['pending', 0], vendorHas: [0, 0], status: 502, skip },
  { path: CREATE, effect: 'after the effect', stored: ['pending', 0], vendorHas: [1, 0], status: 502 },
  { path: AUTOMATION, effect: 'after the effect', stored: ['listed', 1], vendorHas: [1, 1], status: 200 },
  { path: HOOK, effect: 'after the effect', stored: ['listed', 1], vendorHas: [1, 1], status: 200, skip },
]

describe('killed twice and stopped once', { concurrency: 2 }, () => {
  for (const { path, effect, stored, vendorHas, status, skip = false } of cases) {
    test(`while ${path} hangs ${effect}`, { skip }, async t => {
      const here = await stage(t)
      const emails: string[] = []
      for (const signal of ['SIGKILL', 'SIGKILL', 'SIGTERM'] as const) {
        here.hang(path, effect)
        const program = await here.run()
        emails.push(`zebulon${emails.length}@quixote.example`)
        const answer = visit(program, emails.at(-1)!)
        // The background attempts those of the process that died.
        const expected = emails.map(() => [...stored])
        const isReached = () => JSON.stringify(progress(here.path)) === JSON.stringify(expected)
        await until(() => here.held() >= emails.length && isReached())
        if (status === 200) assert.equal((await answer)?.status, 200)
        program.process.kill(signal)
        assert.equal(await exitInTime(program), signal === 'SIGKILL' ? null : 0)
        if (status !== 200) assert.equal((await answer)?.status, signal === 'SIGKILL' ? undefined : status)

        assert.deepEqual(progress(here.path), expected)
        for (const email of emails) assert.deepEqual([here.fake.count(email), here.fake.starts(email)], vendorHas)
        // A lease lasts 55 s.
        withDatabase(here.path, database => database.exec('update delivery set due_at = 0'))
      }
      here.release()
      const program = await here.run()
      await until(() => isCompleted(here.path))
      here.assertOnce(contactsIn(here.path))
      for (const email of emails) assert.equal((await visit(program, email))?.alreadyExisted, true)
      assert.equal(contactsIn(here.path).length, emails.length)
      assert.equal(await program.end('SIGTERM'), 0)
    })
  }
})

/** As many as Loops may be called in a second, with their automations. */
const FEW = 5

test('one of three instances is killed while it calls the provider: the others complete its contacts', async t => {
  const database = await (await sharedPostgres()).database()
  const here = await stage(t, { DATABASE_URL: database })
  const [first, ...others] = [await here.run(), await here.run(), await here.run()]
  const join = (program: Program) =>
    Promise.all(Array.from({ length: FEW }, (_, i) => visit(program, `sancho${i}@quixote.example`)))
  here.hang(CREATE, 'after the effect')
  const visitors = join(first!)
  await until(() => here.held() === FEW)
  assert.equal(await first!.end('SIGKILL'), null)
  assert.deepEqual(await visitors, Array(FEW).fill(null))
  here.release()
  await postgres.endLeasesAt(database)
  await postgres.completedAt(database)
  here.assertOnce(await postgres.contactsIn(database))
  for (const other of others) assert.ok((await join(other)).every(answer => answer?.alreadyExisted))
})
