import type { Counting } from '../../operator/counting.ts'
import { countAll } from '../counts.ts'
import { lend, openForReading } from './open.ts'

export const counting = (path: string): Counting => ({
  counts: async () =>
    lend(path, openForReading(path), database => {
      database.exec('begin')
      return countAll(database, Date.now())
    }),
})
