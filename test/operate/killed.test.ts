import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { readConfig } from '../../src/config/config.ts'
import { LINKS_SECRET, linksOf } from '../../src/confirm/token.ts'
import { type RunSql, sqlOn as sqliteSql } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { signUp } from '../harness/load.ts'
import { operatorOf } from '../harness/operator.ts'
import { freePort } from '../harness/port.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { endedAt, sqlOn as postgresSql, session } from '../harness/postgres-database.ts'
import { logOf, runCommand as run, runProgram, spawnProgram, until } from '../harness/program.ts'
import { say, startReceiver } from '../harness/receiver.ts'
import { seeded, seedOf } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

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
  ...{ SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'hello@example.com' },
}
const destinations = ['webhook', 'mail']

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
    const store = await storeAt(path, { destinations })
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
    const store = await storeAt({ kind: 'postgres', url }, { destinations })
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.close()
    const sql = postgresSql(url)
    await sql(
      'insert into contact (id, name, email, email_key, state, reason, created_at)' +
        " select gen_random_uuid(), 'Visitor', i || '@example.com', i || '@example.com', 'held', 'above-limit', 0" +
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
      min(number) as first, max(number) as last, count(distinct code) as codes,
      min(invitations) as "fewestInvited", max(invitations) as "mostInvited"
    from (
      select contact.*, (select count(*) from delivery where delivery.contact = contact.number) as told,
        (select count(*) from delivery where delivery.contact = contact.number and delivery.kind = 'invited') as invitations
      from contact
    ) as each
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
  /** The state that it leads out of, in which are `HELD` at least. */
  from: string,
  assertWhole: (states: Awaited<ReturnType<typeof statesIn>>) => void,
): Promise<void> {
  const cwd = temporaryFolder(t)
  const held = async () => Number((await sql(`select count(*) as held from contact where state = '${from}'`))[0]!.held)
  const all = await held()
  if (stall !== null) {
    const { waits, goOn } = await stall()
    const program = spawnProgram(t, env, { cwd, args })
    await waits()
    program.process.kill('SIGKILL')
    await program.exited
    await goOn()
    await over()
    assertWhole(await statesIn(sql))
    assert.equal(await held(), all)
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
    if (states.has(from)) cut++
    t.diagnostic(`killed when ${states.get(from)?.contacts ?? 0} of ${before} were ${from}`)
  }
  assert.ok(cut > 0, 'it was never killed before its end')
  const last = await run(t, cwd, args, env)
  assert.ok(last.code === 0 || cut < KILLS, last.stderr)
  const states = await statesIn(sql)
  assertWhole(states)
  assert.ok(!states.has(from))
}

describe('killed again and again', {
  skip: !isSlow && 'it runs in .ci/run',
  concurrency: 2,
}, () => {
  for (const [engine, make] of Object.entries(places)) {
    test(`a release on ${engine}: who is listed has all that belongs to it, nobody else has any, and nobody is lost`, async t => {
      const place = await make(t)
      await killedAgainAndAgain(
        t,
        { ...place, env: { ...place.env, ...told } },
        ['release', '--all'],
        'held',
        states => {
          const { listed, held, ...others } = Object.fromEntries(states)
          assert.deepEqual(others, {})
          assert.equal(listed!.contacts! + (held?.contacts ?? 0), HELD + 1)
          assert.deepEqual([listed!.fewest, listed!.most], [destinations.length, destinations.length])
          assert.equal(listed!.events, listed!.contacts)
          if (held === undefined) return
          assert.deepEqual([held.events, held.most], [0, 0])
          assert.ok(listed!.last! < held.first!, 'those who came first are released first')
        },
      )
    })

    test(`an invite on ${engine}: who is invited has all that belongs to it, nobody is invited twice, and nobody is skipped`, async t => {
      const place = await make(t)
      // Listed, as by an import.
      await place.sql("update contact set state = 'listed', reason = null where state = 'held'")
      const args = ['invite', '--search', '@', '--yes']
      await killedAgainAndAgain(t, { ...place, env: { ...place.env, ...told } }, args, 'listed', states => {
        const { invited, listed, ...others } = Object.fromEntries(states)
        assert.deepEqual(others, {})
        assert.equal((invited?.contacts ?? 0) + (listed?.contacts ?? 0), HELD + 1)
        if (invited !== undefined) {
          assert.deepEqual([invited.fewestInvited, invited.mostInvited], [destinations.length, destinations.length])
          assert.equal(invited.codes, invited.contacts)
        }
        if (listed === undefined) return
        assert.deepEqual([listed.codes, listed.mostInvited], [0, 0])
        if (invited !== undefined) assert.ok(invited.last! < listed.first!, 'those who came first are invited first')
      })
    })
  }
})

