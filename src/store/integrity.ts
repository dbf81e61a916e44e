import { existsSync } from 'node:fs'
import { OperatorError } from '../config/operator.ts'
import type { StoreLocation } from './location.ts'
import { withDatabase } from './open.ts'
import { LEASE } from './outbox.ts'
import { freeFor, lackingRight, MINIMUM_FREE } from './sqlite/files.ts'

/** Whether a store can be trusted, and whether somebody works on what it keeps. */
export interface Integrity {
  /** What SQLite finds wrong in its file; null: nothing, or it is PostgreSQL, which keeps that to itself. */
  readonly damage: string | null
  /** Deliveries that a process held when it ended, and that no other one has taken over since. */
  readonly staleLeases: number
  /** Bytes that the store takes, without the log. */
  readonly size: number
  /** Bytes that are free where it is, and those without which it refuses signups; null: not known here. */
  readonly free: { readonly bytes: number; readonly needed: number } | null
}

/** Reads everything and changes nothing, which takes seconds among millions. */
export const checkIntegrity = (location: StoreLocation): Promise<Integrity> =>
  withDatabase(location, database =>
    database.read(async tx => {
      const [stale] = await tx.all<{ count: number }>(
        "select count(*) as count from delivery where state = 'waiting' and token is not null and due_at < $1",
        // A running service takes over what is due within a minute.
        [tx.now - 2 * LEASE],
      )
      const staleLeases = stale!.count
      if (location.kind === 'postgres') {
        const [database] = await tx.all<{ size: number }>('select pg_database_size(current_database()) as size')
        return { damage: null, staleLeases, size: database!.size, free: null }
      }
      const [check] = await tx.all<{ integrity_check: string }>('pragma integrity_check(1)')
      const [file] = await tx.all<{ size: number }>(
        'select page_count * page_size as size from pragma_page_count, pragma_page_size',
      )
      const damage = check!.integrity_check === 'ok' ? null : check!.integrity_check.replaceAll(/\s+/g, ' ')
      const free = { bytes: freeFor(location.path), needed: MINIMUM_FREE }
      return { damage, staleLeases, size: file!.size, free }
    }),
  )

/**
 * Describes a store in a few words; changes nothing.
 *
 * @throws {OperatorError} when it cannot be used.
 */
export async function describe(location: StoreLocation): Promise<string> {
  if (location.kind === 'postgres') {
    return withDatabase(location, database =>
      database.read(async tx => {
        const [row] = await tx.all<{ version: string }>("select current_setting('server_version') as version")
        return `PostgreSQL ${row!.version}`
      }),
    )
  }
  const { path } = location
  const isThere = existsSync(path)
  const lacking = lackingRight(path)
  if (lacking !== null) throw new OperatorError(`${path} cannot be ${isThere ? 'written' : 'made'}: ${lacking}`)
  if (!isThere) throw new OperatorError(`There is no list at ${path}: the first start of the service makes one.`)
  return withDatabase(location, async () => path)
}
