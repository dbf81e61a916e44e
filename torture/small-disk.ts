import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scene } from './scenario.ts'

/** A file system in memory that can be filled, mounted in the scene's folder. */
export interface SmallDisk {
  readonly folder: string
  /** Leaves so many bytes. */
  fill(free: number): void
  /** Gives back what was filled. */
  empty(): void
}

/** `size`: bytes. Needs the rights of root. */
export function smallDisk(scene: Pick<Scene, 'folder' | 'after'>, size: number): SmallDisk {
  const folder = join(scene.folder, 'disk')
  mkdirSync(folder)
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
  if (status !== 0) throw new Error(`no file system can be mounted here: ${stderr}`)
  scene.after(() => void spawnSync('umount', ['--lazy', folder]))
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill(free) {
      const { bavail, bsize } = statfsSync(folder)
      try {
        writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - free)))
      } catch (error) {
        // Others write meanwhile, so there was less room.
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    },
    empty: () => rmSync(ballast),
  }
}
