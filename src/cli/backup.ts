import { bytes } from '../app/checks.ts'
import { operatorOf } from '../app/operator.ts'
import type { Config } from '../config/config.ts'
import { number } from './table.ts'

/** Copies the database to a new file, and says what is in it: on standard error, since the copy may be on its way to a pipe. */
export async function backUp(config: Config, file: string): Promise<void> {
  const { contacts, size } = await (await operatorOf(config)).backUp(file)
  const people = contacts === 1 ? '1 contact' : `${number(contacts)} contacts`
  process.stderr.write(`${file}: ${people}, ${bytes(size)}, checked.\n`)
}
