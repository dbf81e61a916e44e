import { open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Program } from './program.ts'

/** Milliseconds that orchestrators wait before they kill. */
const PATIENCE = 10_000
/** Milliseconds between two looks. Each counts for at most four times as much. */
const LOOK = 50

/**
 * The exit code of a program that was told to stop, or "late". Time in which the machine stands still is not the
 * program's: what counts is that in which timers are heard and writes are synced here.
 */
export async function exitInTime({ exited }: Pick<Program, 'exited'>): Promise<number | null | 'late'> {
  const path = join(tmpdir(), `waitlist-test-synced-${process.pid}-${performance.now()}`)
  const file = await open(path, 'wx')
  let code: number | null | 'running' = 'running'
  const over = exited.then(ended => {
    code = ended
  })
  try {
    for (let passed = 0; code === 'running' && passed < PATIENCE; ) {
      const since = performance.now()
      await file.write('.')
      await file.datasync()
      await Promise.race([over, wait(LOOK)])
      passed += Math.min(performance.now() - since, 4 * LOOK)
    }
    return code === 'running' ? 'late' : code
  } finally {
    await file.close()
    await rm(path)
  }
}
