import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Config } from '../config/load.ts'
import { OperatorError } from '../config/operator.ts'
import { writeAtomically } from '../store/atomic.ts'
import { dump, load } from '../store/dump.ts'
import { withDatabase } from '../store/open.ts'
import { type ExitCode, type Io, linesOf, number, print } from './output.ts'

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
