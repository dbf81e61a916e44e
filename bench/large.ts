import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fill } from './fill.ts'
import { measure } from './measure.ts'
import { type Generator, type Server, startService } from './processes.ts'
import type { Round } from './report.ts'
import { knownSignup, newSignup, openLimiter } from './scenarios.ts'
import type { Settings } from './upkeep.ts'

const FEW = 1_000

export interface Surroundings {
  readonly folder: string
  readonly settings: Settings
  readonly generator: Generator
  readonly connections: number
  progress(text: string): void
}

export interface Plan {
  readonly rounds: number
  readonly seconds: number
  readonly warmUp: number
  readonly contacts: number
  readonly patience: number
}

/**
 * A new signup with many contacts in the file, against the same with few. Both services are started anew in each round,
 * the one with few on a fresh copy, since a run adds more contacts than were in it. They warm up with a known address,
 * which adds none.
 */
export async function compareFileSizes(
  { folder, settings, generator, connections, progress }: Surroundings,
  { contacts, patience, rounds, seconds, warmUp }: Plan,
): Promise<{ readonly contacts: number; readonly rounds: readonly Round[] }> {
  const large = join(folder, 'large.db')
  const small = join(folder, 'small.db')
  progress('filling a large file')
  fill(small, FEW, patience)
  const filled = fill(large, contacts, patience)
  const measured: Round[] = []

  for (let round = 1; round <= rounds; round++) {
    progress(`file sizes, round ${round} of ${rounds}`)
    const copy = join(folder, `small-${round}.db`)
    copyFileSync(small, copy)
    const few = await startService(folder, { ...settings, ...openLimiter, DATABASE_URL: `sqlite:${copy}` })
    const many = await startService(folder, { ...settings, ...openLimiter, DATABASE_URL: `sqlite:${large}` })
    if (warmUp > 0) for (const server of [few, many]) await sample(server, knownSignup, warmUp)

    const fewFirst = round % 2 === 0
    const before = fewFirst ? await sample(few, newSignup, seconds) : undefined
    const subject = await sample(many, newSignup, seconds)
    const baseline = before ?? (await sample(few, newSignup, seconds))
    measured.push({ subject, baseline })
    await few.stop('SIGTERM')
    await many.stop('SIGTERM')
    rmSync(copy)
  }
  return { contacts: filled, rounds: measured }

  function sample(server: Server, request: typeof newSignup, seconds: number) {
    return measure(generator, server, { request, status: 200, connections, seconds })
  }
}
