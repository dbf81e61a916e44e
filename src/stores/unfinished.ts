import { existsSync, readdirSync, rmSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { OperatorError } from '../waitlist/ports/log.ts'

/** Copies of personal data are written beside their target, which appears only when they are complete. */

/** The name that a file has until it is complete, with the id of the process that makes it. */
export const unfinishedName = (target: string, what: 'backup' | 'export'): string =>
  `${target}.unfinished-${what}-${process.pid}`

/**
 * Removes what killed commands have left in a folder: personal data that nobody would look for. Two containers that make
 * copies in one folder at the same time do not see each other's process, and one of the copies fails.
 */
export function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, pid] = /.\.unfinished-(?:backup|export)-(\d+)(?:-journal)?$/.exec(name) ?? []
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true })
  }
}

/** If it is our own id, as often in a container, the process that left the file was there before us. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * Writes texts to a new file, which only this user can read. It appears when it is complete and synced.
 *
 * @throws {OperatorError} when there is a file of that name or it cannot be written; nothing is left of it then.
 */
export async function writeWhole(
  target: string,
  texts: AsyncIterable<string>,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  if (existsSync(target)) throw new OperatorError(`${target} exists already. An export never overwrites a file.`)
  const unfinished = unfinishedName(target, 'export')
  const folder = dirname(resolve(target))
  try {
    removeLeftovers(folder)
    const file = await open(unfinished, 'wx', 0o600)
    await pipeline(texts, file.createWriteStream({ flush: true }), { signal })
    await rename(unfinished, target)
    const names = await open(folder)
    await names.sync().finally(() => names.close())
  } catch (error) {
    if (error instanceof OperatorError || signal.aborted) throw error
    throw new OperatorError(`${target} cannot be written: ${(error as Error).message}`)
  } finally {
    await rm(unfinished, { force: true })
  }
}
