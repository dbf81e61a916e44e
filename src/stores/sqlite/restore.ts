import {
  constants,
  copyFileSync,
  existsSync,
  lchownSync,
  linkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { bringUpToDate, type Kept, type Restored } from '../operator/copies.ts'
import { ERASURE } from '../operator/erasure.ts'
import { secretOf } from '../secret.ts'
import { complete } from './backup.ts'
import { createPrivately, holdPlace, isDamage, openForReading, sync } from './schema.ts'
import { sqliteSql } from './sql.ts'

/**
 * Puts a backup in the place of a database. At every moment there is a whole database at `path`, the old one or the new one:
 * a service that is started after a crash does not begin an empty list.
 *
 * @throws {OperatorError} when the backup cannot be used or the database is in use; nothing was changed then.
 */
export async function restore(given: string, file: string): Promise<Restored> {
  if (given === ':memory:') throw new OperatorError('sqlite::memory: exists in one process only. Set DATABASE_URL.')
  if (!existsSync(file)) throw new OperatorError(`There is no file ${file}.`)
  if (existsSync(given) && realpathSync(given) === realpathSync(file))
    throw new OperatorError(`${file} is the database itself. Name a backup of it.`)
  const backup = openForReading(file)
  try {
    if (backup.prepare("select 1 from sqlite_schema where name = 'contact'").get() === undefined) {
      throw new OperatorError(`${file} is no backup: it has no waitlist.`)
    }
    // A newer schema is a reason for restoring a backup, and so is damage.
    const place = holdPlace(given, { anyState: true })
    try {
      return await replace(place.path, file, backup)
    } finally {
      place.close()
    }
  } finally {
    backup.close()
  }
}

async function replace(path: string, file: string, backup: DatabaseSync): Promise<Restored> {
  const unfinished = `${path}.unfinished-restore`
  let old: Old | undefined
  try {
    for (const ending of ['', '-journal']) rmSync(unfinished + ending, { force: true })
    createPrivately(unfinished)
    // Takes what is in the log of the backup along, if it has one, and fails where it is damaged.
    backup.prepare('vacuum into ?').run(unfinished)
    old = existsSync(path) ? await closeOff(path) : undefined
    const brought = await refresh(unfinished, old?.erasures ?? NONE)
    const before = existsSync(path) ? path : dirname(path)
    for (const each of [unfinished, `${path}-lock`]) giveToOwnerOf(before, each)
    complete(unfinished)
    const name = `${path}.before-restore-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
    const isKept = keep(path, name)
    renameSync(unfinished, path)
    sync(dirname(path))
    const { contacts, erased, doubtful, forgotten } = brought
    const kept = isKept ? { file: name, contacts: old?.contacts ?? null, missing: 0, forgotten } : null
    old?.close()
    return { contacts, erased, doubtful, kept: kept && { ...kept, missing: missingFrom(path, kept) } }
  } catch (error) {
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${file} cannot be restored: ${(error as Error).message}. ${path} is as it was.`)
  } finally {
    old?.close()
    rmSync(unfinished, { force: true })
  }
}

/**
 * Root restores for the service, which runs as a user of its own and could not open what belongs to root. A link is not
 * followed: that user may have put it there to be given a file of root.
 */
function giveToOwnerOf(before: string, file: string): void {
  const { uid, gid } = statSync(before)
  if (process.geteuid?.() === 0 && uid !== 0) lchownSync(file, uid, gid)
}

/** What a database knows of the people who were erased. */
interface Erasures {
  /** Null: there was no removal yet, or the file cannot be read. */
  readonly secret: string | null
  /** When, in milliseconds since 1970, by hash. */
  readonly times: ReadonlyMap<string, number>
}

const NONE: Erasures = { secret: null, times: new Map() }

/** A database that nobody else can open until it is closed. */
interface Old {
  readonly erasures: Erasures
  readonly contacts: number
  close(): void
}

/**
 * Brings the log into the database, so that one file is all of it, and locks everybody else out. Undefined: it is damaged,
 * and stays as it is.
 *
 * @throws {OperatorError} when somebody else has it open.
 */
