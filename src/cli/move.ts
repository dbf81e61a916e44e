import { setFlagsFromString } from 'node:v8'
import { type Moved, moveTo, storeName } from '../compose.ts'
import type { Config } from '../config.ts'
import { settings } from '../settings.ts'
import { complain } from './complain.ts'
import { print } from './print.ts'
import { progressOn } from './progress.ts'

/** Rows live for a moment. V8 would let the nursery for such grow to 64 MiB, which makes nothing quicker here. */
const SMALL_NURSERY = '--semi-space-growth-factor=1'

/**
 * Copies the list to another database, compares both, and says what came of it. Exit code 0 only when both are equal.
 * Ctrl-C ends it between two batches.
 *
 * @throws {CannotOpen} when one of the two cannot be used.
 */
export async function move(config: Config, to: string): Promise<void> {
  const place = settings.DATABASE_URL.read(to)
  if (place === undefined) return fail(`--to ${settings.DATABASE_URL.allowed}`)
  setFlagsFromString(SMALL_NURSERY)
  const leaving = new AbortController()
  const leave = () => leaving.abort()
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.once(signal, leave)
  const progress = progressOn(process.stderr)
  const names = [storeName(config.store), storeName(place)] as const
  try {
    const moved = await moveTo(config, place, { progress: progress.show, signal: leaving.signal })
    progress.end()
    await tell(moved, ...names)
  } finally {
    progress.end()
    for (const signal of signals) process.off(signal, leave)
  }
}

async function tell(moved: Moved, from: string, to: string): Promise<void> {
  switch (moved.is) {
    case 'moved':
      await print(tableOf(moved))
      return print([
        moved.copied === 0
          ? `Nothing was left to copy: ${to} has all of it, and is equal to ${from}.\n`
          : `${number(moved.copied)} rows were copied. ${to} is equal to ${from}.\n`,
        // A file keeps no more, and neither does what is read from a server.
        ...(from.startsWith('postgres:') ? ['Times are kept to the millisecond.\n'] : []),
        'Set DATABASE_URL to it and start the service.\n',
      ])
    case 'refused':
      return fail(
        `${to} is not empty, and its ${moved.table} ${moved.key} is not that of ${from}. Nothing was copied. ` +
          'Give --to a database that is empty, or that an earlier move from the same list has begun to fill.',
      )
    case 'stopped':
      return fail('stopped before the end. Run the same command again: it goes on where this one ended.')
    case 'overtaken':
      return fail(
        `${from} was changed while it was copied, so something may be missing in ${to}. Stop every instance of the ` +
          'service and run the same command again. If it is refused then, give it an empty database.',
      )
    case 'different':
      await print(tableOf(moved))
      return fail(
        `${to} differs from ${from}. Do not use it. Is a service using it? Start again with an empty database.`,
      )
  }
}

/** Rows and the beginning of the checksum of each table, once where both sides agree. */
function* tableOf({ sums }: Extract<Moved, { sums: unknown }>): Generator<string> {
  for (const { table, source, target } of sums) {
    const equal = source.rows === target.rows && source.checksum === target.checksum
    const sides = equal ? [['both', source] as const] : [['from', source] as const, ['to', target] as const]
    for (const [side, { rows, checksum }] of sides) {
      yield `${table.padEnd(13)}${side.padEnd(5)}${number(rows).padStart(13)} rows  sha256 ${checksum.slice(0, 16)}\n`
    }
  }
}

const number = (count: number): string => count.toLocaleString('en')

function fail(problem: string): void {
  complain(problem)
  process.exitCode = 1
}
