import { type Moved, moveTo, type Progress, storeName } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import { settings } from '../config/settings.ts'
import { fail, untilStopped } from './console.ts'
import { counted, counter, number, print } from './print.ts'

/**
 * Copies the list to another database, compares both, and reports the result. The exit code is 0 only if the whole list is
 * there. Ctrl-C stops it between two batches, and leaves the other database as it was.
 *
 * @throws {OperatorError} when one of the two cannot be used.
 */
export async function move(config: Config, to: string): Promise<void> {
  const place = settings.DATABASE_URL.read(to)
  if (place === undefined) return fail(`--to ${settings.DATABASE_URL.allowed}`)
  const line = counter()
  await untilStopped(async signal => {
    const progress = ({ phase, done }: Progress) => line.show(phase, done)
    const moved = await moveTo(config, place, { progress, signal }).finally(line.end)
    await tell(moved, storeName(config.store), storeName(place))
  })
}

async function tell(moved: Moved, from: string, to: string): Promise<void> {
  switch (moved.is) {
    case 'moved':
      await print(tableOf(moved))
      return print([
        `${counted(moved.copied, 'row was', 'rows were')} copied. ${to} is equal to ${from}.\n`,
        // Of a server's microseconds only milliseconds are read.
        from.startsWith('postgres:') ? 'Times are kept to the millisecond.\n' : '',
        'Set DATABASE_URL to it and start the service.\n',
      ])
    case 'stopped':
      return fail(`stopped before the end. ${to} is as it was. Run the same command again.`)
    case 'overtaken':
      return fail(
        `${from} was changed while it was copied, so the copy was thrown away: ${to} is as it was. Stop every instance ` +
          'of the service and run the same command again.',
      )
    case 'different':
      await print(tableOf(moved))
      return fail(
        `${to} does not keep what it is given, so the copy was thrown away: ${to} is as it was. Is there a trigger or ` +
          'a rule on its tables?',
      )
    case 'unknown':
      return fail(
        `All was copied and compared, but the answer to the last step was lost. Either ${to} has the whole list now or ` +
          'it is as it was. Run the same command again: it says that the database is not empty, or it moves the list.',
      )
  }
}

/** Rows and the beginning of the checksum of each table, once if both sides agree. */
function* tableOf({ sums }: Extract<Moved, { sums: unknown }>): Generator<string> {
  for (const { table, source, target } of sums) {
    const equal = source.rows === target.rows && source.checksum === target.checksum
    const sides = equal ? [['both', source] as const] : [['from', source] as const, ['to', target] as const]
    for (const [side, { rows, checksum }] of sides) {
      yield `${table.padEnd(13)}${side.padEnd(5)}${number(rows).padStart(13)} rows  sha256 ${checksum.slice(0, 16)}\n`
    }
  }
}
