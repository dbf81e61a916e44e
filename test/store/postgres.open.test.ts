/** A store that cannot be kept as it should be is not opened, and the reason is told, without the password. */
import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../../src/config/operator.ts'
import { postgresDatabase, postgresForCommand } from '../../src/store/postgres/database.ts'
import type { Store } from '../../src/store/store.ts'
import { recordingLog } from '../harness/log.ts'
import { freePort } from '../harness/port.ts'
import { sharedPostgres, startPostgres } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-database.ts'
import { grants, makeRole, PASSWORD, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { fixture } from '../harness/tls.ts'
import { signup } from './place.ts'
import { storeAt } from './postgres.place.ts'

const server = await sharedPostgres()
const recorder = recordingLog()
const { log, logged } = recorder
const open = (t: TestContext, url: string) => storeAt(t, url, null, recorder)

const made = await server.database()
await (await postgresDatabase({ url: made, log })).close()
await server.run(made, makeRole, ...grants(ROLE))

/** What is told; never the password, as it is or as it stands in the URL. */
async function refusal(url: string, patience = 10_000): Promise<string> {
  const message = await postgresDatabase({ url, log, patience }).then(
    () => 'it was opened',
    (error: Error) => {
      assert.ok(error instanceof OperatorError, String(error.stack))
      return error.message
    },
  )
  for (const text of [message, ...logged.map(line => JSON.stringify(line))]) {
    for (const secret of [PASSWORD, encodeURIComponent(PASSWORD), 'wrong-secret'])
      assert.ok(!text.includes(secret), text)
  }
  return message
}

async function works(store: Store): Promise<void> {
  await store.check()
  assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
  await store.close()
}

describe('opening', { timeout: 120_000, concurrency: 4 }, () => {
  test('a password with any character in it works; a wrong one, or none, is refused at once', async t => {
    const url = await server.database(made)
    await works(await open(t, roleUrl(url)))
    const since = performance.now()
    const { host, pathname } = new URL(url)
    assert.match(
      await refusal(roleUrl(url, 'wrong-secret')),
      new RegExp(`^postgres://${host}${pathname} cannot be used: password auth.+${ROLE}`),
    )
    const none = /cannot be used: the server asks for a password, but DATABASE_URL has none/
    assert.match(await refusal(roleUrl(url, '')), none)
    assert.ok(performance.now() - since < 10_000, 'nobody waits for what does not pass')
    await assert.rejects(postgresForCommand(roleUrl(url, '')), none)
  })

  test('a database that does not exist is refused at once, and one without tables by a command', async () => {
    assert.match(await refusal(`postgres://owner@127.0.0.1:${server.port}/nowhere`), /"nowhere" does not exist/)
    await assert.rejects(postgresForCommand(await server.database()), /has no waitlist\. Start the service once/)
  })

  test('a server that is not there is waited for, with one line in the log', async () => {
    const port = await freePort()
    const message = await refusal(`postgres://owner:wrong-secret@127.0.0.1:${port}/list`, 1_500)
    assert.match(message, new RegExp(`^postgres://127.0.0.1:${port}/list cannot be used: .*ECONNREFUSED`))
    const lines = logged.filter(line => JSON.stringify(line).includes(`:${port}/list`))
    assert.deepEqual(
      lines.map(({ msg }) => msg),
      ['waiting for the database'],
    )
  })

  test('another encoding, a newer schema, and tables of another program are refused in words', async t => {
    const latin = `latin_${process.pid}`
    t.after(() => server.run(made, `drop database if exists ${latin} with (force)`))
    await server.run(made, `create database ${latin} template template0 encoding 'LATIN1'`)
    assert.match(await refusal(made.replace(new URL(made).pathname, `/${latin}`)), /its encoding is LATIN1, not UTF8/)
    const newer = await server.database(made)
    await server.run(newer, 'update waitlist_schema set version = 2')
    assert.match(await refusal(newer), /written by a newer Waitlist .*version 2, this program knows 1/)
    await assert.rejects(postgresForCommand(newer), /written by a newer Waitlist/)
    const theirs = await server.database()
    await server.run(theirs, 'create table secret (number integer)')
    assert.match(await refusal(theirs), /The tables of .* cannot be made: relation "secret" already exists/)
    assert.deepEqual(await rowsIn(theirs, "select to_regclass('contact') as made"), [{ made: null }])
  })

  test('of many that start at once on an empty database, one makes the tables', async t => {
    const url = await server.database()
    const stores = await Promise.all(Array.from({ length: 8 }, () => open(t, url)))
    for (const store of stores) await store.check()
    assert.equal((await rowsIn(url, 'select 1 from waitlist_schema')).length, 1)
  })

  test('a role that lacks a right is told so, in the words of the server', async t => {
    const url = await server.database(made)
    await server.run(url, `revoke insert on contact from ${ROLE}`)
    const store = await open(t, roleUrl(url))
    await assert.rejects(store.check(), /permission denied for table contact \(42501\)/)
    await server.run(url, `revoke select on waitlist_schema from ${ROLE}`)
    assert.match(await refusal(roleUrl(url)), /permission denied for table waitlist_schema/)
    assert.match(await refusal(roleUrl(await server.database())), /The tables of .* cannot be made: permission denied/)
  })

  test('a server that does not sync is warned of', async t => {
    const url = await server.database(made)
    await works(await open(t, url))
    const lines = logged.filter(({ database }) => url.endsWith(String(database).replace('postgres://', '')))
    assert.deepEqual(
      lines.map(({ msg, level }) => [msg, level]),
      [['fsync is off in PostgreSQL: a power cut can lose acknowledged signups', 40]],
    )
  })
})

/** `sslmode` and `sslrootcert` mean what they mean to libpq (https://postgresql.org/docs/current/libpq-ssl.html). */
describe('TLS to PostgreSQL', async () => {
  const secure = await startPostgres({ tls: { certificate: fixture('first.crt'), key: fixture('first.key') } })
  after(() => secure.remove())
  const bare = await secure.database()
  const first = fileURLToPath(fixture('first.crt'))
  const second = fileURLToPath(fixture('second.crt'))
  const local = bare.replace('127.0.0.1', 'localhost')

  /** Whether the connections of a store are encrypted; or why it is not opened. */
  async function tried(url: string): Promise<boolean | string> {
    try {
      const database = await postgresDatabase({ url, log })
      const used = await database.read(tx =>
        tx.all<{ ssl: boolean }>('select ssl from pg_stat_ssl where pid = pg_backend_pid()'),
      )
      await database.close()
      return used[0]!.ssl
    } catch (error) {
      assert.ok(error instanceof OperatorError, String(error))
      return error.message
    }
  }

  for (const [query, at, expected] of [
    [`?sslmode=verify-ca&sslrootcert=${first}`, bare, true],
    [`?sslmode=verify-full&sslrootcert=${first}`, local, true],
    ['?sslmode=prefer', bare, true],
    ['?sslmode=disable', bare, false],
    ['?sslmode=prefer', made, false],
    ['?sslmode=allow', made, false],
    [`?sslmode=require&sslrootcert=${second}`, bare, /cannot be used: .*certificate/],
    [`?sslmode=verify-full&sslrootcert=${second}`, bare, /cannot be used: .*certificate/],
    ['?sslmode=verify-full', bare, /cannot be used: .*certificate/],
    ['?sslmode=verify-ca', bare, /requires specifying a CA/],
    ['?sslmode=require&sslrootcert=missing.crt', bare, /ENOENT.*missing\.crt/],
    ['?sslmode=require', made, /does not support SSL/],
  ] as const) {
    const where = at === made ? 'a server without TLS' : 'one with it'
    test(`with ${query.replaceAll(/\/.*\//g, '')}, at ${where}: ${expected}`, async () => {
      const result = await tried(at + query)
      if (typeof expected === 'boolean') assert.equal(result, expected)
      else assert.match(String(result), expected)
    })
  }

  test('a server that starts meanwhile is used', async t => {
    await secure.stop('fast')
    const opening = open(t, bare)
    await wait(700)
    await secure.start()
    await works(await opening)
  })
})
