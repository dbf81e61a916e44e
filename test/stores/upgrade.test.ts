import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { isReleased, parts } from '../../scripts/release/changelog.ts'
import { changedSince, type Engine, kept, madeBy } from '../../scripts/release/schema.ts'
import { clientOf } from '../harness/client.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-database.ts'
import { runCommand, runProgram, until } from '../harness/program.ts'
import { say, startReceiver } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'

type Row = Readonly<Record<string, unknown>>
interface Place {
  readonly url: string
  readonly run: (sql: string) => Promise<readonly Row[]>
}

/** Of a webhook. */
const secret = 'whsec_Zm9yLXRoZS1yZWFkbWUtYW5kLW5vdGhpbmctZWxzZQ=='
const server = await sharedPostgres()

/** A database of an earlier version, as its package left it. */
const places: Readonly<Record<Engine, (t: TestContext, version: string) => Promise<Place>>> = {
  async sqlite(t, version) {
    const path = join(temporaryFolder(t), 'waitlist.db')
    writeFileSync(path, gunzipSync(readFileSync(join(kept, version, 'sqlite.db.gz'))), { mode: 0o600 })
    return {
      url: `sqlite:${path}`,
      run: async sql =>
        withDatabase(path, file =>
          file
            .prepare(sql)
            .all()
            .map(row => ({ ...row })),
        ),
    }
  },
  async postgres(_, version) {
    const url = await server.database()
    await server.run(url, readFileSync(join(kept, version, 'postgres.sql'), 'utf8'))
    return { url, run: sql => rowsIn<Row>(url, sql) }
  },
}

/** What an upgrade must not lose; the other tables forget with time. */
const lasting = ['contact', 'delivery', 'erased', 'secret']
const rowsOf = async ({ run }: Place) =>
  Object.fromEntries(
    await Promise.all(
      lasting.map(async table => [table, await run(`select * from ${table} order by number`)] as const),
    ),
  )

/** Without the columns that came with a later version. */
const withColumnsOf = (then: readonly Row[], now: readonly Row[]) =>
  now.map(row => Object.fromEntries(Object.keys(then[0] ?? {}).map(column => [column, row[column]])))

describe('a database of an earlier version', { concurrency: true, timeout: 60_000 }, () => {
  const versions = readdirSync(kept)

  test('is kept for each release', () => {
    const released = parts()
      .map(({ version }) => version)
      .filter(isReleased)
    assert.deepEqual(
      released.filter(version => !versions.includes(version)),
      [],
    )
  })

  for (const version of versions) {
    const made = madeBy(version)!
    const changed = changedSince(made)
    const skip =
      !isReleased(version) &&
      changed.length > 0 &&
      `${changed.join(', ')} changed; before ${version} is released: node scripts/release/databases.ts`

    test(`of ${version} has the migrations of today`, { skip }, () => {
      assert.deepEqual(
        changed,
        [],
        'released migrations stay as they are: put the change into a new file (CONTRIBUTING.md)',
      )
    })

    for (const engine of ['sqlite', 'postgres'] as const) {
      test(`of ${version} on ${engine} is upgraded, loses nothing, and its events arrive under their ids`, {
        skip,
      }, async t => {
        const place = await places[engine](t, version)
        const cwd = temporaryFolder(t)
        const own = { DATABASE_URL: place.url, SHUTDOWN_DELAY: '0' }
        const then = await rowsOf(place)
        for (const table of lasting) assert.ok(then[table]!.length > 0, table)

        // Without a destination, nothing moves.
        const quiet = await runProgram(t, own, { cwd })
        await until(() => quiet.stdout().includes('signups wait for a confirmation, but CONFIRM is none'))
        assert.equal(await quiet.end('SIGTERM'), 0)
        const now = await rowsOf(place)
        for (const table of lasting) assert.deepEqual(withColumnsOf(then[table]!, now[table]!), then[table], table)
        if (isSlow) assert.match((await runCommand(t, cwd, ['check'], own)).stdout, /the store is intact/)

        const past = engine === 'sqlite' ? '0' : 'to_timestamp(0)'
        await place.run(`update delivery set due_at = ${past} where state = 'waiting'`)
        const receiver = await startReceiver(t, () => say({ status: 200 }))
        const { baseUrl, end } = await runProgram(
          t,
          { ...own, WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: secret },
          { cwd },
        )
        await receiver.arrived(2)
        const client = await clientOf({ baseUrl })
        const known = async (email: string) => (await client.signUp({ name: 'Somebody', email })).json.alreadyExisted
        // Listed with an event, invited, held; pending for a provider that is gone, unconfirmed where nobody has to confirm
        // any more, and erased.
        const before = ['ADA@example.com', 'hal@example.com', 'fay@example.com']
        assert.deepEqual(await Promise.all(before.map(known)), [true, true, true])
        const anew = ['ida@example.com', 'joe@example.com', 'gus@example.com']
        assert.deepEqual(await Promise.all(anew.map(known)), [false, false, false])
        await receiver.arrived(5)
        assert.equal(await end('SIGTERM'), 0)

        const ids = Object.fromEntries(
          receiver.received.map(({ json, headers }) => [json.data.email, headers['webhook-id']]),
        )
        assert.deepEqual(
          Object.keys(ids).sort(),
          ['cyd', 'dot', 'gus', 'ida', 'joe'].map(name => `${name}@example.com`),
        )
        for (const email of ['cyd@example.com', 'dot@example.com']) assert.equal(ids[email], made.told[engine][email])
      })
    }
  }
})
