import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { operatorOf } from '../../src/app/database.ts'
import { readConfig } from '../../src/config/config.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { type RunSql, signup } from '../contracts/store.place.ts'
import { sqlOn as sqliteSql } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { signUp } from '../harness/load.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { endedAt, sqlOn as postgresSql } from '../harness/postgres-database.ts'
import { runCommand as run, runProgram, spawnProgram, until } from '../harness/program.ts'
import { seeded, seedOf } from '../harness/seed.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { session } from '../stores/postgres.stage.ts'

/** So many that a change of them takes many steps. */
const HELD = 5_000
const KILLS = 3

const server = isSlow ? await startPostgres({ settings: unsynced }) : undefined
after(() => server?.remove())

type Env = Readonly<Record<string, string>>
/** Two for each event; nobody is told, since no service runs. */
const told = {
  WEBHOOK_URL: 'http://127.0.0.1:1/hook',
  WEBHOOK_SECRET: webhookSecret,
  SLACK_WEBHOOK_URL: 'https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX',
}
const destinations = ['webhook', 'slack']

interface Place {
  readonly env: Env
  readonly sql: RunSql
  /** Resolves when what the dead left to the database is over. */
  over(): Promise<void>
  /** Keeps a change waiting in the middle of a step; null where nobody can. `waits` resolves when it does. */
  readonly stall: (() => Promise<{ waits(): Promise<void>; goOn(): Promise<unknown> }>) | null
}

/** A list in which Ada is what a visitor becomes, and all others are held. */
const places: Readonly<Record<string, (t: TestContext) => Promise<Place>>> = {
  async SQLite(t) {
    const path = join(temporaryFolder(t), 'waitlist.db')
    const store = await sqliteStore({ path, eventName: 'waitlist.joined', destinations, minimumFree: 0 })
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.close()
    const sql = sqliteSql(path)
    await sql(
      'insert into contact (id, name, email, email_key, state, reason, created_at)' +
        ` with recursive n (i) as (select 1 union all select i + 1 from n where i < ${HELD})` +
        " select format('%036d', i), 'Visitor', i || '@example.com', i || '@example.com', 'held', 'above-limit', 0 from n",
    )
    return { env: { DATABASE_URL: `sqlite:${path}` }, sql, over: async () => {}, stall: null }
  },
  async PostgreSQL(t) {
    const url = await server!.database()
    const { log } = recordingLog()
    const store = await postgresStore({ url, eventName: 'waitlist.joined', destinations, log })
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.close()
    const sql = postgresSql(url)
    await sql(
      'insert into contact (id, name, email, email_key, state, reason, created_at)' +
        " select gen_random_uuid(), 'Visitor', i || '@example.com', i || '@example.com', 'held', 'above-limit', now()" +
        ` from generate_series(1, ${HELD}) as i`,
    )
    const stall = async () => {
      const other = await session(t, url)
      // Contacts can be changed, and their deliveries cannot.
      await other.query('begin; lock table delivery in share mode')
      const waiting = "select 1 from pg_locks where relation = 'delivery'::regclass and not granted"
      const waits = () => until(async () => (await other.query(waiting)).rows.length > 0)
      return { waits, goOn: () => other.query('rollback').then(() => other.end()) }
    }
    return { env: { DATABASE_URL: url }, sql, over: () => endedAt(url), stall }
  },
}

/** What there is of each state, as of one moment. `fewest` and `most`: deliveries of one contact. */
async function statesIn(sql: RunSql) {
  const rows = await sql(
    `select state, count(*) as contacts, count(event_at) as events, min(told) as fewest, max(told) as most,
      min(number) as first, max(number) as last
    from (select contact.*, (select count(*) from delivery where delivery.contact = contact.number) as told from contact) as each
    group by state`,
  )
  return new Map(
    rows.map(({ state, ...numbers }) => [
      state as string,
      Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value)])),
    ]),
  )
}

