import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A folder for each version whose databases are kept: `sqlite.db.gz`, `postgres.sql` and `made.json`. */
export const kept = join(root, 'test', 'fixtures', 'released')

export type Engine = 'sqlite' | 'postgres'

/** What is known of the databases of a version. */
export interface Made {
  /** `sqlite/0001.sql` and so on, with a digest of what each says to the engine. */
  readonly migrations: Readonly<Record<string, string>>
  /** The `webhook-id` of the event of each address that the receiver was told of. */
  readonly told: Readonly<Record<Engine, Readonly<Record<string, string>>>>
}

export const madeBy = (version: string): Made | undefined => {
  const path = join(kept, version, 'made.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}

/** Comments and spaces may change. */
const digest = (sql: string): string =>
  createHash('sha256').update(sql.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ')).digest('hex')

/** Those of today. */
export const migrations = (): Made['migrations'] =>
  Object.fromEntries(
    ['sqlite', 'postgres'].flatMap(engine =>
      globSync(join(root, 'src', 'stores', engine, 'migrations', '*.sql'))
        .sort()
        .map(path => [`${engine}/${basename(path)}`, digest(readFileSync(path, 'utf8'))]),
    ),
  )

/** The migrations of a version that are not the same today. */
export const changedSince = ({ migrations: then }: Made, now = migrations()): readonly string[] =>
  Object.keys(then).filter(path => now[path] !== then[path])
