import { spawnSync } from 'node:child_process'
import { noStrace } from '../test/harness/strace.ts'

/** Why a scenario cannot run on this machine, if it cannot. */
export type Need = () => string | false

export const strace: Need = noStrace

export const root: Need = () => process.getuid?.() !== 0 && 'it needs the rights of root'

export const linux: Need = () => process.platform !== 'linux' && 'it needs Linux'

/** A program that is found on the path. */
export const command =
  (name: string): Need =>
  () =>
    spawnSync('which', [name]).status !== 0 && `${name} is not installed`
