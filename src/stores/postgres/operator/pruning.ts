import type { PruneProgress, Pruning } from '../../operator/pruning.ts'
import { inSteps } from '../../steps.ts'
import type { Postgres } from '../client.ts'
import { pruneStep } from '../pruning.ts'
import { lend } from './open.ts'

export const pruning = (url: string): Pruning => ({
  prune: (before, progress) => lend(url, database => prune(database, before, progress)),
})

async function prune({ run }: Postgres, before: Date, progress: PruneProgress = () => {}) {
  const [{ total }] = (await run<{ total: number }>('select count(*)::int as total from delivery')) as [
    { total: number },
  ]
  const sums = { deleted: 0, abandoned: 0 }
  let [done, after] = [0, 0]
  await inSteps(async most => {
    const { deleted, abandoned, last, looked } = await pruneStep(run, {
      now: before,
      age: 0,
      after,
      most,
      byHand: true,
    })
    sums.deleted += deleted
    sums.abandoned += abandoned
    done += looked
    progress(done, total)
    after = last ?? after
    return last !== null
  })
  return sums
}
