import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { signup } from '../contracts/store.place.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { runProgram, spawnProgram, until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { listIn, listOn, manyContacts, query, writeList } from '../stores/move.scene.ts'

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

/** A folder with `data/waitlist.db`, where the program looks by default. */
function listed(t: Pick<TestContext, 'after'>, contacts: number): { readonly cwd: string; readonly path: string } {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  writeList(path, manyContacts(contacts))
  return { cwd, path }
}

/** So many that a move takes a while, written once. */
const { path: many } = listed({ after: after as TestContext['after'] }, isSlow ? 20_000 : 0)

/** The same with a copy of them. */
function listedMany(t: TestContext): { readonly cwd: string; readonly path: string } {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  mkdirSync(dirname(path))
  copyFileSync(many, path)
  return { cwd, path }
}

async function run(t: TestContext, cwd: string, to: string, env: Record<string, string> = {}) {
  const program = spawnProgram(t, env, { cwd, args: ['move', '--to', to] })
  const code = await program.exited
  return { code, stdout: program.stdout(), stderr: program.stderr() }
}

const openStore = (url: string) => postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })

describe('waitlist move', { concurrency: true, timeout: 120_000 }, () => {
  test('moves the list to PostgreSQL, not a second time, and moves it back', async t => {
    const { cwd, path } = listed(t, 1_200)
    const url = await server.database()
    const name = `postgres://127.0.0.1:${server.port}${new URL(url).pathname}`
    const first = await run(t, cwd, url)
    assert.equal(first.code, 0, first.stderr)
    assert.match(
      first.stdout,
      /^contact {6}both +1,200 rows {2}sha256 [0-9a-f]{16}\ndelivery {5}both +1,200 rows {2}sha256 [0-9a-f]{16}\n/,
    )
    assert.ok(first.stdout.includes(`2,400 rows were copied. ${name} is equal to sqlite:./data/waitlist.db.\n`))
    assert.equal(first.stderr, '')
    assert.deepEqual(await listOn(url), listIn(path))

    const second = await run(t, cwd, url)
    assert.equal(second.code, 1)
    assert.equal(second.stdout, '')
    assert.match(
      second.stderr,
      /^waitlist: postgres:\/\/.* is not empty\. Give --to a database .* Nothing was copied\.\n$/,
    )

    const back = await run(t, cwd, 'sqlite:./back/waitlist.db', { DATABASE_URL: url })
    assert.equal(back.code, 0, back.stderr)
    assert.match(back.stdout, /Times are kept to the millisecond/)
    assert.deepEqual(listIn(join(cwd, 'back', 'waitlist.db')), listIn(path))
  })

  test('refuses while the service runs', async t => {
    const { cwd } = listed(t, 1)
    await runProgram(t, { PORT: '0', HOST: '127.0.0.1' }, { cwd })
    const { code, stderr } = await run(t, cwd, await server.database())
    assert.equal(code, 1)
    assert.match(stderr, /^waitlist: .*waitlist\.db is in use by another Waitlist process\. Stop that one first/)
  })

  test('fails when both sides differ in the end, and shows the checksums', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { cwd } = listed(t, 10)
    const url = await server.database()
    await (await openStore(url)).close()
    await server.run(
      url,
      `create function spoil() returns trigger language plpgsql as
        $$ begin if new.number = 7 then new.name := 'Eve'; end if; return new; end $$`,
      'create trigger spoil before insert on contact for each row execute function spoil()',
    )
    const { code, stdout, stderr } = await run(t, cwd, url)
    assert.equal(code, 1)
    assert.match(stderr, /^waitlist: postgres:\/\/.* does not keep what it is given, so the copy was thrown away/)
    const [from, to, next] = stdout.split('\n')
    assert.match(from!, /^contact +from +10 rows/)
    assert.match(to!, /^contact +to +10 rows/)
    assert.notEqual(from!.slice(-16), to!.slice(-16))
    assert.match(next!, /^delivery +both/)
    assert.deepEqual(await listOn(url), { contact: [], delivery: [], erased: [], secret: [] })
  })

  test('fails when an instance still takes signups from the database that is moved', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const cwd = temporaryFolder(t)
    const url = await server.database()
    const store = await openStore(url)
    await store.admit(signup('Ada', 'ada@example.com'))
    await store.close()
    // By the server itself: this process has more to do, and would leave the move a moment without a signup.
    const joining = server.run(
      url,
      `do $$ begin
        for i in 1..10000 loop
          insert into contact (id, name, email, email_key, state, created_at)
            values (gen_random_uuid(), 'Visitor', 'v' || i || '@example.com', 'v' || i || '@example.com', 'listed', now());
          commit;
          exit when to_regclass('over') is not null;
          perform pg_sleep(0.01);
        end loop;
      end $$`,
    )
    const { code, stderr } = await run(t, cwd, 'sqlite:./copy.db', { DATABASE_URL: url })
    await server.run(url, 'create table over ()')
    await joining
    assert.equal(code, 1)
    assert.match(stderr, /^waitlist: postgres:\/\/.* was changed while it was copied.*Stop every instance/)
    assert.ok(!existsSync(join(cwd, 'copy.db')))
  })

  test('leaves no trace beside a target that is no file of ours, and makes no more than one folder', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { cwd } = listed(t, 1)
    writeFileSync(join(cwd, 'README.md'), '# Read me\n'.repeat(1_000))
    mkdirSync(join(cwd, 'folder'))
    withDatabase(join(cwd, 'other.db'), database => database.exec('pragma journal_mode = wal; create table other (x)'))
    const before = readdirSync(cwd)
    const targets: readonly (readonly [to: string, sentence: RegExp])[] = [
      ['sqlite:./README.md', /README\.md cannot be used: file is not a database\. Nothing was copied/],
      ['sqlite:./folder', /folder is a folder\. Give the path of a file, such as .*folder\/waitlist\.db\. Nothing/],
      ['sqlite:./folder/', /folder\/ is a folder/],
      ['sqlite:./none/', /none\/ is a folder/],
      ['sqlite:./other.db', /is a database of another program/],
      [
        'sqlite:./no/such/folder/copy.db',
        /There is no folder .*such\. Make it, or correct the path\. Nothing was copied/,
      ],
    ]
    for (const [to, sentence] of targets) {
      const { code, stderr } = await run(t, cwd, to)
      assert.equal(code, 1)
      assert.match(stderr, sentence)
      assert.deepEqual(readdirSync(cwd), before, to)
    }
    assert.equal((await run(t, cwd, 'sqlite:./new/copy.db')).code, 0)
  })

  test('what cannot be done is told in words, without a password and without a trace', async t => {
    const { cwd } = listed(t, 1)
    const url = await server.database()
    const secret = 'do-not-tell'
    const away = `postgres://waitlist:${secret}@127.0.0.1:1/waitlist`
    const targets: readonly (readonly [to: string, sentence: RegExp, env?: Record<string, string>])[] = [
      [away, /127\.0\.0\.1:1\/waitlist cannot be used: connect ECONNREFUSED .*\. Nothing was copied\.\n$/],
      [url.replace('owner', `nobody:${secret}`), /cannot be used: password authentication failed/],
      [`mysql://waitlist:${secret}@db/waitlist`, /--to must be sqlite:<path>, or postgres:/],
      ['sqlite:./data/waitlist.db', /are the same database, sqlite:\.\/data\/waitlist\.db/],
      ['sqlite:./missing/copy.db', /There is no database at none\.db/, { DATABASE_URL: 'sqlite:none.db' }],
      ['sqlite:./missing/copy.db', /ECONNREFUSED/, { DATABASE_URL: away }],
    ]
    for (const [to, sentence, env] of isSlow ? targets : targets.slice(1, 4)) {
      const { code, stdout, stderr } = await run(t, cwd, to, env)
      assert.equal(code, 1)
      assert.equal(stdout, '')
      assert.match(stderr, sentence)
      assert.match(stderr, /^waitlist: [^\n]+\n$/, 'one sentence, no stack')
      assert.ok(!stderr.includes(secret), stderr)
    }
    assert.ok(!existsSync(join(cwd, 'missing')))
    const without = spawnProgram(t, {}, { cwd, args: ['move'] })
    assert.equal(await without.exited, 2)
    assert.match(without.stderr(), /--to <url>/)
  })
})

