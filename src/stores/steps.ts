import { setTimeout as wait } from 'node:timers/promises'

/** Milliseconds that one step should take, since it holds locks and the disk, for which signups wait. */
const STEP = 20
/** The rest after a step, as a multiple of the time that it took: signups get four fifths of the time. */
const REST = 4
/** Rows of the first step, and of any. */
const FIRST = 100
const MOST = 5_000

/** Called after each step. `done`: those that were looked at so far; `total`: those that were there when it began. */
export type Progress = (done: number, total: number) => void

/**
 * Changes any number of rows while signups go on: in short steps with rests in between. `step` changes at most so many
 * rows, commits, and returns whether more are left.
 */
export async function inSteps(
  step: (most: number) => boolean | Promise<boolean>,
  { clock = () => performance.now(), rest = wait as (milliseconds: number) => Promise<unknown> } = {},
): Promise<void> {
  for (let most = FIRST; ; ) {
    const began = clock()
    if (!(await step(most))) return
    const took = clock() - began
    await rest(Math.max(STEP, took) * REST)
    // Half as many or twice as many, since one step says little about the next.
    most = Math.round(Math.min(2 * most, Math.max(most / 2, (most * STEP) / took)))
    most = Math.min(MOST, Math.max(1, most))
  }
}
