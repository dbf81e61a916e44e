import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'

/** Whether each test runs at full length, as in `.ci/run`. */
export const isSlow = process.env.WAITLIST_SLOW_TESTS !== undefined
/** Why a test that takes long is skipped. */
export const skipSlow = !isSlow && 'it runs in .ci/run'

/** Why system calls cannot be watched or made to fail on this machine. */
export function noStrace(): string | false {
  const { error, status, stderr } = spawnSync('strace', ['-f', '-e', 'trace=fsync', process.execPath, '-e', ''])
  if (error !== undefined) return 'strace is not installed'
  return status === 0 ? false : `strace is not permitted: ${stderr.toString().slice(0, 100)}`
}

/** A seed for what a test leaves to chance. It is printed with the outcome; SEED sets it, to see the same again. */
export function seedOf(t: Pick<TestContext, 'diagnostic'>): number {
  const { SEED } = process.env
  const seed = SEED === undefined ? randomInt(2 ** 32) : Number(SEED)
  t.diagnostic(`seed ${seed} (SEED=${seed} chooses the same again)`)
  return seed
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
