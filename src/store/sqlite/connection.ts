import type { DatabaseSync, StatementResultingChanges, StatementSync } from 'node:sqlite'
import type { Dialect, Row, Tx, Value } from '../database.ts'

const dialect: Dialect = {
  among: (value, parameter) => `${value} in (select value from json_each(${parameter}))`,
  rows(parameter, columns) {
    const made = Object.keys(columns).map(column => `value ->> '${column}' as ${column}`)
    return `(select ${made.join(', ')} from json_each(${parameter}))`
  },
  forUpdate: '',
  skipLocked: () => '',
  nextNumber: () => null,
}

const bound = (value: Value) => (typeof value === 'object' && value !== null ? JSON.stringify(value) : value)

/** Statements of one connection, each prepared once. */
export function statementsOf(database: DatabaseSync) {
  const prepared = new Map<string, StatementSync>()
  function statement(text: string): StatementSync {
    let known = prepared.get(text)
    if (known === undefined) {
      known = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
      prepared.set(text, known)
    }
    return known
  }
  return {
    all: (text: string, values: readonly Value[] = []) => statement(text).all(...values.map(bound)),
    run: (text: string, values: readonly Value[] = []) => Number(statement(text).run(...values.map(bound)).changes),
    statement,
  }
}

export type Statements = ReturnType<typeof statementsOf>

/** The transaction that is open on a connection. Its promises are settled already, so nothing else runs in between. */
export function txOn({ all, run, statement }: Statements, now: number): Tx {
  /** Inserts row by row, which costs half as much as one statement for all of them. */
  function inserting(table: string, rows: readonly Row[], ending: string): (row: Row) => StatementResultingChanges {
    const columns = Object.keys(rows[0] ?? {})
    const places = columns.map((_, i) => `$${i + 1}`).join(', ')
    const insert = statement(`insert into ${table} (${columns.join(', ')}) values (${places}) ${ending}`)
    return row => insert.run(...Object.values(row))
  }
  return {
    dialect,
    now,
    again: false,
    all: async <Result>(text: string, values?: readonly Value[]) => all(text, values) as unknown as readonly Result[],
    run: async (text, values) => run(text, values),
    async insert(table, rows, ending = '') {
      if (rows.length === 0) return
      const insert = inserting(table, rows, ending)
      for (const row of rows) insert(row)
    },
    async insertNew(table, rows, column) {
      const numbers = new Map<string, number>()
      if (rows.length === 0) return numbers
      const insert = inserting(table, rows, `on conflict (${column}) do nothing`)
      for (const row of rows) {
        const { changes, lastInsertRowid } = insert(row)
        if (changes > 0) numbers.set(String(row[column]), Number(lastInsertRowid))
      }
      return numbers
    },
  }
}
