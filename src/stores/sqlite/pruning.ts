import type { DatabaseSync } from 'node:sqlite'
import type { Pruned } from '../../waitlist/ports/upkeep.ts'
import { endedBefore } from '../operator/pruning.ts'

/** Returns the function that looks at the next deliveries, and deletes, or only counts, those that ended before a time. */
export function pruning(database: DatabaseSync, { byHand }: { readonly byHand: boolean }) {
  // Apart from the change, since it needs no lock.
  const page = database.prepare(
    `select number, ${endedBefore('?', byHand)} as ended from delivery where number > ? order by number limit ?`,
  )
  const remove = database.prepare(
    `delete from delivery where number > ? and number <= ? and ${endedBefore('?', byHand)} returning state`,
  )
  return (before: number, after: number, most: number, counting = false): Pruned => {
    const rows = page.all(before, after, most) as unknown as Row[]
    const last = rows.at(-1)?.number ?? after
    const ended = rows.filter(row => row.ended === 1).length
    const states = ended > 0 && !counting ? remove.all(after, last, before) : []
    return {
      looked: rows.length,
      deleted: counting ? ended : states.length,
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
