import { secretOf } from '../secret.ts'
import type { Sql } from '../sql.ts'
import { inSteps } from '../sql.ts'
import { ERASURE, erasureHash } from './erasure.ts'

/** Copies of the whole store. */
export interface Copies {
  /** Copies the whole store to a new file, and reads all of the copy to check it. */
  backUp(target: string): Promise<BackedUp>
  /**
   * Puts a backup in the place of the store, which no service may use meanwhile, and keeps what was there. With null: the
   * store's own tools have just restored it, and only what a backup cannot know is brought up to date.
   *
   * A backup does not know what happened after it was made. So contacts that were erased since are taken out of it, and
   * each waiting delivery is in doubt.
   */
  restore(file: string | null): Promise<Restored>
}

export interface BackedUp {
  readonly contacts: number
  /** Bytes. */
  readonly size: number
}

export interface Restored {
  readonly contacts: number
  /** Contacts that were erased since, and were taken out. */
  readonly erased: number
  /** Waiting deliveries. */
  readonly doubtful: number
  /** What was there before; null: nothing. */
  readonly kept: Kept | null
}

export interface Kept {
  readonly file: string
  /** Null: it cannot be read, so nobody knows who was erased there. */
  readonly contacts: number | null
  /** Contacts that are only there. */
  readonly missing: number
  /** Erased addresses of the backup that cannot be told any more: they are hashed under another secret. */
  readonly forgotten: number
}

type Steps = Parameters<typeof inSteps>[1]

/** Brings a list that was restored up to date. What its table of erased addresses holds decides. */
export async function bringUpToDate(sql: Sql, steps?: Steps): Promise<Omit<Restored, 'kept'>> {
  const erased = await eraseAgain(sql, steps)
  const doubtful = await doubtAll(sql, steps)
  const [row] = await sql.all<{ contacts: number }>('select count(*) as contacts from contact')
  return { contacts: row!.contacts, erased, doubtful }
}

/** Who signed up again after they were erased came back by themselves, and stays. */
async function eraseAgain(sql: Sql, steps: Steps): Promise<number> {
  const secret = await secretOf(sql, ERASURE)
  if (secret === undefined) return 0
  const { among, table } = sql.dialect
  const gone =
    `select contact.number from ${table('$1', { number: 'whole', hash: 'text' })} as known` +
    ' join contact on contact.number = known.number join erased on erased.hash = known.hash where created_at <= erased_at'
  let [erased, last] = [0, 0]
  await inSteps(async most => {
    const page = await sql.all<{ number: number; email: string }>(
      'select number, email from contact where number > $1 order by number limit $2',
      [last, most],
    )
    const known = page.map(({ number, email }) => ({ number, hash: erasureHash(secret, email) }))
    const deleted = await sql.all(`delete from contact where ${among('number', gone)} returning 1`, [
      JSON.stringify(known),
    ])
    erased += deleted.length
    last = page.at(-1)?.number ?? last
    return page.length === most
  }, steps)
  return erased
}

async function doubtAll(sql: Sql, steps: Steps): Promise<number> {
  const page =
    'select max(number) as last, count(*) as count from' +
    ' (select number from delivery where number > $1 order by number limit $2) as page'
  const doubt =
    "update delivery set doubt = (1 = 1), token = null where state = 'waiting' and number > $1 and number <= $2 returning 1"
  let [doubtful, last] = [0, 0]
  await inSteps(async most => {
    const [next] = await sql.all<{ last: number | null; count: number }>(page, [last, most])
    if (next!.last === null) return false
    doubtful += (await sql.all(doubt, [last, next!.last])).length
    last = next!.last
    return next!.count === most
  }, steps)
  return doubtful
}
