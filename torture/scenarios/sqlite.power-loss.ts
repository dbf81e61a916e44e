import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { answersKnownAtOnce, answersUnsynced, attemptsUnsynced, type Build, shortLog } from '../build.ts'
import { Disk, losses } from '../disk.ts'
import { strace } from '../needs.ts'
import { note, nothingPromised, put, requireKept } from '../promised.ts'
import type { Figure, Scenario, Scene } from '../scenario.ts'
import type { Call } from '../trace.ts'
import { traced } from '../traced.ts'

/** Of so many disks, the service itself is started on one. */
const STARTS = 100

/** Milliseconds to write a disk and look at it. */
const LOOK = 8

export const scenario: Scenario = {
  promise:
    'Whenever the power goes and whatever the disk loses of what was not synced, what was acknowledged is there, and what was attempted is known.',
  needs: [strace],
  weight: 2,
  async run(scene) {
    const signups = Math.min(400, Math.ceil(scene.seconds * 3))
    const calls: Call[] = []
    // A new file, one that was closed well, and one whose process was killed; with checkpoints, so that both files change.
    for (const [round, end] of (['SIGTERM', 'SIGKILL', 'SIGTERM'] as const).entries()) {
      calls.push(
        ...shifted(await traced(scene, { round, signups, end, build: shortLog, provider: round === 0 }), round),
      )
    }
    const tried = new Map<string, number>(losses.map(loss => [loss, 0]))
    let looks = 0
    let starts = 0
    // Every moment in turn, until the time is over: each pass is spread over all of the trace.
    const moments = calls.length * losses.length
    const least = Math.max(1, Math.ceil(moments / ((scene.seconds * 700) / LOOK)))
    // Each pass has every loss in it.
    const stride = least % losses.length === 0 ? least + 1 : least
    for (let first = 0; first < stride && !scene.isOver(); first++) {
      const disk = new Disk(join(scene.folder, 'data'))
      const promised = nothingPromised()
      for (const [i, call] of calls.entries()) {
        disk.apply(call)
        note(promised, call)
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
          requireKept(folder, promised, where)
        }
      }
    }
    const figures: Figure[] = []
    const faults: string[] = []
    for (const [i, [name, build]] of Object.entries(broken).entries()) {
      const value = await timesCaught(scene, build, i + 3)
      figures.push({ name: `${name}: times caught`, value })
      if (value === 0) faults.push(`${name} was not caught.`)
    }
    return {
      broken: faults,
      figures: [
        { name: 'system calls replayed', value: calls.length },
        { name: 'syncs of the database itself', value: calls.filter(isCheckpoint).length },
        { name: 'disks looked at', value: looks },
        { name: 'part of all moments and losses', value: (looks / moments) * 100, unit: '%' },
        ...[...tried].map(([name, value]) => ({ name: `of them, ${name}`, value })),
        { name: 'starts of the service on such a disk', value: starts },
        { name: 'acknowledged signups', value: scene.ledger.acknowledged },
        { name: 'attempts', value: calls.filter(({ is }) => is === 'send').length },
        ...figures,
      ],
    }
  },
}

/** Builds that must be caught, or the rest says nothing. */
const broken: Readonly<Record<string, Build>> = {
  'A build that answers before the sync': answersUnsynced,
  'A build that answers a known address before the sync of its contact': answersKnownAtOnce,
  'A build that attempts a delivery before the sync of its claim': attemptsUnsynced,
}

/** How many times such a build has lost what it promised, if the power had gone right then and there. */
async function timesCaught(scene: Scene, build: Build, round: number): Promise<number> {
  const data = join(scene.folder, 'data')
  rmSync(data, { recursive: true })
  const disk = new Disk(data)
  const promised = nothingPromised()
  let caught = 0
  for (const call of await traced(scene, { round, signups: 100, end: 'SIGKILL', build, provider: false })) {
    disk.apply(call)
    note(promised, call)
    if (call.is !== 'answer' && call.is !== 'send') continue
    try {
      requireKept(put(scene, disk.after('all lost', scene.random)), promised, 'then')
    } catch {
      caught++
    }
  }
  return caught
}

const isCheckpoint = (call: Call) => call.is === 'sync' && call.file.endsWith('.db')

/** Positions count the lines of one trace: those of a later one come later. */
const shifted = (calls: readonly Call[], round: number): readonly Call[] =>
  calls.map(call => {
    if ('began' in call) return { ...call, began: call.began + round * 1e9 }
    return 'ended' in call ? { ...call, ended: call.ended + round * 1e9 } : call
  })
