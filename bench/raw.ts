/** The raw figures of `npm run bench -- --instances`, as they are kept in docs/figures/instances.json. */

import { median } from './report.ts'

/** Who was asked. */
export type Setup =
  | 'one instance'
  | 'bare'
  | 'one insert'
  | 'two instances'
  | 'two partitions'
  | 'memory limiter'
  | 'redis limiter'
  | 'after a checkpoint'

/** One measurement. */
export interface Sample {
  readonly setup: Setup
  readonly connections: number
  readonly signups: number
  readonly seconds: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Microseconds of processor time for each signup; null where it cannot be known, or has no part. */
  readonly waitlist: number | null
  readonly postgres: number | null
  readonly redis: number | null
  /** Part of the time in which the generator was busy. */
  readonly busy: number
  /** For each signup: bytes of write-ahead log, and commits. */
  readonly wal: number
  readonly commits: number
}

/** Bytes between an instance and PostgreSQL for each signup, without TCP's own. */
export interface Traffic {
  readonly connections: number
  readonly signupsPerCommit: number
  readonly sent: number
  readonly received: number
}

/** Bytes. */
export interface Memory {
  readonly instanceAtRest: number
  readonly instanceAfterwards: number
  readonly postgresAtRest: number
  readonly postgresAfterwards: number
  readonly redisAtRest: number | null
  readonly redisAfterwards: number | null
}

/** Two databases with an instance each. What was sent: the same addresses several times, in different spellings. */
export interface Partitioned {
  readonly addresses: number
  readonly attempts: number
  /** How many contacts there were when the address decided where an attempt went, and how many were told to be new. */
  readonly routed: { readonly contacts: readonly number[]; readonly inBoth: number; readonly toldNew: number }
  /** The same with chance in place of the address. */
  readonly scattered: { readonly contacts: readonly number[]; readonly inBoth: number; readonly toldNew: number }
}

export interface RawFigures {
  /** Lines that say on what the figures depend. */
  readonly facts: readonly string[]
  /** Microseconds of one append of 4 KiB and its sync. */
  readonly sync: number
  readonly samples: readonly Sample[]
  readonly traffic: readonly Traffic[]
  readonly memory: Memory
  /** Contacts in the database at the end; bytes for each on disk, and in the index of the addresses. */
  readonly contacts: number
  readonly bytesPerContact: number
  readonly addressIndexPerContact: number
  /** Commands to Redis for each signup, bytes both ways, bytes of memory for each client it remembers. Null: no Redis. */
  readonly redis: { readonly commands: number; readonly bytes: number; readonly perClient: number } | null
  /** Microseconds of processor time of the service for a new TLS connection with one signup, and for a signup alone. */
  readonly tls: { readonly connection: readonly number[]; readonly signup: readonly number[] }
  readonly partitioned: Partitioned
}

export interface Spread {
  readonly least: number
  readonly median: number
  readonly most: number
}

export function spreadOf(values: readonly number[]): Spread {
  return { least: Math.min(...values), median: median(values), most: Math.max(...values) }
}

/** One figure of all rounds. Without `connections`: those of a setup that has only one number of them. */
export function figures(
  raw: RawFigures,
  setup: Setup,
  connections: number,
  figure: (sample: Sample) => number | null,
): readonly number[] {
  return raw.samples
    .filter(sample => sample.setup === setup && sample.connections === connections)
    .map(figure)
    .filter(value => value !== null)
}

export const rateOf = ({ signups, seconds }: Sample): number => signups / seconds

/** Numbers of connections at which a setup was measured, ascending. */
export const levelsOf = (raw: RawFigures, setup: Setup): readonly number[] =>
  [...new Set(raw.samples.filter(sample => sample.setup === setup).map(({ connections }) => connections))].sort(
    (a, b) => a - b,
  )

const columns = [
  ...(['setup', 'connections', 'signups', 'seconds', 'p50', 'p99', 'waitlist', 'postgres', 'redis'] as const),
  ...(['busy', 'wal', 'commits'] as const),
] satisfies readonly (keyof Sample)[]

/** JSON with one measurement a line, so that it is short and two runs can be compared. Formatted as the project is. */
export function rawText({ samples, ...others }: RawFigures): string {
  const rows = samples.map(sample => `    [${columns.map(name => JSON.stringify(sample[name])).join(', ')}]`)
  const short = JSON.stringify({ ...others, columns }, null, 2).replace(/\[[\s\d.,]+\]/g, numbers =>
    numbers.replace(/\s+/g, '').replaceAll(',', ', '),
  )
  return `${short.slice(0, -2)},\n  "rows": [\n${rows.join(',\n')}\n  ]\n}\n`
}

/** The figures of such a text. */
export function readRaw(text: string): RawFigures {
  const { columns, rows, ...others } = JSON.parse(text)
  const sample = (row: readonly unknown[]) => Object.fromEntries(row.map((value, i) => [columns[i], value]))
  return { ...others, samples: rows.map(sample) }
}
