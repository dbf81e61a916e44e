import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { OperatorError } from '../config/operator.ts'

/**
 * Lets `write` make a file beside its target, which appears only when it is complete and synced; copies of personal data are
 * readable by this user alone, and nothing is left of one that fails.
 *
 * @throws {OperatorError} when there is a file of that name, or it cannot be written.
 */
export async function writeAtomically<T>(target: string, write: (unfinished: string) => Promise<T>): Promise<T> {
  if (existsSync(target)) throw new OperatorError(`${target} exists already, and is never overwritten.`)
  const unfinished = `${target}.unfinished`
  try {
    // Replaces what a killed command has left.
    await (await open(unfinished, 'w', 0o600)).close()
    const result = await write(unfinished)
    await syncFile(unfinished)
    await rename(unfinished, target)
    await syncFile(dirname(target))
    return result
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${target} cannot be written: ${(error as Error).message}`)
  } finally {
    await rm(unfinished, { force: true })
  }
}

async function syncFile(path: string): Promise<void> {
  await using file = await open(path)
  await file.sync()
}
