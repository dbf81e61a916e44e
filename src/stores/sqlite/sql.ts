import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Dialect, Sql, Value } from '../sql.ts'

const now = "cast(round(unixepoch('subsec') * 1000) as integer)"

/** The highest number that a contact has or had, so that none is used twice. */
export const HIGHEST_NUMBER =
  'max(coalesce((select max(number) from contact), 0),' +
  " coalesce((select seq from sqlite_sequence where name = 'contact'), 0))"

const dialect: Dialect = {
  now,
  after: (time, milliseconds) => `(${time} + ${milliseconds})`,
  hour: time => `${time} - ${time} % 3600000`,
  spanOf: (time, minutes) => `${time} / ${minutes * 60_000} * ${minutes}`,
  later: (one, other) => `max(${one}, ${other})`,
  contains: (text, part) => `instr(${text}, ${part}) > 0`,
  domain: email => `substr(${email}, instr(${email}, '@') + 1)`,
  json: text => text,
  among: (value, query) => `${value} in (${query})`,
  elements: parameter => `select value from json_each(${parameter})`,
  table: (parameter, columns) => {
    const made = Object.keys(columns).map(column => `value ->> '${column}' as ${column}`)
    return `(select ${made.join(', ')}, key as ord from json_each(${parameter}))`
  },
  contactNumber: order => `${HIGHEST_NUMBER} + row_number() over (order by ${order})`,
  forUpdate: '',
  unlocked: '',
  fenced: '',
}

/**
 * A connection as the seam. `between`: awaited before each statement, since a statement blocks the thread: everything
 * else in it gets a turn, signals too. Not within a transaction, for whose end another one in this thread could
 * only wait by blocking it.
 */
export function sqliteSql(database: DatabaseSync, between?: () => Promise<unknown>): Sql {
  const prepared = new Map<string, StatementSync>()

  function statement(text: string): StatementSync {
    let known = prepared.get(text)
    if (known === undefined) {
      known = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
      prepared.set(text, known)
    }
    return known
  }

  async function within<T>(begin: string, use: () => Promise<T>): Promise<T> {
    if (database.isTransaction) return use()
    await between?.()
    database.exec(begin)
    try {
      const result = await use()
      database.exec('commit')
      return result
    } finally {
      if (database.isOpen && database.isTransaction) database.exec('rollback')
    }
  }

  const sql: Sql = {
    dialect,
    async all<Row>(text: string, values: readonly Value[] = []) {
      if (!database.isTransaction) await between?.()
      return statement(text).all(...values.map(asStored)) as unknown as readonly Row[]
    },
    // Row by row, which costs half as much as a JSON text of them all.
    async insert(table, columns, rows) {
      const names = Object.keys(columns)
      const { length } = names
      const insert = statement(
        `insert into ${table} (${names.join(', ')}) values (${Array.from({ length }, (_, i) => `$${i + 1}`).join(', ')})`,
      )
      for (const row of rows) insert.run(...names.map(name => row[name]!))
    },
    transaction: use => within('begin immediate', () => use(sql, false)),
    snapshot: use => within('begin', () => use(sql)),
  }
  return sql
}

const asStored = (value: Value) =>
  value instanceof Date ? value.getTime() : typeof value === 'boolean' ? Number(value) : value
