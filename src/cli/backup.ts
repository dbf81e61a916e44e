import { open } from 'node:fs/promises'
import { bytes } from '../app/checks.ts'
import type { Config } from '../config/config.ts'
import { writeAtomically } from '../store/atomic.ts'
import { dump, load } from '../store/dump.ts'
import { reconcileRestored } from '../store/erasures.ts'
import { withDatabase } from '../store/open.ts'
import { OperatorError } from '../waitlist/ports/log.ts'
import { linesOf } from './import/records.ts'
import { counted, print } from './print.ts'

/** Copies the database to a new file, and says what is in it: on standard error, since the copy may be on its way to a pipe. */
export async function backUp({ store }: Config, file: string): Promise<void> {
  if (store.kind === 'postgres') {
    throw new OperatorError('The list is in PostgreSQL, which has its own tools for copies: pg_dump makes one.')
  }
  const { backUp } = await import('../store/sqlite/backup.ts')
  const { contacts, size } = await backUp(store.path, file)
  process.stderr.write(`${file}: ${counted(contacts, 'contact')}, ${bytes(size)}, checked.\n`)
}

/**
 * Puts a backup in the place of the database, and says what became of both. Without a file: PostgreSQL's own tools have
 * restored the database, and only what a backup cannot know is brought up to date.
 */
export async function restore({ store }: Config, file: string | undefined): Promise<void> {
  if (store.kind === 'postgres') {
    if (file !== undefined)
      throw new OperatorError(
        'The list is in PostgreSQL, which has its own tools for copies: pg_restore puts one back. After it, run' +
          ' "waitlist restore" without a file.',
      )
    const { erased, doubtful } = await withDatabase(store, database => database.transaction(reconcileRestored))
    return print(['The database is brought up to date.\n', ...reconciled(erased, doubtful)])
  }
  if (file === undefined) throw new OperatorError('Name the backup: waitlist restore waitlist-backup.db')
  const { restore } = await import('../store/sqlite/restore.ts')
  const { contacts, erased, doubtful, kept } = await restore(store.path, file)
  await print([`${file} is the database now: ${counted(contacts, 'contact')}.\n`, ...reconciled(erased, doubtful)])
  if (kept !== null) await print([`What was there before is kept: ${kept}\n`])
}

function* reconciled(erased: number, doubtful: number): Generator<string> {
  if (erased > 0) yield `Taken out, since they were erased after it was made: ${counted(erased, 'contact')}.\n`
  if (doubtful > 0) {
    const deliveries = counted(doubtful, 'waiting delivery', 'waiting deliveries')
    yield `In doubt, since they may have arrived after it was made: ${deliveries}.\n`
  }
}

/** Writes the whole list to a new file that either engine can load. */
export async function dumpTo({ store }: Config, file: string): Promise<void> {
  const counts = await withDatabase(store, database =>
    writeAtomically(file, async unfinished => {
      await using target = await open(unfinished, 'r+')
      const failed = ({ message }: Error) => {
        throw new OperatorError(`${file} cannot be written: ${message}`)
      }
      return await dump(database, text => target.writeFile(text).catch(failed))
    }),
  )
  process.stderr.write(`${file}: ${rowsIn(counts)}.\n`)
}

/** Loads such a file into a database that is empty, and that no service uses. */
export async function loadFrom({ store }: Config, file: string): Promise<void> {
  const { signal } = new AbortController()
  const lock = store.kind === 'sqlite' ? (await import('../store/sqlite/open.ts')).lockFile(store.path) : null
  try {
    const counts = await withDatabase(store, database => load(database, () => linesOf(file, signal)), { make: true })
    await print([`${file} is loaded: ${rowsIn(counts)}.\n`])
  } finally {
    lock?.close()
  }
}

const rowsIn = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([table, count]) => `${table} ${count.toLocaleString('en')}`)
    .join(', ')