const INVITED = 200

for (const engine of ['sqlite', 'postgres'] as const) {
  test(`killed again and again on ${engine}, a service tells of each invitation under its id, and forgets no redemption`, {
    skip: !isSlow && 'it waits for real leases; it runs in .ci/run',
  }, async t => {
    const cwd = temporaryFolder(t)
    const url = engine === 'sqlite' ? `sqlite:${join(cwd, 'waitlist.db')}` : await server!.database()
    const codes = new Map<string, Set<string>>()
    const receiver = await startReceiver(t, ({ json, headers }) => {
      const { code } = json.data as { code: string }
      const id = headers['webhook-id'] as string
      codes.set(id, (codes.get(id) ?? new Set()).add(code))
      return (...answering) => void wait(100).then(() => say({ status: 204 })(...answering))
    })
    const env = {
      HOST: '127.0.0.1',
      PORT: '0',
      DATABASE_URL: url,
      WEBHOOK_URL: receiver.url,
      WEBHOOK_SECRET: webhookSecret,
    }
    const first = await runProgram(t, { HOST: '127.0.0.1', PORT: '0', DATABASE_URL: url }, { cwd })
    assert.equal(await first.end('SIGTERM'), 0)
    const people = Array.from({ length: INVITED }, (_, i) => `Visitor ${i},${i}@example.com\n`)
    writeFileSync(join(cwd, 'list.csv'), `name,email\n${people.join('')}`)
    assert.equal((await run(t, cwd, ['import', 'list.csv'], env)).code, 0)
    assert.equal((await run(t, cwd, ['invite', '--yes', '--next', String(INVITED)], env)).code, 0)

    const redeemed = new Map<string, unknown>()
    for (let i = 0; i < KILLS; i++) {
      const port = await freePort()
      const service = await runProgram(t, { ...env, ADMIN_LISTEN: `localhost:${port}` }, { cwd })
      await until(() => codes.size > (i * INVITED) / KILLS)
      for (const [code] of [...codes.values()].slice(0, 10 * (i + 1))) {
        const answer = await fetch(`http://localhost:${port}/invitations/${code}`, { method: 'POST' })
        const { redeemedAt } = (await answer.json()) as { redeemedAt: string }
        assert.equal(redeemedAt, redeemed.get(code!) ?? redeemedAt)
        redeemed.set(code!, redeemedAt)
      }
      await service.end('SIGKILL')
    }
    // What was under way is due again when its lease ends.
    const service = await runProgram(t, env, { cwd })
    await until(() => codes.size === INVITED)
    assert.equal(await service.end('SIGTERM'), 0)
    for (const told of codes.values()) assert.equal(told.size, 1)
    const settings = await readConfig({ DATABASE_URL: url })
    assert.ok('config' in settings)
    const contacts = await Array.fromAsync(operatorOf(settings.config).contacts({}))
    assert.deepEqual(
      new Map(contacts.map(({ id, invitation }) => [`inv_${id}`, invitation!.code])),
      new Map([...codes].map(([id, [code]]) => [id, code])),
    )
    for (const { invitation } of contacts) {
      const { code, redeemedAt } = invitation!
      assert.equal(redeemedAt?.toISOString(), redeemed.get(code))
    }
  })
}

