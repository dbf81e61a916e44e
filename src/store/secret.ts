import { randomBytes } from 'node:crypto'
import type { Tx } from './database.ts'

/** Undefined: it has not been made yet. */
export async function secretOf(tx: Tx, name: string): Promise<string | undefined> {
  const [row] = await tx.all<{ value: string }>('select value from secret where name = $1', [name])
  return row?.value
}

/** A random value that all instances share, 64 hexadecimal digits, made when it is first asked for. */
export async function sharedSecret(tx: Tx, name: string): Promise<string> {
  const known = await secretOf(tx, name)
  if (known !== undefined) return known
  await tx.insert('secret', [{ name, value: randomBytes(32).toString('hex') }], 'on conflict (name) do nothing')
  return (await secretOf(tx, name))!
}
