import { figures, levelsOf, type RawFigures, rateOf, type Sample, type Setup, type Spread, spreadOf } from './raw.ts'
import { markdown, median, spread } from './report.ts'
import { instanceGoals } from './scenarios.ts'

/** Connections of the generator in all comparisons. */
export const CROWD = 64

/** What is compared with what, round by round. */
const comparisons: readonly { subject: Setup; baseline: Setup; goal?: number }[] = [
  { subject: 'one instance', baseline: 'bare', goal: instanceGoals.bare },
  { subject: 'one instance', baseline: 'one insert', goal: instanceGoals.oneInsert },
  { subject: 'two instances', baseline: 'one instance' },
  { subject: 'two partitions', baseline: 'two instances' },
  { subject: 'redis limiter', baseline: 'memory limiter' },
]

/** The names of setups for people. */
export const names: Record<Setup, string> = {
  'one instance': 'one instance',
  bare: 'bare `node:http`',
  'one insert': 'one insert for each signup',
  'two instances': 'two instances, one PostgreSQL',
  'two partitions': 'two instances, a database each',
  'memory limiter': 'one instance, another client each time, limit in memory',
  'redis limiter': 'one instance, another client each time, limit in Redis',
  'after a checkpoint': 'one instance, just after a checkpoint',
}

export const count = (value: number): string => Math.round(value).toLocaleString('en')
export const text = ({ least, median, most }: Spread, digits = 0): string => {
  const each = (value: number) => (digits === 0 ? count(value) : value.toFixed(digits))
  return `${each(median)} (${each(least)}–${each(most)})`
}

export function ratiosTable(raw: RawFigures): string {
  const rows = comparisons.flatMap(({ subject, baseline, goal }) => {
    const above = figures(raw, subject, CROWD, rateOf)
    const below = figures(raw, baseline, CROWD, rateOf)
    if (above.length === 0) return []
    const ratios = above.map((rate, i) => rate / below[i]!)
    const judged = goal === undefined ? ['', ''] : [`≥ ${goal.toFixed(2)}`, median(ratios) >= goal ? 'yes' : 'no']
    return [[names[subject], names[baseline], spread(ratios, 2), ...judged]]
  })
  return markdown(['new signups', 'against', 'rate, ratio', 'goal', 'met'], rows)
}

/** Everything that was measured of signups, one line for each setup and number of connections. */
export function signupsTable(raw: RawFigures): string {
  const rows = (Object.keys(names) as Setup[]).flatMap(setup =>
    levelsOf(raw, setup).map(connections => {
      const of = (figure: (sample: Sample) => number | null, digits = 0) => {
        const values = figures(raw, setup, connections, figure)
        return values.length === 0 ? '–' : text(spreadOf(values), digits)
      }
      const middle = (figure: (sample: Sample) => number | null, digits: number) => {
        const values = figures(raw, setup, connections, figure)
        return values.length === 0 ? '–' : median(values).toFixed(digits)
      }
      return [
        names[setup],
        String(connections),
        of(rateOf),
        middle(({ p50 }) => p50, 2),
        middle(({ p99 }) => p99, 2),
        of(({ waitlist }) => waitlist),
        of(({ postgres }) => postgres),
        of(({ redis }) => redis, 1),
        setup === 'bare' ? '–' : of(({ wal }) => wal),
        setup === 'bare' ? '–' : middle(({ commits }) => 1 / commits, 1),
        middle(({ busy }) => busy, 2),
      ]
    }),
  )
  const head = [
    'signups/s',
    'p50 ms',
    'p99 ms',
    'instance, µs',
    'PostgreSQL, µs',
    'Redis, µs',
    'WAL bytes',
    'signups a commit',
  ]
  return markdown(['setup', 'connections', ...head, 'generator busy'], rows)
}

export function bytesTable(raw: RawFigures): string {
  const wal = (setup: Setup) => text(spreadOf(figures(raw, setup, CROWD, sample => sample.wal)))
  const rows = [
    ['on disk: rows and indexes of all tables', count(raw.bytesPerContact), `${count(raw.contacts)} contacts`],
    ['write-ahead log', wal('one instance'), `${CROWD} connections`],
    ['write-ahead log just after a checkpoint', wal('after a checkpoint'), 'whole pages are logged once more'],
    ...raw.traffic.map(({ connections, signupsPerCommit, sent, received }) => [
      'between an instance and PostgreSQL, both ways',
      `${count(sent)} + ${count(received)}`,
      `${connections} connections, ${signupsPerCommit} signups a commit`,
    ]),
  ]
  if (raw.redis !== null) {
    const { commands, bytes, perClient } = raw.redis
    rows.push(['between an instance and Redis', count(bytes), `commands for each signup: ${commands}`])
    rows.push([
      'memory of Redis for each client it remembers',
      count(perClient),
      'forgotten when its quota is full again',
    ])
  }
  return markdown(['bytes for each signup', 'median (least–most)', 'when'], rows)
}

const MB = (bytes: number | null): string => (bytes === null ? '–' : `${(bytes / 1e6).toFixed(1)} MB`)

export function memoryTable({ memory }: RawFigures): string {
  return markdown(
    ['memory', 'at rest', 'after the run'],
    [
      ['one instance', MB(memory.instanceAtRest), MB(memory.instanceAfterwards)],
      ['PostgreSQL, all processes', MB(memory.postgresAtRest), MB(memory.postgresAfterwards)],
      ['Redis', MB(memory.redisAtRest), MB(memory.redisAfterwards)],
    ],
  )
}

export function tlsTable({ tls }: RawFigures): string {
  return markdown(
    ['our processor time', 'µs'],
    [
      ['a new TLS connection with one signup', text(spreadOf(tls.connection))],
      ['one signup on a connection that is open, plain HTTP', text(spreadOf(tls.signup))],
    ],
  )
}

export function partitionsTable({ partitioned }: RawFigures): string {
  const { addresses, attempts, routed, scattered } = partitioned
  const row = (name: string, { contacts, inBoth, toldNew }: typeof routed) => [
    ...[name, count(addresses), count(attempts), contacts.map(count).join(' + ')],
    ...[count(inBoth), count(toldNew)],
  ]
  return markdown(
    ['an attempt goes to', 'addresses', 'attempts', 'contacts', 'in both', 'told to be new'],
    [row('the partition of its address', routed), row('any partition', scattered)],
  )
}

/** What `npm run bench -- --instances` prints. */
export function instancesReport(raw: RawFigures): string {
  const tables = [ratiosTable, signupsTable, bytesTable, memoryTable, tlsTable, partitionsTable]
  const left = raw.redis === null ? ['Redis: left out, neither valkey-server nor redis-server is installed'] : []
  return [...tables.map(table => table(raw)), ...left].join('\n\n')
}
