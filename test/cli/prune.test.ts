import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.place.ts'
import { sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, runProgram, spawnProgram, until } from '../harness/program.ts'

const DAY = 86_400_000

/** Three deliveries ended 100 days ago, one of them abandoned, and one 40 days ago. */
async function listed(t: TestContext) {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', destinations: ['webhook'], minimumFree: 0 })
  for (const who of ['ada', 'bob', 'cyd', 'dot']) await store.admit(signup(who, `${who}@example.com`))
  const [first, ...others] = await store.claim('webhook', 4)
  await store.settle(first!, { is: 'abandoned', why: 'HTTP 404' })
  for (const each of others) await store.settle(each, { is: 'delivered' })
  await store.close()
  const sql = sqlOn(path)
  const ago = (days: number, which: string) =>
    sql(`update delivery set settled_at = ${Date.now() - days * DAY} where number ${which}`)
  await ago(100, '< 4')
  await ago(40, '= 4')
  /** When the service looks next; sets it, if that is given. */
  async function turn(next?: number): Promise<number> {
    if (next !== undefined) await sql(`update turn set next_at = ${next} where name = 'prune'`)
    return Number((await sql("select next_at from turn where name = 'prune'"))[0]?.next_at ?? 0)
  }
  return { cwd, turn, left: async () => (await sql('select 1 from delivery')).length }
}

describe('deliveries that ended', { concurrency: true, timeout: 60_000 }, () => {
  test('waitlist prune deletes those of 90 days, or as it is told, and says how many had been abandoned', async t => {
    const { cwd, left } = await listed(t)
    const prune = async (...args: string[]) => {
      const program = spawnProgram(t, {}, { cwd, args: ['prune', ...args] })
      assert.equal(await program.exited, 0, program.stderr())
      assert.equal(program.stderr(), '')
      return program.stdout().replace(/\d{4}-\d\d-\d\dT[\d:]+Z/, 'then')
    }
    assert.equal(await prune(), '3 deliveries that ended before then were deleted, 1 of which had been abandoned.\n')
    assert.equal(await left(), 1)
    assert.equal(await prune(), '0 deliveries that ended before then were deleted.\n')
    assert.equal(await prune('--older-than', '30d'), '1 delivery that ended before then was deleted.\n')
    assert.equal(await left(), 0)
  })

  test('with KEEP_DELIVERIES the service does it by itself, if one looked an hour ago, but for what was abandoned', async t => {
    const { cwd, left, turn } = await listed(t)
    const env = { PORT: '0', HOST: '127.0.0.1' }
    const without = await runProgram(t, env, { cwd })
    assert.equal(await without.end('SIGTERM'), 0)
    assert.equal(await left(), 4)
    const keeping = async () => {
      const service = await runProgram(t, { ...env, KEEP_DELIVERIES: '90d' }, { cwd })
      await until(async () => (await turn()) > Date.now())
      return service
    }
    // As long as nobody knows for how long none has looked, or how far the clock has leapt.
    assert.equal(await (await keeping()).end('SIGTERM'), 0)
    assert.equal(await left(), 4)
    await turn(Date.now())
    const service = await keeping()
    await until(() => logOf(service).some(({ deliveries }) => deliveries === 2))
    assert.equal(await service.end('SIGTERM'), 0)
    assert.equal(await left(), 2)
  })
})
