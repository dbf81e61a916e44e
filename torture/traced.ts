import { join } from 'node:path'
import { load } from '../test/harness/load.ts'
import type { Scene } from './scenario.ts'
import { type Call, readTrace, tracedTo } from './trace.ts'

const CLIENTS = 8

export interface Traced {
  /** Of the service, where it is a changed copy. */
  readonly entry?: string | undefined
  /** Signups that are acknowledged before it is stopped. */
  readonly signups: number
  readonly end: 'SIGTERM' | 'SIGKILL'
  /** Makes addresses of its own. */
  readonly round: number
}

/** Runs the service under load and tells what it did to its files and when it answered. */
export async function traced(scene: Scene, { entry, signups, end, round }: Traced): Promise<readonly Call[]> {
  const { ledger, folder } = scene
  const file = join(folder, `trace-${round}`)
  const program = await scene.service({}, { through: tracedTo(file), ...(entry && { entry }) })
  const before = ledger.acknowledged
  await load({
    ledger,
    clients: CLIENTS,
    round,
    to: () => program.baseUrl,
    goesOn: answer => answer?.status === 200 && ledger.acknowledged < before + signups,
  })
  await program.end(end)
  return readTrace(file, join(folder, 'data'))
}
