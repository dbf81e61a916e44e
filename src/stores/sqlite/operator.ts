import { chmodSync, existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Contact, ContactState, DeliveryRecord } from '../../waitlist/contact.ts'
import { OperatorError } from '../../waitlist/ports.ts'
import {
  CONTACT_COLUMNS,
  type ContactRow,
  contactOf,
  FARTHEST_LEASE,
  RECORD_COLUMNS,
  type RecordRow,
  recordOf,
} from '../deliveries.ts'
import {
  type Backlog,
  type ContactDelivery,
  type DeliveryFilter,
  NO_BACKLOG,
  type Operator,
  type Replay,
  type ReplayProgress,
  type ReplayWish,
  renew,
} from '../operator.ts'
import { inSteps } from '../steps.ts'
import { createPrivately, requireReleased, sync } from './schema.ts'

/** The operator's side of a database file. Each call opens it separately; a service goes on meanwhile. */
export const sqliteOperator = (path: string): Operator => ({
  contacts: async () => readContacts(path),
  deliveries: async filter => listDeliveries(path, filter),
  delivery: async number => showDelivery(path, number),
  replay: (wish, progress) => replay(path, wish, Date.now(), progress),
  backlog: async () => backlog(path),
  async look() {
    if (!existsSync(path)) return `${path}, which is made at the first start`
    // If nothing can be counted, the file cannot be used.
    backlog(path)
    return path
  },
  backUp: async target => backUp(path, target),
})

/** @throws {OperatorError} when there is no such file, or it is not ours. */
export function openForReading(path: string): DatabaseSync {
  if (!existsSync(path)) {
    throw new OperatorError(`There is no database at ${path}. Set DATABASE_URL, or start the service once.`)
  }
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
    requireReleased(database, path)
    return database
  } catch (error) {
    database?.close()
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${path} cannot be read: ${(error as Error).message}`)
  }
}

/** Opening for writing would create a missing file; opening for reading refuses it with a sentence. */
function openForWriting(path: string): DatabaseSync {
  openForReading(path).close()
  return new DatabaseSync(path, { timeout: 5000 })
}

/** @throws {OperatorError} when the file cannot be used. */
function lend<T>(path: string, database: DatabaseSync, use: (database: DatabaseSync) => T): T {
  try {
    return use(database)
  } catch (error) {
    throw cannotUse(path, error)
  } finally {
    database.close()
  }
}

const cannotUse = (path: string, error: unknown) =>
  new OperatorError(`${path} cannot be used: ${(error as Error).message}`)

/** Contacts in memory at once. */
const PAGE = 1_000

/**
 * All contacts that had joined before the call, one after the other, in the order in which they did. Each page is read for
 * itself: one transaction for all of them would keep the service from shortening its log for as long as the reader of an
 * export takes. So a contact is as it was when its page was read, and one that was removed meanwhile is missing.
 */
function readContacts(path: string): Generator<Contact> {
  const database = openForReading(path)
  try {
    const last = database.prepare('select max(number) as number from contact').get()?.number as number | null
    const query = database.prepare(
      'select number, id, name, email, state, created_at from contact where number > ? and number <= ? order by number limit ?',
    )
    return (function* () {
      try {
        for (let from: number | undefined = 0; from !== undefined; ) {
          const page = query.all(from, last, PAGE) as unknown as ListedRow[]
          for (const { number: _, created_at, ...contact } of page) {
            yield { ...contact, createdAt: new Date(created_at) }
          }
          from = page.at(-1)?.number
        }
      } finally {
        database.close()
      }
    })()
  } catch (error) {
    database.close()
    throw new OperatorError(`${path} cannot be read: ${(error as Error).message}`)
  }
}

interface ListedRow extends Omit<Contact, 'createdAt'> {
  readonly number: number
  readonly state: ContactState
  readonly created_at: number
}

function listDeliveries(path: string, { state, destination, limit }: DeliveryFilter): DeliveryRecord[] {
  const conditions: string[] = []
  // Not a parameter, so that the partial indexes for one state are used.
  if (state !== undefined) conditions.push(`delivery.state = '${state}'`)
  if (destination !== undefined) conditions.push('destination = ?')
  const sql =
    `select id, event_name, ${RECORD_COLUMNS} from delivery join contact on contact.number = delivery.contact` +
    (conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`) +
    ' order by delivery.number desc limit ?'
  const values = destination === undefined ? [limit] : [destination, limit]
  return lend(path, openForReading(path), database =>
    (database.prepare(sql).all(...values) as unknown as RecordRow[]).map(recordOf),
  )
}

function showDelivery(path: string, number: number): ContactDelivery | undefined {
  const sql =
    `select ${RECORD_COLUMNS}, ${CONTACT_COLUMNS} from delivery join contact on contact.number = delivery.contact` +
    ' where delivery.number = ?'
  return lend(path, openForReading(path), database => {
    const row = database.prepare(sql).get(number) as (RecordRow & ContactRow) | undefined
    return row && { record: recordOf(row), contact: contactOf(row) }
  })
}

async function replay(path: string, wish: ReplayWish, now: number, progress?: ReplayProgress): Promise<Replay> {
  const database = openForWriting(path)
  try {
    if ('numbers' in wish) return renewSome(database, wish.numbers, now)
    return await renewAbandoned(database, wish.destination ?? null, now, progress)
  } catch (error) {
    throw cannotUse(path, error)
  } finally {
    database.close()
  }
}

