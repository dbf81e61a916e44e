/** Who was acknowledged is on the disk: the order of writes, syncs, answers and attempts, and what is left after a power loss. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { isSlow, noStrace, skipSlow } from '../harness/environment.ts'
import { broken, changedCopy, shortLog, slowDisk } from './builds.ts'
import { Disk, losses } from './disk.ts'
import { type Fixture, openFixture } from './fixture.ts'
import { assertPromised, type Call, Promised, runTraced, writeDisk } from './trace.ts'

const skip = noStrace()
const skipLong = skip || skipSlow
/** Disks that are looked at, and of so many one on which the service itself is started. */
const DISKS = 3_000
const START_EVERY = 300

test('no answer leaves, and no attempt begins, before a sync that began after the commit it rests on', {
  skip,
}, async t => {
  const fixture = openFixture(t)
  const calls = await runTraced(fixture, { signups: isSlow ? 1_000 : 200 })
  const count = (is: Call['is']) => calls.filter(call => call.is === is).length
  t.diagnostic(`${count('answer')} answers, ${count('send')} attempts, ${count('sync')} syncs`)
  assert.ok(count('answer') > 200 && count('send') > 100)
  assert.equal(earlyAnswers(calls), 0)
  assert.equal(brokenPromises(fixture, calls, 'send'), 0)
})

test('whenever the power fails, and whatever the disk loses of what was not synced, every promise is kept', {
  skip: skipLong,
}, async t => {
  const fixture = openFixture(t)
  const entry = changedCopy(t, shortLog)
  const calls: Call[] = []
  // A new file, one that was closed, and one whose process was killed; checkpoints change the database itself, too.
  for (const [round, end] of (['SIGTERM', 'SIGKILL', 'SIGTERM'] as const).entries()) {
    const more = await runTraced(fixture, { round, signups: 100, end, entry, provider: round === 0 })
    calls.push(...shifted(more, round))
  }
  assert.ok(calls.some(({ is, file }: { is: string; file?: string }) => is === 'sync' && file?.endsWith('.db')))
  const disk = new Disk(join(fixture.folder, 'data'))
  const promised = new Promised()
  const every = Math.ceil(calls.length / DISKS)
  let looks = 0
  for (const [i, call] of calls.entries()) {
    disk.apply(call)
    promised.note(call)
    if (i % every !== 0) continue
    const loss = losses[looks % losses.length]!
    const where = `after call ${i} of ${calls.length}, ${loss}`
    const path = writeDisk(fixture, disk.after(loss, fixture.random))
    if (looks++ % START_EVERY === 0) {
      const program = await fixture.start({ DATABASE_URL: `sqlite:${path}` })
      assert.equal(await program.end('SIGTERM'), 0, where)
    }
    assertPromised(path, promised, where)
  }
  t.diagnostic(`${looks} disks of ${calls.length} calls`)
})

test('the builds of these tests can still be made', t => {
  for (const edits of [...Object.values(broken), shortLog, slowDisk]) changedCopy(t, edits)
})

for (const [what, edits] of Object.entries(broken)) {
  test(`a build that ${what} is caught by both`, { skip: skipLong }, async t => {
    const fixture = openFixture(t)
    const calls = await runTraced(fixture, { signups: 100, end: 'SIGKILL', entry: changedCopy(t, edits) })
    const isAttempt = what.startsWith('attempts')
    if (!isAttempt) assert.ok(earlyAnswers(calls) > 0)
    assert.ok(brokenPromises(fixture, calls, isAttempt ? 'send' : 'answer') > 0)
  })
}

/** How many visitors were acknowledged before the bytes with their address were synced. */
function earlyAnswers(calls: readonly Call[]): number {
  const synced = new Set<string>()
  let written: Extract<Call, { is: 'write' }>[] = []
  let early = 0
  for (const call of calls) {
    if (call.is === 'write') written.push(call)
    if (call.is === 'sync') {
      const isCovered = ({ file, ended }: (typeof written)[number]) => file === call.file && ended < call.began
      for (const { bytes } of written.filter(isCovered)) {
        for (const [email] of bytes.toString('latin1').matchAll(/(?:own|shared)-[\d-]+@quixote\.example/g)) {
          synced.add(email)
        }
      }
      written = written.filter(write => !isCovered(write))
    }
    if (call.is === 'answer' && call.status === 200 && call.email !== undefined && !synced.has(call.email)) early++
  }
  return early
}

/** How often a promise would be broken if the power failed right after such a call, of which some 200 are looked at. */
function brokenPromises(fixture: Fixture, calls: readonly Call[], after: 'answer' | 'send'): number {
  const disk = new Disk(join(fixture.folder, 'data'))
  const promised = new Promised()
  const every = Math.ceil(calls.filter(({ is }) => is === after).length / 200)
  let count = 0
  let lost = 0
  for (const call of calls) {
    disk.apply(call)
    promised.note(call)
    if (call.is !== after || count++ % every !== 0) continue
    try {
      assertPromised(writeDisk(fixture, disk.after('all lost', fixture.random)), promised, 'after it')
    } catch {
      lost++
    }
  }
  return lost
}

/** Positions count the lines of one trace; those of a later one come later. */
const shifted = (calls: readonly Call[], round: number): readonly Call[] =>
  calls.map(call => {
    if ('began' in call) return { ...call, began: call.began + round * 1e9 }
    return 'ended' in call ? { ...call, ended: call.ended + round * 1e9 } : call
  })
