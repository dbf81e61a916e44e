import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'

/** A seed for what a test leaves to chance. It is printed with the outcome; SEED sets it, to see the same again. */
export function seedOf(t: Pick<TestContext, 'diagnostic'>): number {
  const { SEED } = process.env
  const seed = SEED === undefined ? randomInt(2 ** 32) : Number(SEED)
  t.diagnostic(`seed ${seed} (SEED=${seed} chooses the same again)`)
  return seed
}
