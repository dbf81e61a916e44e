/** A store that cannot be kept as it should be is not opened, and the reason is told, without the password. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { postgresOperator } from '../../src/stores/postgres/engine.ts'
import { unfit } from '../../src/stores/postgres/schema.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { signup } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { freePort } from '../harness/port.ts'
import { sharedPostgres, startPostgres } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-database.ts'
import { grants, makeRole, PASSWORD, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { spawnProgram } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { fixture } from '../harness/tls.ts'

const server = await sharedPostgres()
const { log, logged } = recordingLog()
const open = (url: string, timeout = 10_000) =>
  postgresStore({ url, eventName: 'waitlist.joined', destinations: ['webhook'], log, timeout })

const made = await server.database()
await open(made).then(store => store.close())
await server.run(made, makeRole, ...grants(ROLE))

const NO_PASSWORD = /cannot be used: the server asks for a password, but DATABASE_URL has none/

/** What is told; never the password, as it is or as it stands in the URL. */
async function refusal(url: string, timeout?: number): Promise<string> {
  const message = await open(url, timeout).then(
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

describe('opening', { concurrency: 4 }, () => {
  test('a password with any character in it works; a wrong one, or none, is refused at once', async () => {
    const url = await server.database(made)
    await works(await open(roleUrl(url)))
    const since = performance.now()
    const message = await refusal(roleUrl(url, 'wrong-secret'))
    const { host, pathname } = new URL(url)
    assert.match(message, new RegExp(`^postgres://${host}${pathname} cannot be used: password auth.+${ROLE}`))
    assert.match(await refusal(roleUrl(url, '')), NO_PASSWORD)
    assert.ok(performance.now() - since < 10_000, 'nobody waits for what does not pass')
    await assert.rejects(postgresOperator(roleUrl(url, '')).contacts(), NO_PASSWORD)
  })

  test('without a password the service ends by itself and says so', async t => {
    const env = { DATABASE_URL: roleUrl(made, ''), HOST: '127.0.0.1', PORT: '0' }
    const program = spawnProgram(t, env, { cwd: temporaryFolder(t), args: ['serve'] })
    assert.equal(await program.exited, 1)
    assert.match(program.stdout() + program.stderr(), NO_PASSWORD)
  })

  test('a database that does not exist is refused at once', async () => {
    assert.match(await refusal(`postgres://owner@127.0.0.1:${server.port}/nowhere`), /"nowhere" does not exist/)
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

  test('another encoding and another date style are refused in words', async t => {
    const latin = `latin_${process.pid}`
    t.after(() => server.run(made, `drop database if exists ${latin} with (force)`))
    await server.run(made, `create database ${latin} template template0 encoding 'LATIN1'`)
    const url = await server.database(made)
    const { pathname } = new URL(url)
    assert.match(
      await refusal(url.replace(pathname, `/${latin}`)),
      /its encoding is LATIN1; create one with encoding 'UTF8'/,
    )
    await server.run(url, `alter database ${pathname.slice(1)} set datestyle = 'German'`)
    assert.match(await refusal(url), /DateStyle is German/)
  })

  test('a server that is too old is refused in words', () => {
    const facts = { encoding: 'UTF8', dates: 'ISO, MDY', readOnly: false, fsync: true }
    assert.match(unfit({ ...facts, version: 100_023 })!, /PostgreSQL 11 or newer is needed; this one is 10/)
    for (const version of [110_000, 150_004, 180_000]) assert.equal(unfit({ ...facts, version }), null)
  })

  test('a role that lacks a right is refused, at the start or by the first check, in the words of the server', async () => {
    const url = await server.database(made)
    await server.run(url, `revoke insert on contact from ${ROLE}`)
    const store = await open(roleUrl(url))
    await assert.rejects(store.check(), /permission denied for table contact \(42501\)/)
    await store.close()
    await server.run(url, `revoke select on waitlist_schema from ${ROLE}`)
    assert.match(await refusal(roleUrl(url)), /permission denied for table waitlist_schema/)
  })

  test('a role that may not make tables cannot be the first', async () => {
    assert.match(await refusal(roleUrl(await server.database())), /The schema of .* cannot be made: permission denied/)
  })

  test('a server that does not sync is warned of', async () => {
    const url = await server.database(made)
    await works(await open(url))
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
  const USED =
    "select ssl from pg_stat_ssl natural join pg_stat_activity where application_name = 'waitlist'" +
    ' and datname = current_database()'

  /** Whether the connections of a store are encrypted; or why it is not opened. */
  async function tried(query: string, at = bare): Promise<boolean | string> {
    try {
      const store = await open(`${at}${query}`)
      await store.check()
      const used = await rowsIn<{ ssl: boolean }>(at, USED)
      await store.close()
      return used.length > 0 && used.every(({ ssl }) => ssl)
    } catch (error) {
      assert.ok(error instanceof OperatorError, String(error))
      return error.message
    }
  }
  const local = bare.replace('127.0.0.1', 'localhost')

  for (const [query, at, expected] of [
    [`?sslmode=verify-ca&sslrootcert=${first}`, bare, true],
    [`?sslmode=verify-full&sslrootcert=${first}`, local, true],
    ['?sslmode=prefer', bare, true],
    ['?sslmode=disable', bare, false],
    ['', made, false],
    ['?sslmode=prefer', made, false],
    ['?sslmode=allow', made, false],
  ] as const) {
    const name = query.replaceAll(/\/.*\//g, '') || 'nothing said'
    const where = `${at === made ? 'a server without TLS' : 'one with it'}${at === local ? ', by its name,' : ''}`
    test(`with ${name}, ${where} is used, ${expected ? 'encrypted' : 'in the clear'}`, async () => {
      assert.equal(await tried(query, at), expected)
    })
  }

  for (const [query, at, why] of [
    [`?sslmode=require&sslrootcert=${second}`, bare, /cannot be used: .*certificate/],
    [`?sslmode=verify-ca&sslrootcert=${second}`, bare, /cannot be used: .*certificate/],
    [`?sslmode=verify-full&sslrootcert=${second}`, bare, /cannot be used: .*certificate/],
    ['?sslmode=verify-full', bare, /cannot be used: .*certificate/],
    ['?sslmode=verify-ca', bare, /requires specifying a CA/],
    ['?sslmode=require&sslrootcert=missing.crt', bare, /ENOENT.*missing\.crt/],
    ['?sslmode=require', made, /does not support SSL/],
  ] as const) {
    test(`with ${query.replaceAll(/\/.*\//g, '')} it is refused: ${why}`, async () => {
      assert.match(String(await tried(query, at)), why)
    })
  }

  test('a server that starts meanwhile is used', async () => {
    await secure.stop('fast')
    const opening = open(bare, 30_000)
    await wait(700)
    await secure.start()
    await works(await opening)
  })
})