function renewSome(database: DatabaseSync, numbers: readonly number[], now: number): Replay {
  const update = database.prepare(`${renew('?')} where number = ? and (token is null or due_at <= ? or due_at > ?)`)
  const exists = database.prepare('select 1 from delivery where number = ?')
  const wanted = [...new Set(numbers)]
  database.exec('begin immediate')
  const left = wanted.filter(number => update.run(now, number, now, now + FARTHEST_LEASE).changes === 0)
  const underWay = left.filter(number => exists.get(number) !== undefined)
  database.exec('commit')
  const unknown = left.filter(number => !underWay.includes(number))
  return { replayed: wanted.length - left.length, underWay, unknown }
}

async function renewAbandoned(
  database: DatabaseSync,
  destination: string | null,
  now: number,
  progress: ReplayProgress = () => {},
): Promise<Replay> {
  const count = database.prepare("select count(*) as total from delivery where state = 'abandoned'")
  // Apart from the change, since it needs no lock. Those to other destinations are looked at too, so each step is short.
  const page = database.prepare(
    'select max(number) as last, count(*) as count from' +
      " (select number from delivery where state = 'abandoned' and number > ? order by number limit ?)",
  )
  const update = database.prepare(
    `${renew('?')} where state = 'abandoned' and number > ? and number <= ? and (? is null or destination = ?)`,
  )
  const { total } = count.get() as { total: number }
  let [done, replayed, last] = [0, 0, 0]
  // By ascending number, so that it ends even if replayed deliveries are abandoned again at once.
  await inSteps(most => {
    const next = page.get(last, most) as { last: number | null; count: number }
    if (next.last === null) return false
    replayed += Number(update.run(now, last, next.last, destination, destination).changes)
    last = next.last
    done += next.count
    progress(done, total)
    return next.count === most
  })
  return { replayed, underWay: [], unknown: [] }
}

/** Empty without a file, or without tables in it. */
function backlog(path: string): Backlog {
  if (!existsSync(path)) return NO_BACKLOG
  return lend(path, openForReading(path), database => {
    if (database.prepare("select 1 from sqlite_schema where name = 'delivery'").get() === undefined) return NO_BACKLOG
    const count = (rows: string) => (database.prepare(`select count(*) as n from ${rows}`).get() as { n: number }).n
    const waiting = database
      .prepare(
        'select destination, count(*) as count, (select why from delivery as other' +
          " where other.state = 'waiting' and other.destination = delivery.destination and why is not null" +
          " order by due_at desc limit 1) as why from delivery where state = 'waiting' group by destination",
      )
      .all() as { destination: string; count: number; why: string | null }[]
    return {
      pending: count("contact where state = 'pending'"),
      waiting: Object.fromEntries(waiting.map(({ destination, count, why }) => [destination, { count, why }])),
      abandoned: count("delivery where state = 'abandoned'"),
    }
  })
}

/**
 * Copies a snapshot of a database file to `target`, where it appears only when it is complete, checked and synced. Copying
 * the file itself would miss what is in the log.
 *
 * It is one transaction, during which the service cannot shorten its log, but which takes no longer than the disk does.
 * The backup API would read page by page, and start over with each signup that the service stores: it might never end.
 *
 * @throws {OperatorError} when there is no such database, or the copy cannot be made; nothing is left of it then.
 */
function backUp(path: string, target: string): void {
  if (existsSync(target)) throw new OperatorError(`${target} exists already. A backup never overwrites a file.`)
  const database = openForReading(path)
  const unfinished = `${target}${UNFINISHED}${process.pid}`
  try {
    removeLeftovers(dirname(target))
    // SQLite writes to a file that is empty, and would make one that everybody can read.
    createPrivately(unfinished)
    database.prepare('vacuum into ?').run(unfinished)
    publish(unfinished, target)
  } catch (error) {
    throw new OperatorError(`${path} cannot be copied to ${target}: ${(error as Error).message}`)
  } finally {
    database.close()
    rmSync(unfinished, { force: true })
  }
}

/** Before the id of the process that makes the copy. */
const UNFINISHED = '.unfinished-backup-'

/**
 * Removes what killed backups have left in a folder: personal data that nobody would look for. Two containers that make
 * copies in one folder at the same time do not see each other's process, and one of the copies fails.
 */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, , pid] = /^(.+)\.unfinished-backup-(\d+)(?:-journal)?$/.exec(name) ?? []
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true })
  }
}

/** If it is our own id, as often in a container, the process that left the file was there before us. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * Renames a complete, closed database file. Before that it is checked, synced and made readable by this user alone.
 *
 * @throws when an earlier database of that name left its log: SQLite would apply it to this one.
 */
export function publish(unfinished: string, target: string): void {
  requireNoLog(target)
  chmodSync(unfinished, 0o600)
  requireIntact(unfinished)
  sync(unfinished)
  renameSync(unfinished, target)
  sync(dirname(resolve(target)))
}

export function requireNoLog(target: string): void {
  const left = ['-wal', '-journal'].map(ending => target + ending).find(existsSync)
  if (left !== undefined) throw new Error(`${left} was left by another database of that name; remove it`)
}

function requireIntact(path: string): void {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const result = database.prepare('pragma integrity_check(1)').get() as { integrity_check: string }
    if (result.integrity_check !== 'ok') throw new Error(`the copy is damaged: ${result.integrity_check}`)
  } finally {
    database.close()
  }
}
