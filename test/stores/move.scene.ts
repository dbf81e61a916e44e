import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { StoreLocation } from '../../src/stores/location.ts'
import {
  type Moved,
  type MoveOptions,
  move,
  moveRows,
  openSource,
  openTarget,
  type Row,
  type Target,
} from '../../src/stores/operator/move.ts'
import { postgresMovable } from '../../src/stores/postgres/movable.ts'
import type { Table } from '../../src/stores/rows.ts'
import { sqliteMovable } from '../../src/stores/sqlite/movable.ts'
import { openSqliteFile } from '../../src/stores/sqlite/schema.ts'

/** Reads and writes past the code under test. */
type Value = string | number | null
type Raw = Readonly<Record<string, Value>>
/** Every table of a list, each in the order of its numbers, with its SQLite columns. */
export type List = Readonly<Record<(typeof tables)[number], readonly Raw[]>>

const tables = ['contact', 'delivery', 'erased', 'secret'] as const

const forTables = <T>(make: (table: (typeof tables)[number]) => T) =>
  Object.fromEntries(tables.map(table => [table, make(table)])) as Record<(typeof tables)[number], T>

export const sqlite = (path: string): StoreLocation => ({ kind: 'sqlite', path })
export const postgres = (url: string): StoreLocation => ({ kind: 'postgres', url })

export const movable = (store: StoreLocation) =>
  store.kind === 'sqlite' ? sqliteMovable(store.path) : postgresMovable(store.url)

/** A file with these rows. */
export function writeList(path: string, list: Partial<List>): void {
  const { database, close } = openSqliteFile({ path })
  try {
    database.exec('begin')
    for (const table of tables) {
      const rows = list[table] ?? []
      const names = Object.keys(rows[0] ?? {})
      if (names.length === 0) continue
      const values = names.map(name => `:${name}`).join(', ')
      const insert = database.prepare(`insert into ${table} (${names.join(', ')}) values (${values})`)
      for (const row of rows) insert.run(row as Record<string, string>)
    }
    database.exec('commit')
  } finally {
    close()
  }
}

export function listIn(path: string): List {
  const database = new DatabaseSync(path, { timeout: 5_000 })
  try {
    const read = (table: (typeof tables)[number]) =>
      database
        .prepare(`select * from ${table} order by number`)
        .all()
        .map(row => ({ ...row })) as unknown as Raw[]
    return forTables(read)
  } finally {
    database.close()
  }
}

export async function query<Row extends object>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

/** The same rows as they are in PostgreSQL, by its own idea of them. */
export async function listOn(url: string): Promise<List> {
  const read = async (table: (typeof tables)[number]) => {
    const rows = await query<object>(url, `select * from ${table} order by number`)
    return rows.map(row =>
      Object.fromEntries(Object.entries(row).map(([column, value]) => [column, asInSqlite(column, value)])),
    )
  }
  const found = forTables(read)
  return Object.fromEntries(
    await Promise.all(Object.entries(found).map(async ([table, rows]) => [table, await rows])),
  ) as List
}

const asInSqlite = (column: string, value: unknown): Value => {
  if (value instanceof Date) return value.getTime()
  if (typeof value === 'boolean') return Number(value)
  // `pg` gives a bigint as a text.
  if (column === 'number' || column === 'contact') return Number(value)
  return column === 'source' && value !== null ? JSON.stringify(value) : (value as Value)
}

/** What a list becomes on its way: nobody holds a lease any more, and what was leased is in doubt. */
export const unleased = (list: List): List => ({
  ...list,
  delivery: list.delivery.map(row => ({ ...row, doubt: row.token === null ? row.doubt! : 1, token: null })),
})

const START = Date.UTC(2030, 0, 1)

/** Contacts with their events and a delivery each; the names have their numbers. */
export function manyContacts(count: number): List {
  const numbers = Array.from({ length: count }, (_, i) => i + 1)
  return {
    contact: numbers.map(number => contactRow(number)),
    delivery: numbers.map(deliveryRow),
    erased: [],
    secret: [],
  }
}

export const contactRow = (number: number, state: 'listed' | 'pending' = 'listed'): Raw => ({
  number,
  id: `01900000-0000-7000-8000-${String(number).padStart(12, '0')}`,
  name: `Visitor ${number}`,
  email: `Visitor-${number}@example.com`,
  email_key: `visitor-${number}@example.com`,
  state,
  created_at: START + number,
  provider_id: null,
  event_name: state === 'listed' ? 'waitlist.joined' : null,
  event_at: state === 'listed' ? START + number : null,
  source: null,
  reason: null,
  mailbox: null,
})

const deliveryRow = (number: number): Raw => ({
  number,
  contact: number,
  destination: 'webhook',
  state: 'waiting',
  attempts: 0,
  doubt: 0,
  due_at: START + number,
  token: null,
  why: null,
  settled_at: null,
})

const quiet = (): MoveOptions => ({ signal: new AbortController().signal, progress: () => {} })

export const moved = (from: StoreLocation, to: StoreLocation, options: Partial<MoveOptions> = {}): Promise<Moved> =>
  move(movable(from), movable(to), { ...quiet(), ...options })

/** The same with a target that was changed. */
export async function movedInto(
  from: StoreLocation,
  to: StoreLocation,
  change: (target: Target) => Partial<Target>,
  options: Partial<MoveOptions> = {},
): Promise<Moved> {
  const [source, target] = [await openSource(movable(from)), await openTarget(movable(to))]
  try {
    return await moveRows(source, { ...target, ...change(target) }, { ...quiet(), ...options })
  } finally {
    await target.close()
    await source.close()
  }
}

/** The same; `meanwhile` is called before rows are written, and says which are. */
export const movedWhile = (
  from: StoreLocation,
  to: StoreLocation,
  meanwhile: (table: Table, rows: readonly Row[]) => Promise<readonly Row[]>,
): Promise<Moved> =>
  movedInto(from, to, ({ write }) => ({
    write: async (table, rows) => write(table, await meanwhile(table, rows)),
  }))
