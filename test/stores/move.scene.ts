import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
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
import { rowsIn } from '../harness/postgres-database.ts'

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

/** The same rows as they are in PostgreSQL, by its own idea of them. */
export async function listOn(url: string): Promise<List> {
  const read = async (table: (typeof tables)[number]) => {
    const rows = await rowsIn<object>(url, `select * from ${table} order by number`)
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
  invited_at: null,
  invite_name: null,
  code: null,
  redeemed_at: null,
  asked_at: null,
  asks: null,
  confirmed_at: null,
})

const deliveryRow = (number: number): Raw => ({
  number,
  contact: number,
  destination: 'webhook',
  event: 'joined',
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

/** Milliseconds since 1970, up to the year 2200. */
const time = fc.integer({ min: 0, max: 7_258_118_400_000 })
const uuid = fc.uuid()
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null })
const bit = fc.constantFrom(0, 1)
const attempts = fc.integer({ min: 0, max: 1_000 })
/** Text as it may stand in a list: no control characters, well-formed, any script, and what arrays and JSON must escape. */
const text = fc
  .oneof(fc.string({ unit: 'grapheme', minLength: 1 }), fc.constantFrom('NULL', '"', '\\', '{a,b}', "'; --", ' ', '0'))
  .filter(each => each.isWellFormed() && !/\p{Cc}/u.test(each))

const whole = fc.integer({ min: 1, max: 1_000_000 })
/** No two rows share a value of these columns. */
const unique = <Row>(...columns: readonly (keyof Row)[]) => ({
  maxLength: 4,
  comparator: (one: Row, other: Row) => columns.some(column => one[column] === other[column]),
})

const person = fc.record({
  gap: fc.integer({ min: 1, max: 1_000_000 }),
  id: uuid,
  name: text,
  createdAt: time,
  source: orNull(fc.record({ utm_source: text, ref: text })),
  providerId: orNull(text),
  mailbox: orNull(text),
  // Listed with an event, listed as one whom the provider had before, or in another state.
  is: fc.constantFrom('joined', 'known', 'unconfirmed', 'pending', 'held', 'invited'),
  asked: fc.record({ asked_at: time, asks: fc.integer({ min: 1, max: 4 }) }),
  confirmedAt: orNull(time),
  invitation: fc.record({ invited_at: time, invite_name: orNull(text), redeemed_at: orNull(time) }),
  reason: text,
  event: fc.record({ name: text, at: time }),
  deliveries: fc.uniqueArray(
    fc.record({
      destination: text,
      event: fc.constantFrom('joined', 'invited', 'asked'),
      state: fc.constantFrom('waiting', 'delivered', 'abandoned'),
      attempts,
      doubt: bit,
      due_at: time,
      token: orNull(uuid),
      why: orNull(text),
      settled_at: orNull(time),
    }),
    { maxLength: 3, selector: ({ destination, event }) => event + destination },
  ),
})

const others = fc.record({
  erased: fc.uniqueArray(
    fc.record({ number: whole, hash: text, erased_at: time }, { noNullPrototype: true }),
    unique('number', 'hash'),
  ),
  secret: fc.uniqueArray(
    fc.record({ number: whole, name: text, value: text }, { noNullPrototype: true }),
    unique('number', 'name'),
  ),
})

const people = fc.uniqueArray(person, { maxLength: 12, selector: ({ id }) => id })

/** Any list. */
export const lists = fc.tuple(people, others).map(([people, { erased, secret }]): List => {
  let number = 0
  let delivery = 0
  const all = people.map(each => {
    number += each.gap
    return { ...each, number }
  })
  return {
    contact: all.map(({ number, id, name, is, createdAt, providerId, event, source, reason, mailbox, ...later }) => ({
      number,
      id,
      name,
      email: `V${number}@Example.com`,
      email_key: `v${number}@example.com`,
      state: is === 'joined' || is === 'known' ? 'listed' : is,
      created_at: createdAt,
      provider_id: providerId,
      event_name: is === 'joined' ? event.name : null,
      event_at: is === 'joined' ? event.at : null,
      source: source && JSON.stringify(source),
      reason: is === 'held' ? reason : null,
      mailbox,
      ...(is === 'invited' ? later.invitation : { invited_at: null, invite_name: null, redeemed_at: null }),
      code: is === 'invited' ? `code ${number}` : null,
      ...(is === 'unconfirmed' ? later.asked : { asked_at: null, asks: null }),
      confirmed_at: is === 'unconfirmed' ? null : later.confirmedAt,
    })),
    delivery: all.flatMap(({ number, deliveries }) =>
      deliveries.map(each => {
        delivery += 3
        // Only what waits is leased.
        return { number: delivery, contact: number, ...each, token: each.state === 'waiting' ? each.token : null }
      }),
    ),
    erased: erased.sort((one, other) => one.number - other.number),
    secret: secret.sort((one, other) => one.number - other.number),
  }
})
