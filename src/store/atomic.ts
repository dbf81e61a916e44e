import { existsSync, readdirSync, rmSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { OperatorError } from '../config/operator.ts'

/**
 * Lets `write` make a file beside its target, which appears only when it is complete and synced; copies of personal data are
 * readable by this user alone, and nothing is left of one that fails.
 *
 * @throws {OperatorError} when there is a file of that name, or it cannot be written.
 */
export async function writeAtomically<T>(target: string, write: (unfinished: string) => Promise<T>): Promise<T> {
  if (existsSync(target)) throw new OperatorError(`${target} exists already, and is never overwritten.`)
  const folder = dirname(resolve(target))
  const unfinished = `${target}.unfinished-${process.pid}`
  try {
    removeLeftovers(folder)
    await (await open(unfinished, 'wx', 0o600)).close()
    const result = await write(unfinished)
    await syncFile(unfinished)
    await rename(unfinished, target)
    await syncFile(folder)
    return result
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${target} cannot be written: ${(error as Error).message}`)
  } finally {
    await rm(unfinished, { force: true })
  }
}

/** Removes what killed commands have left: personal data that nobody would look for. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = Number(/.\.unfinished-(\d+)(?:-journal)?$/.exec(name)?.[1] ?? 0)
    if (pid > 0 && (pid === process.pid || !isRunning(pid))) rmSync(resolve(folder, name), { force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

async function syncFile(path: string): Promise<void> {
  await using file = await open(path)
  await file.sync()
}
