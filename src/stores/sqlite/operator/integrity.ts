import { existsSync } from 'node:fs'
import { ORPHANS, staleLeases } from '../../integrity.ts'
import type { Integrity, IntegrityCheck } from '../../operator/integrity.ts'
import { freeFor, MINIMUM_FREE } from '../disk.ts'
import { secretOf } from './erasure.ts'
import { lend, openForReading } from './open.ts'

export const integrity = (path: string): IntegrityCheck => ({
  checkIntegrity: () => checkIntegrity(path),
  secret: async name => lend(path, openForReading(path), database => secretOf(database, name) ?? null),
})

async function checkIntegrity(path: string): Promise<Integrity | null> {
  if (!existsSync(path)) return null
  return lend(path, openForReading(path), database => {
    const first = (sql: string) => Object.values(database.prepare(sql).get() as Record<string, string | number>)[0]!
    const count = (sql: string) => Number(first(sql))
    if (count("select count(*) from sqlite_schema where name = 'delivery'") === 0) return null
    const found = first('pragma integrity_check(1)')
    return {
      damage: found === 'ok' ? null : String(found).replaceAll(/\s+/g, ' '),
      orphans: count(ORPHANS),
      // SQLite's lower() is that of ASCII, as our keys are.
      unrecognised: count('select count(*) from contact where email_key <> lower(email)'),
      staleLeases: count(staleLeases(milliseconds => String(Date.now() - milliseconds))),
      size: count('select page_count * page_size from pragma_page_count, pragma_page_size'),
      free: { bytes: freeFor(path), needed: MINIMUM_FREE },
    }
  })
}
