import { randomBytes } from 'node:crypto'
import type { Sql } from './sql.ts'

/** A value for `secret`: 32 random bytes in hex. */
export const newSecret = (): string => randomBytes(32).toString('hex')

/** Undefined: nobody has made it yet. */
export async function secretOf(sql: Sql, name: string): Promise<string | undefined> {
  const [row] = await sql.all<{ value: string }>('select value from secret where name = $1', [name])
  return row?.value
}

/** A value that all instances share, made when it is first asked for. */
export async function sharedSecret(sql: Sql, name: string): Promise<string> {
  const known = await secretOf(sql, name)
  if (known !== undefined) return known
  await sql.all('insert into secret (name, value) values ($1, $2) on conflict do nothing', [name, newSecret()])
  return (await secretOf(sql, name))!
}
