import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../../src/config/operator.ts'
import { postgresDatabase, postgresForCommand } from '../../src/store/postgres/open.ts'
import { recordingLog } from '../harness/log.ts'
import { sharedPostgres, startPostgres } from '../harness/postgres.ts'
import { grants, makeRole, PASSWORD, ROLE, roleUrl, rowsIn } from '../harness/postgres-database.ts'
import { storeAt } from '../harness/store.ts'
import { fixture } from '../harness/tls.ts'
import { signup } from './place.ts'

const server = await sharedPostgres()
const made = await server.database()
await (await postgresDatabase({ url: made, log: recordingLog().log })).close()
await server.run(made, makeRole, ...grants(ROLE))

/** The sentence with which a database is refused; never with the password, as it is or as it stands in the URL. */
async function refusal(opening: Promise<unknown>): Promise<string> {
  const error = await opening.then(
    () => new OperatorError('it was opened'),
    (error: Error) => error,
  )
  assert.ok(error instanceof OperatorError, String(error.stack))
  for (const secret of [PASSWORD, encodeURIComponent(PASSWORD), 'wrong-secret'])
    assert.ok(!error.message.includes(secret), error.message)
  return error.message
}
const refused = (url: string) => refusal(postgresDatabase({ url, log: recordingLog().log }))

async function works(url: string): Promise<void> {
  const store = await storeAt({ kind: 'postgres', url })
  await store.admit(signup('Ada', 'ada@example.com'))
  await store.close()
}

describe('opening', { timeout: 120_000, concurrency: true }, () => {
  test('a role with few rights and a password with any character works; a wrong one, or none, is refused', async () => {
    const url = await server.database(made)
    await works(roleUrl(url))
    const { host, pathname } = new URL(url)
    assert.match(
      await refused(roleUrl(url, 'wrong-secret')),
      new RegExp(`^postgres://${host}${pathname} cannot be used: password auth.+${ROLE}`),
    )
    assert.match(await refused(roleUrl(url, '')), /^PostgreSQL asks for a password, and DATABASE_URL has none\.$/)
  })

  test('what cannot keep a list is refused in a sentence', async t => {
    const nowhere = `postgres://owner@127.0.0.1:${server.port}/nowhere`
    assert.match(await refused(nowhere), /"nowhere" does not exist/)
    assert.match(await refusal(postgresForCommand(await server.database())), /has no waitlist\. Start the service once/)
    const latin = `latin_${process.pid}`
    t.after(() => server.run(made, `drop database if exists ${latin} with (force)`))
    await server.run(made, `create database ${latin} template template0 encoding 'LATIN1'`)
    assert.match(await refused(made.replace(new URL(made).pathname, `/${latin}`)), /its encoding is LATIN1, not UTF8/)
    const newer = await server.database(made)
    await server.run(newer, 'update waitlist_schema set version = 2')
    assert.match(await refused(newer), /written by a newer Waitlist .*version 2, this program knows 1/)
    const theirs = await server.database()
    await server.run(theirs, 'create table secret (number integer)')
    assert.match(await refused(theirs), /cannot be used: .*relation "secret" already exists/)
    assert.deepEqual(await rowsIn(theirs, "select to_regclass('contact') as made"), [{ made: null }])
    assert.match(await refused(roleUrl(await server.database())), /cannot be used: permission denied/)
  })

  test('of many that start at once on an empty database, one makes the tables', async () => {
    const url = await server.database()
    await Promise.all(Array.from({ length: 8 }, () => works(url)))
    assert.equal((await rowsIn(url, 'select 1 from waitlist_schema')).length, 1)
    assert.equal((await rowsIn(url, 'select 1 from contact')).length, 1)
  })
})

/** `sslmode` and `sslrootcert` mean what they mean to libpq (https://postgresql.org/docs/current/libpq-ssl.html). */
describe('TLS to PostgreSQL', { concurrency: true }, async () => {
  const secure = await startPostgres({ tls: { certificate: fixture('first.crt'), key: fixture('first.key') } })
  after(() => secure.remove())
  const bare = await secure.database()
  await (await postgresDatabase({ url: bare, log: recordingLog().log })).close()
  const first = fileURLToPath(fixture('first.crt'))
  const second = fileURLToPath(fixture('second.crt'))
  const local = bare.replace('127.0.0.1', 'localhost')

  /** Whether the connections of a store are encrypted. */
  async function isEncrypted(url: string): Promise<boolean> {
    const database = await postgresForCommand(url)
    const used = await database.read(tx =>
      tx.all<{ ssl: boolean }>('select ssl from pg_stat_ssl where pid = pg_backend_pid()'),
    )
    await database.close()
    return used[0]!.ssl
  }

  test('it is as sslmode and sslrootcert say', async () => {
    for (const [url, expected] of [
      [`${bare}?sslmode=verify-ca&sslrootcert=${first}`, true],
      [`${local}?sslmode=verify-full&sslrootcert=${first}`, true],
      [`${bare}?sslmode=require`, true],
      [`${bare}?sslmode=disable`, false],
    ] as const) {
      assert.equal(await isEncrypted(url), expected, url)
    }
  })

  for (const [url, expected] of [
    [`${bare}?sslmode=require&sslrootcert=${second}`, /cannot be used: .*certificate/],
    [`${bare}?sslmode=verify-full&sslrootcert=${second}`, /cannot be used: .*certificate/],
    [`${bare}?sslmode=verify-full`, /cannot be used: .*certificate/],
    [`${bare}?sslmode=verify-ca`, /requires specifying a CA/],
    [`${bare}?sslmode=require&sslrootcert=missing.crt`, /ENOENT.*missing\.crt/],
    [`${made}?sslmode=require`, /does not support SSL/],
  ] as const) {
    test(`${url.replaceAll(/\/.*\//g, '')} is refused: ${expected}`, async () => {
      assert.match(await refusal(postgresForCommand(url)), expected)
    })
  }

  test('a server that is not there yet is waited for, and the log says so', async () => {
    const later = await startPostgres()
    const url = await later.database()
    await later.stop('fast')
    const { log, logged } = recordingLog()
    const opening = postgresDatabase({ url, log })
    await wait(4_000)
    await later.start()
    await (await opening).close()
    const { msg, why } = logged[0]!
    assert.match(`${msg}: ${why}`, /^the database cannot be used: .*ECONNREFUSED/)
    await later.remove()
  })
})
