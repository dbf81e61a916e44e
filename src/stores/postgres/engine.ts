import type { ClientBase } from 'pg'
import { type Log, OperatorError } from '../../waitlist/ports/log.ts'
import { storeName } from '../location.ts'
import { bringUpToDate } from '../operator/copies.ts'
import { type Operator, operatorOn } from '../operator/operator.ts'
import { type Engine, lend, type Opened } from '../sql.ts'
import { type Postgres, postgres } from './client.ts'
import { reasonOf } from './errors.ts'
import { isCurrent, requireFit } from './schema.ts'
import { postgresSql } from './sql.ts'

/** The operator's side of a PostgreSQL database. Each call makes its own connection; services go on meanwhile. */
export function postgresOperator(url: string): Operator {
  const engine = engineOf(url)
  return operatorOn(engine, {
    async backUp() {
      throw new OperatorError('The list is in PostgreSQL, which has its own tools for copies: pg_dump makes one.')
    },
    async restore(file) {
      // What the tables of erased addresses hold decides, so they must be today's.
      if (file === null) return { ...(await lend(engine, 'writing', bringUpToDate)), kept: null }
      throw new OperatorError(
        'The list is in PostgreSQL, which has its own tools for copies: pg_restore puts one back. After it, run' +
          ' "waitlist restore" without a file.',
      )
    },
    async condition(sql) {
      const [database] = await sql.all<{ size: number }>('select pg_database_size(current_database()) as size')
      return { damage: null, size: database!.size, free: null }
    },
    async look() {
      const database = open(url)
      try {
        return await database.lend(client => look(client, nameOf(url)))
      } catch (error) {
        throw cannotUse(url, error)
      } finally {
        await database.close()
      }
    },
  })
}

const silent: Log = { info() {}, warn() {}, error() {} }

/** Milliseconds for one statement. No visitor waits for it, and tables may be large. */
export const STATEMENT = 60_000

export const open = (url: string): Postgres => postgres({ url, connections: 1, timeout: STATEMENT, log: silent })

export const nameOf = (url: string): string => storeName({ kind: 'postgres', url })

function engineOf(url: string): Engine {
  /** @throws {OperatorError} when the database cannot be reached or has no schema that this program knows. */
  async function opened(): Promise<Opened> {
    const database = open(url)
    try {
      await database.lend(client => isCurrent(client, nameOf(url)))
      return { sql: postgresSql(database), close: database.close }
    } catch (error) {
      await database.close()
      throw cannotUse(url, error)
    }
  }
  return {
    open: opened,
    async openIfMade() {
      const made = await opened()
      const isMade = async () => (await made.sql.all<{ made: boolean }>(MADE))[0]!.made
      if (await isMade().catch(() => true)) return made
      await made.close()
      return null
    },
    openOrMake: opened,
    cannotUse: error => cannotUse(url, error),
    requireRoom() {},
    async emptyLog() {},
    pace: { least: 1_000, most: 5_000, rests: 0.25 },
  }
}

const MADE = "select to_regclass('delivery') is not null as made"

/** If the tables are missing (42P01), the service has never run on this database. */
export function cannotUse(url: string, error: unknown): OperatorError {
  if (error instanceof OperatorError) return error
  const missing = (error as { code?: string }).code === '42P01'
  const why = missing ? 'it has no waitlist. Start the service once, which makes its tables' : reasonOf(error)
  return new OperatorError(`${nameOf(url)} cannot be used: ${why}`)
}

/** The same checks as at a start. */
async function look(client: ClientBase, database: string): Promise<string> {
  await requireFit(client, database)
  const current = await isCurrent(client, database)
  const { rows } = await client.query("select current_setting('server_version') as version")
  return `PostgreSQL ${rows[0].version}${current ? '' : ', in which the tables are made at the first start'}`
}
