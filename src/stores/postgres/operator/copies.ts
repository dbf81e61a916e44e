import { OperatorError } from '../../../waitlist/ports/log.ts'
import { erasureHash } from '../../erasure.ts'
import type { Copies, Restored } from '../../operator/copies.ts'
import { inSteps } from '../../steps.ts'
import type { Postgres } from '../client.ts'
import { erasureSecret } from './erasure.ts'
import { lend } from './open.ts'

export const copies = (url: string): Copies => ({
  async backUp() {
    throw new OperatorError('The list is in PostgreSQL, which has its own tools for copies: pg_dump makes one.')
  },
  async restore(file) {
    if (file === null) return lend(url, bringUpToDate)
    throw new OperatorError(
      'The list is in PostgreSQL, which has its own tools for copies: pg_restore puts one back. After it, run' +
        ' "waitlist restore" without a file.',
    )
  },
})

/** What the tables of erased addresses hold decides, so they must be today's. */
async function bringUpToDate(database: Postgres): Promise<Restored> {
  const { run } = database
  const erased = await eraseAgain(database)
  const doubtful = await doubtAll(database)
  const [row] = await run<{ contacts: number }>('select count(*)::int as contacts from contact')
  return { contacts: row!.contacts, erased, doubtful, kept: null }
}

/** Who signed up again after they were erased came back by themselves, and stays. */
async function eraseAgain({ run }: Postgres): Promise<number> {
  const secret = await erasureSecret(run)
  if (secret === undefined) return 0
  let [erased, last] = [0, '0']
  await inSteps(async most => {
    const rows = await run<{ number: string; email: string }>(
      'select number, email from contact where number > $1 order by number limit $2',
      [last, most],
    )
    const numbers = rows.map(({ number }) => number)
    const hashes = rows.map(({ email }) => erasureHash(secret, email))
    const gone = await run(
      'delete from contact using unnest($1::bigint[], $2::text[]) as known (number, hash), erased' +
        ' where contact.number = known.number and erased.hash = known.hash and created_at <= erased_at returning 1',
      [numbers, hashes],
    )
    erased += gone.length
    last = numbers.at(-1) ?? last
    return rows.length === most
  })
  return erased
}

async function doubtAll({ run }: Postgres): Promise<number> {
  let [doubtful, last] = [0, '0']
  await inSteps(async most => {
    const [page] = await run<{ last: string | null; count: number; doubted: number }>(
      'with page as (select number from delivery where number > $1 order by number limit $2), doubted as (' +
        "update delivery set doubt = true, token = null where state = 'waiting'" +
        ' and number = any(array(select number from page)) returning 1' +
        ') select max(number) as last, count(*)::int as count, (select count(*)::int from doubted) as doubted from page',
      [last, most],
    )
    doubtful += page!.doubted
    last = page!.last ?? last
    return page!.count === most
  })
  return doubtful
}
