import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { answersKnownAtOnce, answersUnsynced, attemptsUnsynced, type Build } from '../build.ts'
import { Disk } from '../disk.ts'
import { strace } from '../needs.ts'
import { note, nothingPromised, put, requireKept } from '../promised.ts'
import type { Scenario, Scene } from '../scenario.ts'
import type { Call } from '../trace.ts'
import { traced } from '../traced.ts'

/** Builds that must be caught, or the check says nothing. */
const broken: Readonly<Record<string, Build>> = {
  'a build that answers before the sync': answersUnsynced,
  'a build that answers a known address before the sync of its contact': answersKnownAtOnce,
  'a build that attempts a delivery before the sync of its claim': attemptsUnsynced,
}

const SIGNUPS = 5_000
/** Seconds that one signup takes, traced. */
const EACH = 0.004

export const scenario: Scenario = {
  promise:
    'No answer leaves, and no attempt begins, before what it rests on was written to the log and the log was synced.',
  needs: [strace],
  async run(scene) {
    const signups = Math.min(SIGNUPS, Math.ceil((scene.seconds * 0.5) / EACH))
    const calls = await traced(scene, { signups, end: 'SIGTERM', round: 0, provider: false })
    const count = (is: Call['is']) => calls.filter(call => call.is === is).length
    const early = answeredEarly(calls)
    const unclaimed = attemptedEarly(scene, calls)
    const figures = [
      { name: 'answers', value: count('answer') },
      { name: 'attempts', value: count('send') },
      { name: 'syncs', value: count('sync') },
      { name: 'answers before their sync', value: early },
      { name: 'attempts before their sync', value: unclaimed },
    ]
    const faults = early + unclaimed > 0 ? [`${early} answers and ${unclaimed} attempts came before their sync.`] : []
    for (const [i, [name, build]] of Object.entries(broken).entries()) {
      rmSync(join(scene.folder, 'data'), { recursive: true })
      const calls = await traced(scene, { signups: 100, end: 'SIGTERM', round: i + 1, build, provider: false })
      const seen = build === attemptsUnsynced ? attemptedEarly(scene, calls) : answeredEarly(calls)
      figures.push({ name: `the same of ${name}`, value: seen })
      if (seen === 0) faults.push(`${name} was not caught.`)
    }
    return { figures, broken: faults }
  },
}

/** Attempts that are looked at. */
const LOOKS = 300

/** How many attempts began when the claim was not in what had been synced. */
function attemptedEarly(scene: Scene, calls: readonly Call[]): number {
  const disk = new Disk(join(scene.folder, 'data'))
  const every = Math.ceil(calls.filter(({ is }) => is === 'send').length / LOOKS)
  let attempts = 0
  let early = 0
  for (const call of calls) {
    disk.apply(call)
    if (call.is !== 'send' || attempts++ % every !== 0) continue
    const promised = nothingPromised()
    note(promised, call)
    try {
      requireKept(put(scene, disk.after('all lost', scene.random)), promised, 'then')
    } catch {
      early++
    }
  }
  return early
}

/** How many signups were acknowledged when their address was not in what had been synced. */
function answeredEarly(calls: readonly Call[]): number {
  const synced = new Set<string>()
  let written: Extract<Call, { is: 'write' }>[] = []
  let early = 0
  for (const call of calls) {
    if (call.is === 'write') written.push(call)
    if (call.is === 'sync') {
      const isOver = ({ file, ended }: (typeof written)[number]) => file === call.file && ended < call.began
      for (const { bytes } of written.filter(isOver)) {
        for (const [email] of bytes.toString('latin1').matchAll(/(?:own|shared)-[\d-]+@quixote\.example/g)) {
          synced.add(email)
        }
      }
      written = written.filter(write => !isOver(write))
    }
    if (call.is === 'answer' && call.status === 200 && call.email !== undefined && !synced.has(call.email)) early++
  }
  return early
}
