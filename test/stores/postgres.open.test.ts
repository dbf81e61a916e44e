/** A store that cannot be kept as it should be is not opened, and the reason is told, without the password. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { unfit } from '../../src/stores/postgres/schema.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { signup } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { freePort } from '../harness/port.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { grants, makeRole, PASSWORD, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { spawnProgram } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'

const server = await startPostgres()
after(() => server.remove())
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

describe('opening', { timeout: 120_000, concurrency: 4 }, () => {
  test('a password with any character in it works; a wrong one is refused at once', async () => {
    const url = await server.database(made)
    await works(await open(roleUrl(url)))
    const since = performance.now()
    const message = await refusal(roleUrl(url, 'wrong-secret'))
    assert.match(
      message,
      new RegExp(`^postgres://127.0.0.1:${server.port}/list_\\d+ cannot be used: password auth.+${ROLE}`),
    )
    assert.match(await refusal(roleUrl(url, '')), NO_PASSWORD)
    assert.ok(performance.now() - since < 10_000, 'nobody waits for what does not pass')
  })

  for (const command of ['serve', 'export']) {
    test(`without a password, ${command} ends by itself and says so`, { timeout: 30_000 }, async t => {
      const env = { DATABASE_URL: roleUrl(made, ''), HOST: '127.0.0.1', PORT: '0' }
      const program = spawnProgram(t, env, { cwd: temporaryFolder(t), args: [command] })
      assert.equal(await program.exited, 1)
      assert.match(program.stdout() + program.stderr(), NO_PASSWORD)
    })
  }

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

  test('a server that starts meanwhile is used', async t => {
    const other = await startPostgres({ settings: unsynced })
    t.after(() => other.remove())
    const url = await other.database()
    await other.stop('fast')
    const opening = open(url, 30_000)
    await wait(700)
    await other.start()
    await works(await opening)
  })

  test('another encoding and another date style are refused in words', async () => {
    const latin = `postgres://owner@127.0.0.1:${server.port}/latin`
    await server.run(made, "create database latin template template0 encoding 'LATIN1'")
    assert.match(await refusal(latin), /its encoding is LATIN1; create one with encoding 'UTF8'/)
    const url = await server.database(made)
    await server.run(url, `alter database ${new URL(url).pathname.slice(1)} set datestyle = 'German'`)
    assert.match(await refusal(url), /DateStyle is German/)
  })

  test('a server that is too old is refused in words', () => {
    const facts = { encoding: 'UTF8', dates: 'ISO, MDY', readOnly: false, fsync: true }
    assert.match(unfit({ ...facts, version: 100_023 })!, /PostgreSQL 11 or newer is needed; this one is 10/)
    for (const version of [110_000, 150_004, 180_000]) assert.equal(unfit({ ...facts, version }), null)
  })

  test('every right that is missing is found at the start, and the grant that is told helps', async () => {
    const url = await server.database(made)
    const rights = {
      contact: ['select', 'insert', 'update', 'delete'],
      delivery: ['select', 'insert', 'update', 'delete'],
      turn: ['select', 'insert', 'update'],
    }
    for (const [table, all] of Object.entries(rights)) {
      for (const right of all) {
        await server.run(url, `revoke ${right} on ${table} from ${ROLE}`)
        const message = await refusal(roleUrl(url))
        assert.match(message, new RegExp(`The role "${ROLE}" lacks rights in postgres://`))
        const [grant, ...more] = [...message.matchAll(/grant [^;]+;/g)].map(([found]) => found)
        assert.deepEqual([grant, more], [`grant ${right} on ${table} to "${ROLE}";`, []])
        await server.run(url, grant!)
      }
    }
    await works(await open(roleUrl(url)))
    await server.run(url, `revoke select on waitlist_schema from ${ROLE}`)
    assert.match(await refusal(roleUrl(url)), /permission denied for table waitlist_schema/)
  })

  test('a role that may not make tables cannot be the first', async () => {
    assert.match(await refusal(roleUrl(await server.database())), /The schema of .* cannot be made: permission denied/)
  })

  test('a server that does not sync is warned of', async t => {
    const unsafe = await startPostgres({ settings: { fsync: 'off' } })
    t.after(() => unsafe.remove())
    const url = await unsafe.database()
    await works(await open(url))
    // Another server of this file is warned of at any moment.
    const ours = logged.filter(({ database }) => String(database).includes(`:${unsafe.port}/`))
    const lines = ours.filter(line => String(line.msg).includes('fsync is off'))
    assert.deepEqual(
      lines.map(({ database, level }) => [database, level]),
      [[url.replace('owner@', ''), 40]],
    )
  })
})
