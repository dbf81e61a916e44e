import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** A folder of this test's own, gone when it ends. */
export function temporaryFolder(test: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'waitlist-test-'))
  test.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** In memory, where the system has files there: that commits are synced is shown elsewhere. */
export function quickFolder(t: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'waitlist-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Why no disk can be filled here. */
export const noSmallDisk =
  (process.platform !== 'linux' || process.getuid?.() !== 0) && 'only root of Linux can mount a small disk'

/** A file system in memory, of so many bytes, that can be filled. */
export function smallDisk(t: Pick<TestContext, 'after'>, size: number) {
  const folder = mkdtempSync(join(tmpdir(), 'waitlist-test-'))
  t.after(() => {
    spawnSync('umount', ['--lazy', folder])
    rmdirSync(folder)
  })
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
  if (status !== 0) throw new Error(`no file system can be mounted here: ${stderr}`)
  const ballast = join(folder, 'ballast')
  return {
    folder,
    /** Leaves so many bytes. */
    fill(free: number): void {
      const { bavail, bsize } = statfsSync(folder)
      try {
        writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - free)))
      } catch (error) {
        // The service writes at the same time, so there was less room.
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    },
    empty: (): void => rmSync(ballast),
  }
}
