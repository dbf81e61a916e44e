import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Plan } from './options.ts'
import { startBare, startService } from './processes.ts'
import { count, type Figure, median, spread } from './report.ts'
import { memoryOf } from './resources.ts'
import { memoryGoals, startGoal } from './scenarios.ts'

/** A million bytes. */
const MB = 1e6

/** Seconds after which a started process is at rest. */
const SETTLE = 3

export function memoryFigure(name: string, goal: number, ours: number, bare: number): Figure {
  const text = (bytes: number) => `${count(bytes / MB, 1)} MB`
  return { name, value: text(ours), bare: text(bare), goal: `≤ ${goal} MB`, met: ours <= goal * MB }
}

/**
 * How long a start takes: the first, which compiles everything and creates the database, and later ones, which find
 * Node's compile cache.
 */
export async function startFigures(folder: string, { starts, progress }: Plan): Promise<Figure[]> {
  progress('starts')
  const start = () => startService(folder, { DATABASE_URL: `sqlite:${join(folder, 'start.db')}` })
  const first = await start()
  await first.stop()

  const later: number[] = []
  const bare: number[] = []
  for (let i = 0; i < starts; i++) {
    const service = await start()
    later.push(service.startTime)
    await service.stop()
    const server = await startBare(folder)
    bare.push(server.startTime)
    await server.stop()
  }
  return [
    {
      name: 'start, until it listens',
      value: `${spread(later)} ms`,
      bare: `${spread(bare)} ms`,
      goal: `≤ ${startGoal} ms`,
      met: median(later) <= startGoal,
    },
    { name: 'the same, first start of all', value: `${count(first.startTime)} ms` },
  ]
}

export async function restFigure(folder: string, { progress }: Plan): Promise<Figure> {
  progress('memory at rest')
  const start = () => startService(folder, { DATABASE_URL: `sqlite:${join(folder, 'rest.db')}` })
  // The first start fills the compile cache, which takes memory.
  await (await start()).stop()
  const [service, bare] = [await start(), await startBare(folder)]
  await sleep(SETTLE * 1000)
  const [ours, theirs] = [memoryOf(service.pid).now, memoryOf(bare.pid).now]
  await service.stop()
  await bare.stop()
  return memoryFigure('resident memory at rest', memoryGoals.atRest, ours, theirs)
}
