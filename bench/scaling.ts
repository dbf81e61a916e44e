import type { InstanceSample, Setup } from './instances.ts'
import { rateOf } from './measure.ts'
import { count, markdown, median, spread } from './report.ts'

const names: Record<Setup, string> = {
  'one instance': 'one instance',
  bare: 'bare `node:http`',
  'two instances': 'two instances, one PostgreSQL',
  'limit in Redis': 'one instance, limit in Redis',
  'a TLS connection each': 'one instance, a new TLS connection for each signup',
}

const columns =
  'setup, connections, signups/s, p50 ms, p99 ms, instance µs, PostgreSQL µs, Redis µs, log bytes, signups a commit'

/** How busy each part is planned to be. */
const BUSY = 0.6
/** Assumed of a server for PostgreSQL; the log in bytes per second. */
const CORES = 16
const LOG = 200e6

type NumberOf = 'instance' | 'postgres' | 'redis' | 'log' | 'p50' | 'p99' | 'signupsPerCommit'

/** The tables of docs/engineering/scaling.md. Figures that need Redis or /proc are dashes without them. */
export function scalingTables(samples: readonly InstanceSample[], contactSize: number): string[] {
  const of = (setup: Setup, connections: number) =>
    samples.filter(each => each.setup === setup && each.connections === connections)
  const middle = (setup: Setup, connections: number, figure: NumberOf) => {
    const values = of(setup, connections).map(each => each[figure])
    return values.length === 0 ? Number.NaN : median(values)
  }
  const setups = (Object.keys(names) as Setup[]).flatMap(setup =>
    [1, 8, 64, 256].filter(each => of(setup, each).length > 0).map(connections => ({ setup, connections })),
  )
  const measured = markdown(
    columns.split(', '),
    setups.map(({ setup, connections }) => [
      names[setup],
      String(connections),
      spread(of(setup, connections).map(rateOf)),
      ...(['p50', 'p99'] as const).map(figure => count(middle(setup, connections, figure), 2)),
      ...(['instance', 'postgres', 'redis', 'log'] as const).map(figure => count(middle(setup, connections, figure))),
      count(middle(setup, connections, 'signupsPerCommit'), 1),
    ]),
  )

  const instance = middle('one instance', 64, 'instance')
  const postgres = middle('one instance', 64, 'postgres')
  const log = middle('one instance', 64, 'log')
  const redis = middle('limit in Redis', 64, 'redis')
  const handshake = middle('a TLS connection each', 8, 'instance')
  const second = 1e6
  const limits = markdown(
    ['what is full', 'arithmetic', 'signups/s'],
    [
      ['an instance, a new TLS connection each', `1 s / ${count(handshake)} µs`, count(second / handshake)],
      ['an instance: one thread does nearly all', `1 s / ${count(instance)} µs`, count(second / instance)],
      ['one process of PostgreSQL; each instance has one', `1 s / ${count(postgres)} µs`, count(second / postgres)],
      ['Redis: one thread', `1 s / ${count(redis)} µs`, count(second / redis)],
      ['PostgreSQL’s log, 200 MB/s', `200 MB / ${count(log)} bytes`, count(LOG / log)],
      [`PostgreSQL with ${CORES} cores`, `${CORES} × 1 s / ${count(postgres)} µs`, count((CORES * second) / postgres)],
    ],
  )

  const rates = [1_000, 50_000, 1_000_000]
  const row = (name: string, arithmetic: string, figure: (rate: number) => string) => [
    name,
    arithmetic,
    ...rates.map(figure),
  ]
  const busy = (cost: number) => (rate: number) => (rate * cost) / second / BUSY
  const whole = (value: number) => count(Math.ceil(value))
  const plan = markdown(
    ['part', 'arithmetic', ...rates.map(rate => `${count(rate)}/s`)],
    [
      row('instances', `rate × ${count(instance)} µs / ${BUSY}`, rate => whole(busy(instance)(rate))),
      row('cores of PostgreSQL', `rate × ${count(postgres)} µs / ${BUSY}`, rate => count(busy(postgres)(rate), 1)),
      row('cores for new TLS connections', `rate × ${count(handshake)} µs / ${BUSY}`, rate =>
        count(busy(handshake)(rate), 1),
      ),
      row('threads of Redis', `rate × ${count(redis)} µs / ${BUSY}`, rate => count(busy(redis)(rate), 1)),
      row('PostgreSQL’s log, MB/s', `rate × ${count(log)} bytes`, rate => count((rate * log) / 1e6, 1)),
      row('disk, GB a day', `86,400 × rate × ${count(contactSize)} bytes`, rate =>
        count((86_400 * rate * contactSize) / 1e9),
      ),
    ],
  )
  return [measured, 'Computed from the figures at 64 connections:', limits, plan]
}
