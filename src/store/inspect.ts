import { existsSync } from 'node:fs'
import { OperatorError } from '../config/operator.ts'
import type { Tx } from './database.ts'
import type { StoreLocation } from './location.ts'
import { withDatabase } from './open.ts'
import { freeFor, lackingRight, MINIMUM_FREE } from './sqlite/files.ts'

/** What an inspection of a store finds. */
export interface Inspection {
  /** The path of the file, or the version of the server. */
  readonly name: string
  /** What SQLite finds wrong in its file; null: nothing, or it is PostgreSQL, which keeps that to itself. */
  readonly damage: string | null
  /** Bytes that the store takes, without the log. */
  readonly size: number
  /** Bytes that are free where it is, and those without which it refuses signups; null: not known here. */
  readonly free: { readonly bytes: number; readonly needed: number } | null
}

/**
 * Reads everything and changes nothing, which takes seconds among millions.
 *
 * @throws {OperatorError} when the store cannot be used, or is not there.
 */
export async function inspect(location: StoreLocation): Promise<Inspection> {
  if (location.kind === 'postgres') {
    return withDatabase(location, ({ read }) => read(inspectPostgres))
  }
  const { path } = location
  const isThere = existsSync(path)
  const lacking = lackingRight(path)
  if (lacking !== null) throw new OperatorError(`${path} cannot be ${isThere ? 'written' : 'made'}: ${lacking}`)
  if (!isThere) throw new OperatorError(`There is no list at ${path}: the first start of the service makes one.`)
  return withDatabase(location, ({ read }) => read(tx => inspectSqlite(tx, path)))
}

async function inspectPostgres(tx: Tx): Promise<Inspection> {
  const [row] = await tx.all<{ version: string; size: number }>(
    "select current_setting('server_version') as version, pg_database_size(current_database()) as size",
  )
  return { name: `PostgreSQL ${row!.version}`, damage: null, size: row!.size, free: null }
}

async function inspectSqlite(tx: Tx, path: string): Promise<Inspection> {
  const [check] = await tx.all<{ integrity_check: string }>('pragma integrity_check(1)')
  const [file] = await tx.all<{ size: number }>(
    'select page_count * page_size as size from pragma_page_count, pragma_page_size',
  )
  const damage = check!.integrity_check === 'ok' ? null : check!.integrity_check.replaceAll(/\s+/g, ' ')
  return { name: path, damage, size: file!.size, free: { bytes: freeFor(path), needed: MINIMUM_FREE } }
}
