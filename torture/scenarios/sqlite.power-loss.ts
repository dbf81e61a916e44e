import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { shortLog, syncsNever } from '../build.ts'
import { Disk, losses } from '../disk.ts'
import { strace } from '../needs.ts'
import type { Scenario, Scene } from '../scenario.ts'
import type { Call } from '../trace.ts'
import { traced } from '../traced.ts'

/** Of so many disks, the service itself is started on one. */
const STARTS = 100

/** Milliseconds to write a disk and look at it. */
const LOOK = 8

export const scenario: Scenario = {
  promise:
    'Whenever the power goes and whatever the disk loses of what was not synced, what was acknowledged is there.',
  needs: [strace],
  weight: 2,
  async run(scene) {
    const signups = Math.min(400, Math.ceil(scene.seconds * 3))
    const calls: Call[] = []
    // A new file, one that was closed well, and one whose process was killed; with checkpoints, so that both files change.
    const entry = scene.changed(shortLog)
    for (const [round, end] of (['SIGTERM', 'SIGKILL', 'SIGTERM'] as const).entries()) {
      calls.push(...shifted(await traced(scene, { round, signups, end, entry }), round))
    }
    const tried = new Map<string, number>(losses.map(loss => [loss, 0]))
    let looks = 0
    let starts = 0
    // Every moment in turn, until the time is over: each pass is spread over all of the trace.
    const moments = calls.length * losses.length
    const stride = Math.max(1, Math.ceil(moments / ((scene.seconds * 700) / LOOK)))
    for (let first = 0; first < stride && !scene.isOver(); first++) {
      const disk = new Disk(join(scene.folder, 'data'))
      const acknowledged = new Set<string>()
      for (const [i, call] of calls.entries()) {
        disk.apply(call)
        note(acknowledged, call)
        for (const [j, loss] of losses.entries()) {
          if ((i * losses.length + j) % stride !== first || scene.isOver(1.5)) continue
          tried.set(loss, tried.get(loss)! + 1)
          const folder = put(scene, disk.after(loss, scene.random))
          const where = `call ${i} of ${calls.length}, ${loss}`
          const asService = looks++ % STARTS === 0
          if (asService) {
            starts++
            const program = await scene.service({ DATABASE_URL: `sqlite:${join(folder, 'waitlist.db')}` })
            await program.end('SIGTERM')
          }
          requireAll(folder, acknowledged, where)
        }
      }
    }
    const caught = await isCaught(scene)
    return {
      broken: caught ? [] : ['A build that runs at synchronous=NORMAL was not caught.'],
      figures: [
        { name: 'system calls replayed', value: calls.length },
        { name: 'syncs of the database itself', value: calls.filter(isCheckpoint).length },
        { name: 'disks looked at', value: looks },
        { name: 'part of all moments and losses', value: (looks / moments) * 100, unit: '%' },
        ...[...tried].map(([name, value]) => ({ name: `of them, ${name}`, value })),
        { name: 'starts of the service on such a disk', value: starts },
        { name: 'acknowledged signups', value: scene.ledger.acknowledged },
      ],
    }
  },
}

/** Whether a build is caught that loses what it acknowledged; or the rest says nothing. */
async function isCaught(scene: Scene): Promise<boolean> {
  const data = join(scene.folder, 'data')
  rmSync(data, { recursive: true })
  const calls = await traced(scene, { round: 3, signups: 50, end: 'SIGKILL', entry: scene.changed(syncsNever) })
  const disk = new Disk(data)
  const acknowledged = new Set<string>()
  for (const call of calls) {
    disk.apply(call)
    note(acknowledged, call)
  }
  try {
    requireAll(put(scene, disk.after('all lost', scene.random)), acknowledged, 'at the end')
    return false
  } catch {
    return true
  }
}

function note(acknowledged: Set<string>, call: Call): void {
  if (call.is === 'answer' && call.status === 200 && call.email !== undefined) acknowledged.add(call.email)
}

const isCheckpoint = (call: Call) => call.is === 'sync' && call.file.endsWith('.db')

/** Positions count the lines of one trace: those of a later one come later. */
const shifted = (calls: readonly Call[], round: number): readonly Call[] =>
  calls.map(call => {
    if ('began' in call) return { ...call, began: call.began + round * 1e9 }
    return 'ended' in call ? { ...call, ended: call.ended + round * 1e9 } : call
  })

function put({ folder }: Scene, files: ReadonlyMap<string, Buffer>): string {
  const place = join(folder, 'left')
  rmSync(place, { recursive: true, force: true })
  mkdirSync(place)
  for (const [name, bytes] of files) {
    // The index of the log is in memory; it is made anew.
    if (!name.endsWith('-shm') && !name.endsWith('-lock')) writeFileSync(join(place, basename(name)), bytes)
  }
  return place
}

function requireAll(folder: string, acknowledged: ReadonlySet<string>, where: string): void {
  const database = new DatabaseSync(join(folder, 'waitlist.db'))
  try {
    assert.equal(database.prepare('pragma integrity_check').get()?.integrity_check, 'ok', where)
    const isMade = database.prepare("select 1 from sqlite_schema where name = 'contact'").get() !== undefined
    const rows = isMade ? database.prepare('select email_key, event_at from contact').all() : []
    const stored = new Map(rows.map(({ email_key, event_at }) => [email_key as string, event_at]))
    assert.deepEqual(
      [...acknowledged].filter(email => !stored.has(email)),
      [],
      `lost: ${where}`,
    )
    assert.equal(stored.size, rows.length, `doubled: ${where}`)
    assert.ok(
      [...stored.values()].every(at => at !== null),
      `without its event: ${where}`,
    )
  } finally {
    database.close()
  }
}