async function isCopying(url: string): Promise<boolean> {
  const rows = await query(
    url,
    "select 1 from pg_stat_activity where query like 'insert into contact%' and state <> 'idle'",
  )
  return rows.length > 0
}

// One after the other: this process must be there in the middle of each.
describe('a waitlist move that is cut short', { timeout: 120_000, skip: !isSlow && 'it runs in .ci/run' }, () => {
  for (const way of ['PostgreSQL', 'a file'] as const) {
    test(`ends at Ctrl-C, leaves ${way} as it was, and succeeds when it is typed again`, async t => {
      const { cwd, path } = listedMany(t)
      const url = await server.database()
      const copy = join(cwd, 'copy.db')
      const to = way === 'a file' ? `sqlite:${copy}` : url
      const cut = spawnProgram(t, {}, { cwd, args: ['move', '--to', to] })
      await until(async () => (way === 'a file' ? existsSync(`${copy}.unfinished-move`) : isCopying(url)))
      cut.process.kill('SIGINT')
      assert.equal(await cut.exited, 1)
      assert.match(
        cut.stderr(),
        /^waitlist: stopped before the end\. \S+ is as it was\. Run the same command again\.\n$/,
      )
      if (way === 'a file') {
        const left = readdirSync(cwd).filter(name => name.startsWith('copy'))
        assert.deepEqual(left, ['copy.db-lock'])
      } else assert.deepEqual(await query(url, "select 1 from pg_class where relname = 'contact'"), [])
      const { code, stdout } = await run(t, cwd, to)
      assert.equal(code, 0)
      assert.ok(stdout.includes('40,000 rows were copied'), stdout)
      assert.deepEqual(way === 'a file' ? listIn(copy) : await listOn(url), listIn(path))
    })
  }

  test('says what to do when the server goes away in the middle, and succeeds when it is back', async t => {
    const { cwd, path } = listedMany(t)
    const own = await startPostgres()
    t.after(() => own.remove())
    const url = await own.database()
    const cut = spawnProgram(t, {}, { cwd, args: ['move', '--to', url] })
    await until(() => isCopying(url))
    await own.stop('immediate')
    assert.equal(await cut.exited, 1)
    assert.match(cut.stderr(), /^waitlist: postgres:.* cannot be used: [^\n]+\. Nothing was copied\.\n$/)
    await own.start()
    assert.deepEqual(await query(url, "select 1 from pg_class where relname = 'contact'"), [])
    const { code, stderr } = await run(t, cwd, url)
    assert.equal(code, 0, stderr)
    assert.deepEqual(await listOn(url), listIn(path))
  })
})
