import { createHash } from 'node:crypto'
import { OperatorError } from '../config/operator.ts'
import type { Database, Row, Tx } from './database.ts'

/**
 * The portable form of a list: JSON Lines, the same for both engines. The first line names the form, each of the others is a
 * row with its table, and the last has the counts of the rows and a SHA-256 of all lines before it.
 */

/** Every table that carries a promise, in the order of their references, with what its rows are ordered by. */
const tables = {
  contact: 'number',
  delivery: 'number',
  channel: 'name',
  erased: 'hash',
  secret: 'name',
  proof: 'nonce',
}
type Table = keyof typeof tables

const FORM = 'waitlist dump 1'
/** Rows in memory at once. */
const PAGE = 1_000

interface End {
  readonly counts: Readonly<Record<string, number>>
  readonly sha256: string
}

/** The lines of a dump, of one moment. */
export const dump = (database: Database, write: (lines: string) => Promise<unknown>): Promise<End['counts']> =>
  database.read(async tx => {
    const hash = createHash('sha256')
    const put = (lines: readonly object[]) => {
      const text = lines.map(line => `${JSON.stringify(line)}\n`).join('')
      hash.update(text)
      return write(text)
    }
    await put([{ form: FORM }])
    const counts: Record<string, number> = {}
    for (const [table, key] of Object.entries(tables)) {
      counts[table] = 0
      let after: Row[string] | undefined
      for (;;) {
        const rows = await tx.all<Row>(
          `select * from ${table}${after === undefined ? '' : ` where ${key} > $1`} order by ${key} limit ${PAGE}`,
          after === undefined ? [] : [after],
        )
        if (rows.length === 0) break
        await put(rows.map(row => ({ table, ...row })))
        counts[table] += rows.length
        after = rows.at(-1)![key]
      }
    }
    await write(`${JSON.stringify({ counts, sha256: hash.digest('hex') })}\n`)
    return counts
  })

/**
 * Loads a dump into a database whose tables are empty, all of it or nothing. `lines` begins anew with each call: first they are
 * checked.
 *
 * @throws {OperatorError} when the dump is not whole, or the tables are not empty.
 */
export async function load(database: Database, lines: () => AsyncIterable<string>): Promise<End['counts']> {
  const counts = await countsIn(lines())
  await database.transaction(
    async tx => {
      await requireEmpty(tx, database.name)
      let [table, rows]: [Table, Row[]] = ['contact', []]
      for await (const line of lines()) {
        const { table: next, ...row } = parse(line) as { table?: Table } & Row
        // The first line and the last.
        if (next === undefined) continue
        // They become part of a statement.
        if (!Object.hasOwn(tables, next) || !Object.keys(row).every(column => /^[a-z_]+$/.test(column)))
          throw damaged('it has a table or a column that is unknown')
        if (next !== table || rows.length === PAGE) {
          await tx.insert(table, rows)
          ;[table, rows] = [next, []]
        }
        rows.push(row)
      }
      await tx.insert(table, rows)
      for (const numbered of ['contact', 'delivery']) {
        const text = tx.dialect.nextNumber(numbered)
        if (text !== null) await tx.all(text)
      }
    },
    { repeatable: false },
  )
  return counts
}

/** The counts in the last line of a dump that is whole. */
async function countsIn(lines: AsyncIterable<string>): Promise<End['counts']> {
  const hash = createHash('sha256')
  let last: string | undefined
  for await (const line of lines) {
    if (last === undefined && parse(line).form !== FORM) throw damaged('it is none')
    if (last !== undefined) hash.update(`${last}\n`)
    last = line
  }
  const { counts, sha256 } = parse(last ?? '') as Partial<End>
  if (sha256 === undefined || counts === undefined) throw damaged('its end is missing')
  if (sha256 !== hash.digest('hex')) throw damaged('its checksum is another one')
  return counts
}

async function requireEmpty(tx: Tx, name: string): Promise<void> {
  for (const table of Object.keys(tables)) {
    const rows = await tx.all(`select 1 from ${table} limit 1`)
    if (rows.length > 0)
      throw new OperatorError(`${name} is not empty. Give a database without tables, or without rows in them.`)
  }
}

const damaged = (why: string) => new OperatorError(`The dump cannot be loaded: ${why}. Nothing was changed.`)

/** The object in a line; an empty one if there is none. */
function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    const read: unknown = JSON.parse(line)
    if (typeof read === 'object' && read !== null) return read as Readonly<Record<string, unknown>>
  } catch {}
  return {}
}
