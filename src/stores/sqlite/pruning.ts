import type { DatabaseSync } from 'node:sqlite'
import type { Pruned } from '../../waitlist/ports.ts'
import { endedBefore } from '../operator/pruning.ts'

/** Returns the function that looks at the next deliveries, and deletes those of events that ended before a time. */
export function pruning(database: DatabaseSync): (before: number, after: number, most: number) => Pruned {
  // Apart from the change, since it needs no lock.
  const page = database.prepare(
    `select number, ${endedBefore('?')} as ended from delivery where number > ? order by number limit ?`,
  )
  const remove = database.prepare(
    `delete from delivery where number > ? and number <= ? and ${endedBefore('?')} returning state`,
  )
  return (before, after, most) => {
    const rows = page.all(before, after, most) as unknown as Row[]
    const last = rows.at(-1)?.number ?? after
    const states = rows.some(({ ended }) => ended === 1) ? remove.all(after, last, before) : []
    return {
      looked: rows.length,
      deleted: states.length,
      abandoned: states.filter(({ state }) => state === 'abandoned').length,
      last: rows.length < most ? null : last,
    }
  }
}

interface Row {
  readonly number: number
  /** Null: somebody has ended it by hand, nobody knows when. */
  readonly ended: number | null
}
