import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { temporaryFolder } from '../harness/folder.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { rowsIn as query } from '../harness/postgres-database.ts'
import { runCommand, runProgram, spawnProgram, until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { listIn, listOn, manyContacts, writeList } from '../stores/move.scene.ts'

const server = await sharedPostgres()

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

const run = (t: TestContext, cwd: string, to: string, env: Record<string, string> = {}) =>
  runCommand(t, cwd, ['move', '--to', to], env)

describe('waitlist move', { concurrency: true }, () => {
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
describe('a waitlist move that is cut short', { skip: !isSlow && 'it runs in .ci/run' }, () => {
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
})
