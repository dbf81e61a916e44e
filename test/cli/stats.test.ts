import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { watchOn } from '../../src/cli/stats.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Stats } from '../../src/waitlist/alerts/counts.ts'
import { signup } from '../contracts/store.place.ts'
import { sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runCommand, spawnProgram, until } from '../harness/program.ts'

const run = (t: TestContext, cwd: string, ...args: string[]) => runCommand(t, cwd, ['stats', ...args])

/** A folder with `data/waitlist.db`, where the program looks by default, open in a store, with so many contacts. */
async function withContacts(t: TestContext, count: number): Promise<string> {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', destinations: ['webhook'], minimumFree: 0 })
  t.after(() => store.close())
  await Promise.all(Array.from({ length: count }, (_, i) => store.admit(signup('Ada', `ada${i}@example.com`))))
  return cwd
}

describe('waitlist stats', { concurrency: true, timeout: 60_000 }, () => {
  test('sums up the list beside a running service, for people, without colours off a terminal', async t => {
    const { code, stdout, stderr } = await run(t, await withContacts(t, 1_200))
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^1,200 signed up\n/m)
    assert.match(stdout, /^Signups per hour, the last 48 hours\n/m)
    assert.match(stdout, /^webhook +1,200 +0 +0\n {2}waiting, the oldest for \d+ s\n/m)
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
    const { code, stdout, stderr } = await run(t, cwd, '--json', '--timezone', 'Asia/Kathmandu')
    assert.deepEqual([code, stderr], [0, ''])
    const { at, perMinute, perHour, perDay, deliveries, ...stats } = JSON.parse(stdout) as Record<keyof Stats, unknown>
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
      sourced: 0,
    }
    // Midnight may have passed since.
    assert.deepEqual({ ...stats, today: 3 }, { timezone: 'Asia/Kathmandu', today: 3, ...counts })
    assert.deepEqual(
      [perMinute, perHour, perDay].map(bars => (bars as unknown[]).length),
      [60, 48, 30],
    )
    assert.match(String(at), /^\d{4}-.*Z$/)
    assert.equal((deliveries as unknown[]).length, 1)
  })

  test('says what is wrong: no database, no terminal to draw on', async t => {
    const none = await run(t, temporaryFolder(t))
    assert.equal(none.code, 1)
    assert.match(none.stderr, /^waitlist: There is no database at /)
    const watched = await run(t, await withContacts(t, 1), '--watch')
    assert.deepEqual([watched.code, watched.stdout], [2, ''])
    assert.match(watched.stderr, /^waitlist: --watch draws on a terminal, /)
  })

  test('--watch --json writes a line after the other until Ctrl-C, which is no failure', async t => {
    const program = spawnProgram(t, {}, { cwd: await withContacts(t, 2), args: ['stats', '--watch', '--json'] })
    await until(() => program.stdout().split('\n').length > 2)
    program.process.kill('SIGINT')
    assert.equal(await program.exited, 0)
    assert.equal(program.stderr(), '')
    for (const line of program.stdout().trim().split('\n')) assert.equal((JSON.parse(line) as Stats).total, 2)
  })
})

describe('a watch on a terminal', { concurrency: true, timeout: 60_000 }, () => {
  /** A terminal that notes what is written to it. */
  function terminal() {
    let written = ''
    const made = Object.assign(new EventEmitter(), {
      columns: 80,
      rows: 6,
      write(text: string) {
        written += text
      },
    })
    return { terminal: made, written: () => written, frames: () => written.split('\x1b[H').slice(1) }
  }

  test('draws in place, as much as there is room for, and leaves the screen as it was', async () => {
    const { terminal: on, written, frames } = terminal()
    const stop = new AbortController()
    let reads = 0
    const over = watchOn(on, {
      read: async () => ++reads,
      draw: (read, columns) => Array.from({ length: 40 }, (_, i) => `${read}: line ${i} of ${columns}`),
      stop: stop.signal,
    })
    await until(() => reads > 1 && frames().at(-1)!.startsWith(`${reads}: line 0 of 80`))
    Object.assign(on, { columns: 40, rows: 10 })
    const before = frames().length
    on.emit('resize')
    assert.equal(frames().length, before + 1)
    stop.abort()
    await over
    assert.ok(written().startsWith('\x1b[?1049h\x1b[?25l\x1b[H'))
    assert.ok(written().endsWith('\x1b[?25h\x1b[?1049l'))
    assert.equal(on.listenerCount('resize'), 0)
    assert.ok(
      frames()
        .slice(0, before)
        .every(frame => frame.split('\n').length - 1 === 5),
    )
    assert.match(frames()[0]!, /\n37 more lines in a taller window; counted 0 s ago; Ctrl-C ends/)
    assert.match(frames()[before]!, /line 0 of 40/)
    assert.equal(frames()[before]!.split('\n').length - 1, 9)
  })

  test('keeps the last figures, with their age and the reason, when they cannot be read any more', async () => {
    const { terminal: on, frames } = terminal()
    const stop = new AbortController()
    let reads = 0
    const read = async () => {
      if (++reads > 1) throw new Error('the store is away')
      return 'figures'
    }
    const over = watchOn(on, { read, draw: read => [read], stop: stop.signal })
    await until(() => /^figures.*\n.*\ncounted \d+ s ago, since then: the store is away/.test(frames().at(-1) ?? ''))
    stop.abort()
    await over
  })

  test('does not touch the screen when the figures cannot be read at all', async () => {
    const { terminal: on, written } = terminal()
    const stop = new AbortController()
    const read = () => Promise.reject(new Error('no store'))
    await assert.rejects(watchOn(on, { read, draw: () => [], stop: stop.signal }), /no store/)
    assert.equal(written(), '')
  })
})
