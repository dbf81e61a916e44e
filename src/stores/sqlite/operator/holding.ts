import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { emailKey } from '../../../waitlist/rules/signup.ts'
import { IN_PLACE } from '../../deliveries.ts'
import { conditionsOf, type Which } from '../../filter.ts'
import {
  type Course,
  type Decided,
  type HeldFilter,
  type HeldRows,
  type Holding,
  heldCounts,
  heldStatements,
  throughAll,
} from '../../operator/holding.ts'
import { type Announcement, stored } from '../../operator/imports.ts'
import { freeFor, MINIMUM_FREE } from '../disk.ts'
import { dialect } from './contacts.ts'
import { lend, openForReading, openForWriting } from './open.ts'

export const holding = (path: string): Holding => ({
  countHeld: async which =>
    lend(path, openForReading(path), database => {
      database.exec('begin')
      const { where, values } = conditionsOf({ ...which, state: 'held' }, dialect)
      const { reasons, domains, hours } = heldStatements(where, GROUPS)
      const rows = (text: string) => database.prepare(text).all(...(values as SQLInputValue[]))
      return heldCounts({ reasons: rows(reasons), domains: rows(domains), hours: rows(hours) } as unknown as HeldRows)
    }),
  release: async (which, announcement, course) =>
    lend(path, openForWriting(path), database => {
      // The room that is left is for those who sign up.
      const look = () => {
        if (freeFor(path) < MINIMUM_FREE)
          throw new Error('less than 64 MiB are free. Make room, and run the same command again')
      }
      return decide(database, which, course, releasing(database, announcement), look)
    }),
  discard: async (which, course) =>
    lend(path, openForWriting(path), database => {
      // What is deleted is overwritten, and not only left out.
      database.exec('pragma secure_delete = on')
      const discard = database.prepare("delete from contact where number = ? and state = 'held'")
      return decide(database, which, course, number => discard.run(number).changes === 1)
    }),
})

/** The service waits for each step, since a file has one writer at a time. */
const LIMIT = 500

const GROUPS = {
  domain: dialect.domain('email_key'),
  hour: 'created_at - created_at % 3600000',
}

/** Stores a contact like a new signup. False: it is not held any more. */
function releasing(database: DatabaseSync, announcement: Announcement): (number: number, now: number) => boolean {
  const { state, eventName, destinations } = stored({ state: 'listed' }, announcement)
  const release = database.prepare(
    "update contact set state = ?, held_for = null, event_name = ?, event_at = ? where number = ? and state = 'held'",
  )
  const deliver = database.prepare(`insert into delivery (contact, destination, due_at) values (?, ?, ?) ${IN_PLACE}`)
  return (number, now) => {
    if (release.run(state, eventName, eventName && now, number).changes === 0) return false
    for (const destination of destinations) deliver.run(number, destination, now)
    return true
  }
}

/** `change`: false if the contact is not held any more. `look` is called before each step. */
async function decide(
  database: DatabaseSync,
  which: HeldFilter,
  course: Course,
  change: (number: number, now: number) => boolean,
  look: () => void = () => {},
): Promise<Decided> {
  const of = (what: string, { above, upTo }: Pick<Which, 'above' | 'upTo'> = {}, order = '') => {
    const { where, values } = conditionsOf({ ...which, state: 'held', above, upTo }, dialect)
    return database.prepare(`select ${what} from contact ${where} ${order}`).all(...(values as SQLInputValue[]))
  }
  const [all] = of('count(*) as total, max(number) as last') as unknown as [{ total: number; last: number | null }]
  const held = which.addresses && new Set(of('email_key').map(({ email_key }) => email_key))
  const missing = which.addresses?.filter(address => !held?.has(emailKey(address))) ?? []
  // Apart from the change, since it needs no lock.
  const done = await throughAll(
    (above, most) => {
      const page = of('number', { above, upTo: all.last ?? 0 }, `order by number limit ${most}`) as { number: number }[]
      look()
      database.exec('begin immediate')
      const now = Date.now()
      const done = page.filter(({ number }) => change(number, now)).length
      database.exec('commit')
      return { looked: page.length, done, last: page.at(-1)?.number ?? null }
    },
    { total: all.total, limit: LIMIT },
    course,
  )
  return { done, missing }
}
