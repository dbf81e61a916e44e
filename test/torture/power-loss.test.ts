import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { isSlow, noStrace } from '../harness/environment.ts'
import { broken, changedCopy, shortLog } from './builds.ts'
import { Disk, losses } from './disk.ts'
import { openScene } from './scene.ts'
import type { Call } from './trace.ts'
import { assertPromised, Promised, traced, writeDisk } from './traced.ts'

const skip = noStrace() || (!isSlow && 'it takes half a minute; it runs in .ci/run')
/** Disks that are looked at, and of so many one on which the service itself is started. */
const DISKS = 3_000
const START_EVERY = 300

test('whenever the power goes, and whatever the disk loses of what was not synced, every promise is kept', {
  skip,
}, async t => {
  const scene = openScene(t)
  const entry = changedCopy(t, shortLog)
  const calls: Call[] = []
  // A new file, one that was closed, and one whose process was killed; checkpoints change the database itself, too.
  for (const [round, end] of (['SIGTERM', 'SIGKILL', 'SIGTERM'] as const).entries()) {
    const more = await traced(scene, { round, signups: 100, end, entry, provider: round === 0 })
    calls.push(...shifted(more, round))
  }
  assert.ok(calls.some(({ is, file }: { is: string; file?: string }) => is === 'sync' && file?.endsWith('.db')))
  const disk = new Disk(join(scene.folder, 'data'))
  const promised = new Promised()
  const moments = calls.length * losses.length
  // Not a multiple of the losses, so that each has its turn.
  const stride = [0, 1].map(more => Math.ceil(moments / DISKS) + more).find(stride => stride % losses.length !== 0)!
  let looks = 0
  for (const [i, call] of calls.entries()) {
    disk.apply(call)
    promised.note(call)
    for (const [j, loss] of losses.entries()) {
      if ((i * losses.length + j) % stride !== 0) continue
      const where = `after call ${i} of ${calls.length}, ${loss}`
      const path = writeDisk(scene, disk.after(loss, scene.random))
      if (looks++ % START_EVERY === 0) {
        const program = await scene.start({ DATABASE_URL: `sqlite:${path}` })
        assert.equal(await program.end('SIGTERM'), 0, where)
      }
      assertPromised(path, promised, where)
    }
  }
  t.diagnostic(`${looks} disks of ${calls.length} calls`)
})

for (const [what, edits] of Object.entries(broken)) {
  test(`a build that ${what} loses what it promised when the power goes`, { skip }, async t => {
    const scene = openScene(t)
    const entry = changedCopy(t, edits)
    const disk = new Disk(join(scene.folder, 'data'))
    const promised = new Promised()
    let lost = 0
    for (const call of await traced(scene, { round: 0, signups: 100, end: 'SIGKILL', entry, provider: false })) {
      disk.apply(call)
      promised.note(call)
      if (call.is !== 'answer' && call.is !== 'send') continue
      try {
        assertPromised(writeDisk(scene, disk.after('all lost', scene.random)), promised, 'then')
      } catch {
        lost++
      }
    }
    assert.ok(lost > 0)
  })
}

/** Positions count the lines of one trace; those of a later one come later. */
const shifted = (calls: readonly Call[], round: number): readonly Call[] =>
  calls.map(call => {
    if ('began' in call) return { ...call, began: call.began + round * 1e9 }
    return 'ended' in call ? { ...call, ended: call.ended + round * 1e9 } : call
  })
