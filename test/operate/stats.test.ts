import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Stats } from '../../src/store/counts.ts'
import { run as command } from '../harness/command.ts'
import { sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

const run = (t: TestContext, cwd: string, args: readonly string[] = []) => command(t, cwd, ['stats', ...args])

/** A folder with `data/waitlist.db`, where the program looks by default, open in a store, with so many contacts. */
async function withContacts(t: TestContext, count: number): Promise<string> {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await storeAt(path, { destinations: ['webhook'] })
  t.after(() => store.close())
  await Promise.all(Array.from({ length: count }, (_, i) => store.admit(signup('Ada', `ada${i}@example.com`))))
  return cwd
}

describe('waitlist stats', { concurrency: true }, () => {
  test('sums up the list beside a running service, for people, without colours off a terminal', async t => {
    const { code, stdout, stderr } = await run(t, await withContacts(t, 1_200))
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /\n1,200 signed up: 1,200 listed\n/)
    assert.match(stdout, /\n▁{28,}█▁? signups per day \(.+\)\n/)
    assert.match(stdout, /\nwebhook +waiting +1,200 +20\d\d-\S+Z\n$/)
    assert.doesNotMatch(stdout, /[\p{Cc}--\n]/v)
    assert.doesNotMatch(stdout, /example\.com/)
  })

  test('as JSON', async t => {
    const cwd = await withContacts(t, 3)
    // Seven days are today and the six before.
    const week = 7 * 86_400_000
    await sqlOn(join(cwd, 'data', 'waitlist.db'))(
      `update contact set created_at = created_at - ${week} where number = 1`,
    )
    const { code, stdout, stderr } = await run(t, cwd, ['--json'])
    assert.deepEqual([code, stderr], [0, ''])
    const { at, timezone, perHour, perDay, deliveries, ...stats } = JSON.parse(stdout) as Record<keyof Stats, unknown>
    const counts = {
      total: 3,
      listed: 3,
      pending: 0,
      unconfirmed: 0,
      held: 0,
      invited: 0,
      redeemed: 0,
      last7Days: 2,
      last30Days: 3,
      sources: [],
    }
    // Midnight may have passed since.
    assert.deepEqual({ ...stats, today: 3 }, { today: 3, reasons: [], ...counts })
    assert.deepEqual(
      [perHour, perDay].map(bars => (bars as unknown[]).length),
      [48, 30],
    )
    assert.match(String(at), /^\d{4}-.*Z$/)
    assert.equal((deliveries as unknown[]).length, 1)
  })
})
