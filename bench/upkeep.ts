import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Server, startBare, startService } from './processes.ts'
import { type Figure, median } from './report.ts'
import { resourcesOf } from './resources.ts'
import { memoryGoals, startUpGoal } from './scenarios.ts'

/** A million bytes. */
const MB = 1e6

/**
 * How long a start takes: the first of all, which has to translate and compile everything and to create the database,
 * and later ones, which find Node's compile cache. The cache is kept in a folder of this run.
 */
export async function startUpFigures(folder: string, settings: Settings, starts: number): Promise<Figure[]> {
  const start = () => startService(folder, { ...settings, DATABASE_URL: `sqlite:${join(folder, 'start.db')}` })
  const firstService = await start()
  const first = firstService.startUp
  // The cache is written when the process ends by itself.
  await firstService.stop('SIGTERM')

  const later: number[] = []
  const bare: number[] = []
  for (let i = 0; i < starts; i++) {
    const service = await start()
    later.push(service.startUp)
    await service.stop('SIGTERM')
    const server = await startBare(settings.TMPDIR)
    bare.push(server.startUp)
    await server.stop('SIGTERM')
  }
  const text = (values: readonly number[]) =>
    `${median(values).toFixed(0)} ms (${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)})`
  return [
    {
      name: 'process start until it listens',
      value: text(later),
      bare: text(bare),
      goal: `≤ ${startUpGoal} ms`,
      met: median(later) <= startUpGoal,
    },
    { name: 'the same, first start of all', value: `${first.toFixed(0)} ms`, bare: '' },
  ]
}

export interface Settings extends Readonly<Record<string, string>> {
  readonly TMPDIR: string
}

/** A temporary folder for the services alone, so that Node's compile cache begins empty and is left nowhere. */
export function ownTemporaryFolder(folder: string): Settings {
  const own = join(folder, 'tmp')
  mkdirSync(own)
  return { TMPDIR: own }
}

export const megabytes = (bytes: number | undefined) => (bytes === undefined ? '–' : `${(bytes / MB).toFixed(1)} MB`)

export async function memoryAtRest(service: Server, bare: Server, settle: number): Promise<Figure> {
  await sleep(settle * 1000)
  return memory('resident memory at rest', memoryGoals.idle, ({ memory }) => memory, service, bare)
}

export function memoryAfterwards(service: Server, bare: Server): Figure[] {
  return [
    memory('resident memory after the run', memoryGoals.after, ({ memory }) => memory, service, bare),
    memory('peak of resident memory', memoryGoals.after, ({ peakMemory }) => peakMemory, service, bare),
  ]
}

function memory(
  name: string,
  goal: number,
  figure: (resources: { memory: number; peakMemory: number }) => number,
  service: Server,
  bare: Server,
): Figure {
  const [ours, theirs] = [service, bare].map(({ pid }) => {
    const resources = resourcesOf(pid)
    return resources && figure(resources)
  })
  const judged = ours === undefined ? {} : { met: ours <= goal * MB }
  return { name, value: megabytes(ours), bare: megabytes(theirs), goal: `≤ ${goal} MB`, ...judged }
}
