import type { DatabaseSync } from 'node:sqlite'
import type { PruneProgress, Pruning } from '../../operator/pruning.ts'
import { inSteps } from '../../steps.ts'
import { pruning as stepping } from '../pruning.ts'
import { lend, openForWriting } from './open.ts'

export const pruning = (path: string): Pruning => ({
  prune: async (before, progress) =>
    lend(path, openForWriting(path), database => prune(database, before.getTime(), progress)),
})

async function prune(database: DatabaseSync, before: number, progress: PruneProgress = () => {}) {
  const step = stepping(database, { byHand: true })
  const { total } = database.prepare('select count(*) as total from delivery').get() as { total: number }
  const sums = { deleted: 0, abandoned: 0 }
  let [done, after] = [0, 0]
  await inSteps(most => {
    const { deleted, abandoned, last, looked } = step(before, after, most)
    sums.deleted += deleted
    sums.abandoned += abandoned
    done += looked
    progress(done, total)
    after = last ?? after
    return last !== null
  })
  return sums
}