/** Kills the command while it is at work, looks at what is left each time, and then lets it end. */
async function killedAgainAndAgain(
  t: TestContext,
  { env, sql, over, stall }: Place,
  args: string[],
  assertWhole: (states: Awaited<ReturnType<typeof statesIn>>) => void,
): Promise<void> {
  const cwd = temporaryFolder(t)
  const held = async () => Number((await sql("select count(*) as held from contact where state = 'held'"))[0]!.held)
  if (stall !== null) {
    const { waits, goOn } = await stall()
    const program = spawnProgram(t, env, { cwd, args })
    await waits()
    program.process.kill('SIGKILL')
    await program.exited
    await goOn()
    await over()
    assertWhole(await statesIn(sql))
    assert.equal(await held(), HELD)
  }
  let cut = 0
  for (let i = 0; i < KILLS; i++) {
    const before = await held()
    const program = spawnProgram(t, env, { cwd, args })
    await until(async () => (await held()) < before || program.process.exitCode !== null)
    await wait(Math.random() * 200)
    program.process.kill('SIGKILL')
    await program.exited
    await over()
    const states = await statesIn(sql)
    assertWhole(states)
    if (states.has('held')) cut++
    t.diagnostic(`killed when ${states.get('held')?.contacts ?? 0} of ${before} were held`)
  }
  assert.ok(cut > 0, 'it was never killed before its end')
  const last = await run(t, cwd, args, env)
  assert.ok(last.code === 0 || cut < KILLS, last.stderr)
  const states = await statesIn(sql)
  assertWhole(states)
  assert.ok(!states.has('held'))
}

describe('killed again and again', {
  skip: !isSlow && 'it runs in .ci/run',
  timeout: 300_000,
  concurrency: 2,
}, () => {
  for (const [engine, make] of Object.entries(places)) {
    test(`a release on ${engine}: who is listed has all that belongs to it, nobody else has any, and nobody is lost`, async t => {
      const place = await make(t)
      await killedAgainAndAgain(t, { ...place, env: { ...place.env, ...told } }, ['release', '--all'], states => {
        const { listed, held, ...others } = Object.fromEntries(states)
        assert.deepEqual(others, {})
        assert.equal(listed!.contacts! + (held?.contacts ?? 0), HELD + 1)
        assert.deepEqual([listed!.fewest, listed!.most], [destinations.length, destinations.length])
        assert.equal(listed!.events, listed!.contacts)
        if (held === undefined) return
        assert.deepEqual([held.events, held.most], [0, 0])
        assert.ok(listed!.last! < held.first!, 'those who came first are released first')
      })
    })
  }
})

const LINES = 30_000

for (const engine of ['sqlite', 'postgres'] as const) {
  test(`killed again and again beside a service on ${engine}, an import ends with the whole list, in order`, {
    skip: !isSlow && 'it takes a minute; it runs in .ci/run',
    timeout: 240_000,
  }, async t => {
    const random = seeded(seedOf(t))
    const cwd = temporaryFolder(t)
    const url = engine === 'sqlite' ? `sqlite:${join(cwd, 'waitlist.db')}` : await server!.database()
    const env = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', DATABASE_URL: url }
    const service = await runProgram(t, env, { cwd })
    const emails = Array.from({ length: LINES }, (_, i) => `${(i * 7_919) % LINES}@example.com`)
    writeFileSync(join(cwd, 'list.csv'), `name,email\n${emails.map((email, i) => `Visitor ${i},${email}\n`).join('')}`)

    const agent = new Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    const acknowledged: string[] = []
    let goesOn = true
    const visitors = (async () => {
      for (let i = 0; goesOn; i++) {
        const answer = await signUp(service.baseUrl, agent, `visitor-${i}@example.com`)
        assert.deepEqual(answer, { status: 200, alreadyExisted: false })
        acknowledged.push(`visitor-${i}@example.com`)
      }
    })()

    const start = () => spawnProgram(t, env, { cwd, args: ['import', '--json', 'list.csv'] })
    let killed = 0
    for (let i = 0; i < KILLS; i++) {
      const importing = start()
      // It says what it guesses when it begins.
      await until(() => importing.stderr() !== '' || importing.process.exitCode !== null)
      await Promise.race([wait(random() * 1_500), importing.exited])
      importing.process.kill('SIGKILL')
      if ((await importing.exited) === null) killed++
    }
    const last = start()
    assert.equal(await last.exited, 0, last.stderr())
    const { added, existing } = JSON.parse(last.stdout()) as Record<string, number>
    t.diagnostic(`killed ${killed} times; the last run added ${added} and found ${existing}`)
    assert.ok(killed > 0)
    goesOn = false
    await visitors

    const settings = await readConfig({ DATABASE_URL: url })
    assert.ok('config' in settings)
    const contacts = await Array.fromAsync(await (await operatorOf(settings.config)).contacts())
    const isVisitor = (email: string) => email.startsWith('visitor-')
    const stored = contacts.map(({ email }) => email)
    assert.deepEqual(
      stored.filter(email => !isVisitor(email)),
      emails,
    )
    assert.deepEqual(stored.filter(isVisitor), acknowledged)
    assert.equal(await service.end('SIGTERM'), 0)
  })
}
