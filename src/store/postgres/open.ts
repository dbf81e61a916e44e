import { OperatorError } from '../../config/operator.ts'
import type { Database, Tx } from '../database.ts'
import { postgresSchema, requireKnownSchema, SCHEMA_VERSION } from '../open.ts'
import { connect, type PostgresOptions } from './database.ts'

/** Milliseconds for one statement. Short enough for a second try, since the first may wait for a server that is gone. */
const STATEMENT = 2_500
/** The same for a command, for which no visitor waits. */
const COMMAND_STATEMENT = 60_000
/** Milliseconds that opening waits for the database, which may have been started at the same time. */
const OPEN_TIMEOUT = 15_000
/** The number of our advisory lock: "waitlist" in ASCII. */
const LOCK = '8602272712010330996'

/**
 * The database of a running service: any number of instances share it.
 *
 * @throws {OperatorError} when it cannot be reached or used as it is.
 */
export function postgresDatabase(options: Omit<PostgresOptions, 'timeout'>): Promise<Database> {
  const database = connect({ ...options, timeout: STATEMENT })
  return prepared(database, () =>
    database.transaction(tx => prepareSchema(tx, database.name), { retryFor: OPEN_TIMEOUT }),
  )
}

/**
 * The database of a command, beside services or without one. `make`: its tables may be made.
 *
 * @throws {OperatorError} when it cannot be reached or used as it is, or has no tables.
 */
export function postgresForCommand(url: string, { make = false } = {}): Promise<Database> {
  const database = connect({ url, timeout: COMMAND_STATEMENT, log: { warn() {} } })
  return prepared(database, () =>
    database.transaction(async tx => {
      if (make) return prepareSchema(tx, database.name)
      if (!(await hasSchema(tx, database.name)))
        throw new OperatorError(`${database.name} has no waitlist. Start the service once, which makes its tables.`)
    }),
  )
}

async function prepared(database: Database, prepare: () => Promise<void>): Promise<Database> {
  try {
    await prepare()
    return database
  } catch (error) {
    await database.close()
    if (error instanceof OperatorError) throw error
    throw new OperatorError(`${database.name} cannot be used: ${(error as Error).message}`)
  }
}

/**
 * Makes the tables if there are none. Of any number of instances that start at once, one does it and the others wait. If there
 * is nothing to do, nothing is locked, and the role needs no right to create anything.
 *
 * @throws {OperatorError} when the database cannot keep every name, or its tables are newer than this program.
 */
async function prepareSchema(tx: Tx, name: string): Promise<void> {
  if (await hasSchema(tx, name)) return
  const [row] = await tx.all<{ encoding: string }>("select current_setting('server_encoding') as encoding")
  if (row!.encoding !== 'UTF8')
    throw new OperatorError(`${name} cannot be used: its encoding is ${row!.encoding}, not UTF8.`)
  await tx.all(`select pg_advisory_xact_lock(${LOCK})`)
  if (await hasSchema(tx, name)) return
  await tx.run(
    `create table waitlist_schema (version integer not null); ${postgresSchema()};` +
      ` insert into waitlist_schema (version) values (${SCHEMA_VERSION})`,
  )
}

/**
 * Whether the tables are there. `to_regclass` would remember that there were none while it waited for the instance that makes them.
 */
async function hasSchema(tx: Tx, name: string): Promise<boolean> {
  const tables = await tx.all("select 1 from pg_class where relname = 'waitlist_schema' and pg_table_is_visible(oid)")
  if (tables.length === 0) return false
  const [row] = await tx.all<{ version: number }>('select version from waitlist_schema')
  requireKnownSchema(row!.version, name)
  return true
}
