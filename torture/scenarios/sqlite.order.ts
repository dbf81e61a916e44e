import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { answersEarly, type Edit, syncsNever } from '../build.ts'
import { strace } from '../needs.ts'
import type { Scenario } from '../scenario.ts'
import type { Call } from '../trace.ts'
import { traced } from '../traced.ts'

/** Builds that must be caught, or the check says nothing. */
const broken: Readonly<Record<string, Edit>> = {
  'a build that answers before it commits': answersEarly,
  'a build that runs at synchronous=NORMAL': syncsNever,
}

const SIGNUPS = 5_000
/** Seconds that one signup takes, traced. */
const EACH = 0.004

export const scenario: Scenario = {
  promise: 'No answer leaves before what it acknowledges was written to the log and the log was synced.',
  needs: [strace],
  async run(scene) {
    const signups = Math.min(SIGNUPS, Math.ceil((scene.seconds * 0.5) / EACH))
    const calls = await traced(scene, { signups, end: 'SIGTERM', round: 0 })
    const early = answeredEarly(calls)
    const answers = calls.filter(({ is }) => is === 'answer').length
    const figures = [
      { name: 'answers', value: answers },
      { name: 'syncs', value: calls.filter(({ is }) => is === 'sync').length },
      { name: 'answers before their sync', value: early },
    ]
    const faults = early > 0 ? [`${early} of ${answers} answers left before their sync.`] : []
    for (const [i, [name, edit]] of Object.entries(broken).entries()) {
      rmSync(join(scene.folder, 'data'), { recursive: true })
      const seen = answeredEarly(
        await traced(scene, { signups: 100, end: 'SIGTERM', round: i + 1, entry: scene.changed(edit) }),
      )
      figures.push({ name: `the same of ${name}`, value: seen })
      if (seen === 0) faults.push(`${name} was not caught.`)
    }
    return { figures, broken: faults }
  },
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
