import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Config } from '../config/load.ts'
import { OperatorError } from '../config/operator.ts'
import { writeAtomically } from '../store/atomic.ts'
import { dump, load } from '../store/dump.ts'
import { reconcileRestored } from '../store/erasures.ts'
import { withDatabase } from '../store/open.ts'
import { bytes, counted, type ExitCode, fail, type Io, linesOf, misused, number, print } from './output.ts'

/** Copies the database to a new file, and says on standard error what is in it. */
export async function backUp({ store }: Config, file: string, io: Io): Promise<ExitCode> {
  if (store.kind === 'postgres') {
    return fail(io, 'The list is in PostgreSQL, which has its own tools for copies: pg_dump makes one.')
  }
  const { backUp } = await import('../store/sqlite/backup.ts')
  const { contacts, size } = await backUp(store.path, file)
  io.stderr.write(`${file}: ${counted(contacts, 'contact')}, ${bytes(size)}, checked.\n`)
  return 0
}

/**
 * Puts a backup in the place of the database, and says what became of both. Without a file: PostgreSQL's own tools have
 * restored the database, and only what a backup cannot know is brought up to date.
 */
export async function restore({ store }: Config, file: string | undefined, io: Io): Promise<ExitCode> {
  if (store.kind === 'postgres') {
    if (file !== undefined) {
      const how = 'pg_restore puts one back. After it, run "waitlist restore" without a file.'
      return fail(io, `The list is in PostgreSQL, which has its own tools for copies: ${how}`)
    }
    const erased = await withDatabase(store, ({ transaction }) => transaction(reconcileRestored))
    await print(io, [takenOut(erased)])
    return 0
  }
  if (file === undefined) return misused(io, 'Name the backup: waitlist restore waitlist-backup.db')
  const { restore } = await import('../store/sqlite/backup.ts')
  const { contacts, erased, kept } = await restore(store.path, file)
  await print(io, [
    `${file} is the database now: ${counted(contacts, 'contact')}.\n`,
    takenOut(erased),
    kept === null ? '' : `What was there before is kept: ${kept}\n`,
  ])
  return 0
}

const takenOut = (erased: number) =>
  `Taken out, since they were erased after it was made: ${counted(erased, 'contact')}.\n`

/** Writes the whole list to a new file that either engine can load. */
export async function dumpTo({ store }: Config, file: string, io: Io): Promise<ExitCode> {
  const counts = await withDatabase(store, database =>
    writeAtomically(file, async unfinished => {
      await using target = await open(unfinished, 'r+')
      const failed = ({ message }: Error) => {
        throw new OperatorError(`${file} cannot be written: ${message}`)
      }
      return await dump(database, text => target.writeFile(text).catch(failed))
    }),
  )
  io.stderr.write(`${file}: ${rowsIn(counts)}.\n`)
  return 0
}

/** Loads such a file into a database that is empty, and that no service uses. */
export async function loadFrom({ store }: Config, file: string, io: Io): Promise<ExitCode> {
  const lock = store.kind === 'sqlite' ? (await import('../store/sqlite/open.ts')).lockFile(store.path) : null
  try {
    const counts = await withDatabase(store, database => load(database, () => linesOf(partsOf(file))), { make: true })
    await print(io, [`${file} is loaded: ${rowsIn(counts)}.\n`])
    return 0
  } finally {
    lock?.close()
  }
}

async function* partsOf(file: string): AsyncGenerator<string> {
  try {
    yield* createReadStream(file, 'utf8')
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

const rowsIn = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([table, count]) => `${table} ${number(count)}`)
    .join(', ')
