import { existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { type Operator, operatorOn } from '../operator/operator.ts'
import type { Engine, Opened } from '../sql.ts'
import { backUp } from './backup.ts'
import { freeFor, MINIMUM_FREE } from './disk.ts'
import { restore } from './restore.ts'
import { lackingRight, reasonOf } from './rights.ts'
import { openForReading, openSqliteFile } from './schema.ts'
import { sqliteSql } from './sql.ts'

/** The operator's side of a database file. Each call opens it separately; a service goes on meanwhile. */
export function sqliteOperator(path: string): Operator {
  const engine = engineOf(path)
  const operator = operatorOn(engine, {
    backUp: async target => backUp(path, target),
    async restore(file) {
      if (file === null) throw new OperatorError('Name the backup: waitlist restore waitlist-backup.db')
      return restore(path, file)
    },
    async condition(sql) {
      const [check] = await sql.all<{ integrity_check: string }>('pragma integrity_check(1)')
      const damage = check!.integrity_check === 'ok' ? null : check!.integrity_check.replaceAll(/\s+/g, ' ')
      const [file] = await sql.all<{ size: number }>(
        'select page_count * page_size as size from pragma_page_count, pragma_page_size',
      )
      return { damage, size: file!.size, free: { bytes: freeFor(path), needed: MINIMUM_FREE } }
    },
    async look() {
      const isThere = existsSync(path)
      const lacking = lackingRight(path)
      if (lacking !== undefined)
        throw new OperatorError(`${path} cannot be ${isThere ? 'written' : 'made'}: ${lacking}`)
      if (!isThere) return `${path}, which is made at the first start`
      // If nothing can be counted, the file cannot be used.
      await operator.backlog()
      return path
    },
  })
  return operator
}

const engineOf = (path: string): Engine => ({
  open: async how => opened(how === 'reading' ? openForReading(path) : openForWriting(path)),
  async openIfMade() {
    if (!existsSync(path)) return null
    const database = openForReading(path)
    if (database.prepare("select 1 from sqlite_schema where name = 'delivery'").get() !== undefined)
      return opened(database)
    database.close()
    return null
  },
  async openOrMake(dryRun, made) {
    const isThere = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0
    if (isThere) return opened((dryRun ? openForReading : openForWriting)(path))
    try {
      const file = openSqliteFile({ path: dryRun ? ':memory:' : path })
      made(path)
      if (dryRun) return opened(file.database)
      file.close()
    } catch (error) {
      throw error instanceof OperatorError ? error : cannotUse(path, error)
    }
    return opened(openForWriting(path))
  },
  cannotUse: error => cannotUse(path, error),
  requireRoom() {
    if (freeFor(path) < MINIMUM_FREE)
      throw new Error('less than 64 MiB are free. Make room, and run the same command again')
  },
  emptyLog: async () => emptyLog(path),
  pace: { least: 500, most: 500, rests: 0.15 },
})

const opened = (database: DatabaseSync): Opened => ({
  sql: sqliteSql(database, turn),
  close: async () => database.close(),
})

const cannotUse = (path: string, error: unknown) =>
  new OperatorError(`${path} cannot be used: ${reasonOf(path, error)}`)

/** Opening for writing would create a missing file; opening for reading refuses it with a sentence. */
function openForWriting(path: string): DatabaseSync {
  openForReading(path).close()
  const database = new DatabaseSync(path, { timeout: 5000 })
  // What is deleted is overwritten, and not only left out. The cache, in KiB, is that of the service and more, for imports:
  // each address lands somewhere in the index, whose inner pages should stay.
  database.exec('pragma secure_delete = on; pragma cache_size = -16384')
  return database
}

/**
 * While somebody reads, or the disk is full, what was erased stays in the log until it is begun anew. The first checkpoint
 * goes on beside signups, so that they wait for the short rest only.
 */
function emptyLog(path: string): void {
  const database = new DatabaseSync(path, { timeout: 500 })
  try {
    for (const how of ['passive', 'truncate']) database.exec(`pragma wal_checkpoint(${how})`)
  } catch {
  } finally {
    database.close()
  }
}
