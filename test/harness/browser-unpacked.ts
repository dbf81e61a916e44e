import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { endedWithUs } from './ended-with-us.ts'

/** Where `npm test` keeps what the first of its files unpacks, for those that come later. */
const SHARED = 'WAITLIST_TEST_CHROMIUM'

/** For all processes that this one starts, and until it ends. */
export function shareUnpacked(): void {
  process.env[SHARED] = endedWithUs('chromium', () => {}).folder
}

/**
 * The folder into which this was unpacked: once for all files, or in the folder of this one. Whoever comes before that
 * is done unpacks it too; since it gets its name at the end, it is complete.
 */
export async function unpacked(own: string, name: string, unpack: () => Promise<unknown>): Promise<string> {
  const done = join(process.env[SHARED] ?? own, name)
  if (existsSync(done)) return done
  const folder = mkdtempSync(`${done}-`)
  await inFolder(folder, unpack)
  try {
    renameSync(folder, done)
  } catch (error) {
    if (!existsSync(done)) throw error
    rmSync(folder, { recursive: true })
  }
  return done
}

/** Works with another folder for what is temporary. */
export async function inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const { TMPDIR } = process.env
  process.env.TMPDIR = folder
  try {
    return await work()
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
}