async function closeOff(path: string): Promise<Old | undefined> {
  const database = new DatabaseSync(path, { timeout: 1_000 })
  let closed = false
  const close = () => {
    if (!closed) database.close()
    closed = true
  }
  try {
    // Leaving WAL mode fails if anybody else has it open. The lock then makes no journal file.
    database.exec('pragma journal_mode = memory; begin exclusive')
    const made = database.prepare('select 1 from sqlite_schema where name = ?')
    if (made.get('contact') === undefined) return { erasures: NONE, contacts: 0, close }
    const erasures = made.get('erased') === undefined ? NONE : await erasuresIn(database)
    const { contacts } = database.prepare('select count(*) as contacts from contact').get() as { contacts: number }
    return { erasures, contacts, close }
  } catch (error) {
    close()
    if (isDamage(error)) return undefined
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === 5) {
      throw new OperatorError(`${path} is in use: an export, another command or a shell has it open. End that first.`)
    }
    throw error
  }
}

async function erasuresIn(database: DatabaseSync): Promise<Erasures> {
  const sql = sqliteSql(database)
  const rows = await sql.all<{ hash: string; erased_at: number }>('select hash, erased_at from erased')
  return {
    secret: (await secretOf(sql, ERASURE)) ?? null,
    times: new Map(rows.map(({ hash, erased_at }) => [hash, erased_at])),
  }
}

/** Nobody has this file yet, and an unfinished one is thrown away. */
async function refresh(unfinished: string, { secret, times }: Erasures) {
  const database = new DatabaseSync(unfinished)
  try {
    database.exec('pragma journal_mode = off; pragma synchronous = off; pragma secure_delete = on; begin')
    const forgotten = secret === null ? 0 : await carryOver(database, secret, times)
    const brought = await bringUpToDate(sqliteSql(database), { rest: async () => {} })
    database.exec('commit')
    return { ...brought, forgotten }
  } finally {
    database.close()
  }
}

/** Returns how many erased addresses of the backup are hashed under another secret, and so are of no use any more. */
async function carryOver(database: DatabaseSync, secret: string, times: Erasures['times']): Promise<number> {
  const own = await erasuresIn(database)
  const forgotten = own.secret === null || own.secret === secret ? 0 : own.times.size
  if (forgotten > 0) database.exec('delete from erased')
  database
    .prepare('insert into secret (name, value) values (?, ?) on conflict (name) do update set value = excluded.value')
    .run(ERASURE, secret)
  const add = database.prepare(
    'insert into erased (hash, erased_at) values (?, ?)' +
      ' on conflict (hash) do update set erased_at = max(erased_at, excluded.erased_at)',
  )
  for (const [hash, time] of times) add.run(hash, time)
  return forgotten
}

/**
 * Gives what is at `path` a second name, and takes a log away from there that could not be brought into it, or that an
 * earlier database has left: SQLite would apply it to the new one. False: there was nothing.
 */
function keep(path: string, name: string): boolean {
  const isThere = existsSync(path)
  if (isThere) copyOrLink(path, name)
  const logs = ['-wal', '-journal'].filter(
    ending => (statSync(path + ending, { throwIfNoEntry: false })?.size ?? 0) > 0,
  )
  for (const ending of logs) renameSync(path + ending, name + ending)
  for (const ending of ['-wal', '-shm']) rmSync(path + ending, { force: true })
  if (isThere || logs.length > 0) sync(dirname(path))
  return isThere || logs.length > 0
}

/** Not every file system has links. */
function copyOrLink(path: string, name: string): void {
  try {
    linkSync(path, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error
    const unfinished = `${path}.unfinished-restore-kept`
    rmSync(unfinished, { force: true })
    createPrivately(unfinished)
    copyFileSync(path, unfinished, constants.COPYFILE_FICLONE)
    sync(unfinished)
    renameSync(unfinished, name)
  }
}

/** How many contacts are only in the kept file. */
function missingFrom(path: string, { file, contacts }: Kept): number {
  if (contacts === null || contacts === 0) return 0
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
  try {
    database.prepare('attach database ? as restored').run(path)
    const sql =
      'select count(*) as missing from main.contact' +
      ' where not exists (select 1 from restored.contact as same where same.email_key = contact.email_key)'
    return (database.prepare(sql).get() as { missing: number }).missing
  } finally {
    database.close()
  }
}