const ASKED = 120

for (const engine of ['sqlite', 'postgres'] as const) {
  test(`killed again and again on ${engine}, a service keeps each confirmation, and tells of each once`, {
    skip: !isSlow && 'it waits for real leases; it runs in .ci/run',
  }, async t => {
    const random = seeded(seedOf(t))
    const cwd = temporaryFolder(t)
    const url = engine === 'sqlite' ? `sqlite:${join(cwd, 'waitlist.db')}` : await server!.database()
    const told: string[] = []
    const receiver = await startReceiver(t, ({ headers }) => {
      told.push(headers['webhook-id'] as string)
      return say({ status: 204 })
    })
    const base = 'https://waitlist.example.com'
    const env = {
      ...{ HOST: '127.0.0.1', PORT: '0', DATABASE_URL: url, RATE_LIMIT: '1000000', BASE_URL: base, CONFIRM: 'mail' },
      // Nobody listens there: all mails wait.
      ...{ SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'hello@example.com', MAILS: 'none' },
      ...{ WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret },
    }
    const started = async () => {
      const service = await runProgram(t, env, { cwd })
      const { listening } = logOf(service).find(({ msg }) => msg === 'waitlist is ready') as { listening: string }
      return { service, listening }
    }
    const settings = await readConfig({ DATABASE_URL: url })
    assert.ok('config' in settings)
    const operator = operatorOf(settings.config)
    const contacts = async () => Array.fromAsync(await operator.contacts({}))

    const first = await started()
    const agent = new Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    for (let i = 0; i < ASKED; i++) await signUp(first.listening, agent, `${i}@example.com`)
    assert.equal(await first.service.end('SIGTERM'), 0)
    const sql = engine === 'sqlite' ? sqliteSql(join(cwd, 'waitlist.db')) : postgresSql(url)
    const [secret] = await sql(`select value from secret where name = '${LINKS_SECRET}'`)
    const links = linksOf(base, String(secret!.value))
    const asked = (await contacts()).map(contact => ({ id: contact.id, link: links.confirm(contact) }))
    assert.equal(asked.length, ASKED)

    const confirmed = new Set<string>()
    for (let i = 0; i < KILLS; i++) {
      const { service, listening } = await started()
      const left = asked.filter(({ id }) => !confirmed.has(id)).slice(0, ASKED / KILLS)
      const pressed = left.map(async ({ id, link }) => {
        const answer = await fetch(link.replace(base, listening), { method: 'POST' }).catch(() => null)
        if (answer?.status === 200) confirmed.add(id)
      })
      const some = confirmed.size + 1 + Math.floor(random() * (left.length / 2))
      await until(() => confirmed.size >= some)
      await service.end('SIGKILL')
      await Promise.all(pressed)
      for (const { id, state, confirmedAt, event } of await contacts()) {
        assert.equal(state === 'listed', confirmedAt !== undefined && event !== undefined)
        if (confirmed.has(id)) assert.equal(state, 'listed')
      }
    }
    t.diagnostic(`${confirmed.size} confirmations were acknowledged between the kills`)
    const last = await started()
    for (const { link } of asked) {
      assert.equal((await fetch(link.replace(base, last.listening), { method: 'POST' })).status, 200)
    }
    // What was under way is due again when its lease ends.
    const expected = asked.map(({ id }) => `evt_${id}`).sort()
    await until(async () => Object.keys((await operator.backlog()).waiting).length === 0)
    assert.equal(await last.service.end('SIGTERM'), 0)
    assert.deepEqual([...new Set(told)].sort(), expected)
    assert.equal((await operator.backlog()).unconfirmed, 0)
  })
}

const LINES = 30_000

for (const engine of ['sqlite', 'postgres'] as const) {
  test(`killed again and again beside a service on ${engine}, an import ends with the whole list, in order`, {
    skip: !isSlow && 'it takes a minute; it runs in .ci/run',
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
    const contacts = await Array.fromAsync(operatorOf(settings.config).contacts({}))
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
