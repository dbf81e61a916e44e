/** The parts of docs/scaling.md that are made from the raw figures: what stands between `<!-- figures: … -->` and `<!-- end -->`. */

import {
  bytesTable,
  CROWD,
  count,
  memoryTable,
  partitionsTable,
  ratiosTable,
  signupsTable,
  text,
  tlsTable,
} from './instances-report.ts'
import { BUSY, CONNECTIONS, costAt, costsOf, DAY, needsOf, ROUND_TRIP, SERVER, type SharedCost } from './plan.ts'
import { targets } from './plots.ts'
import { figures, type RawFigures, rateOf, spreadOf } from './raw.ts'
import { markdown } from './report.ts'

const blocks: Readonly<Record<string, (raw: RawFigures) => string>> = {
  machine: ({ facts }) => facts.map(fact => `- ${fact}`).join('\n'),
  ratios: ratiosTable,
  signups: signupsTable,
  bytes: bytesTable,
  memory: memoryTable,
  tls: tlsTable,
  partitions: partitionsTable,
  formulas: formulasTable,
  limits: limitsTable,
  lists: listsTable,
  plan: planTable,
}

/** The document with the tables of this run. */
export function renewed(document: string, raw: RawFigures): string {
  return document.replace(
    /(<!-- figures: (\w+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, head: string, name: string, end: string) => {
      const make = blocks[name]
      if (make === undefined) throw new Error(`docs/scaling.md asks for figures that do not exist: ${name}`)
      return `${head}\n${narrow(make(raw))}\n\n${end}`
    },
  )
}

/** Tables without padding, so that a new figure changes one line. */
const narrow = (table: string): string => table.replace(/ +\|/g, ' |').replace(/-{3,}/g, '---')

const shared = ({ each, commit }: SharedCost, unit: string) => `${each.toFixed(1)} + ${count(commit)} / n ${unit}`

function formulasTable(raw: RawFigures): string {
  const { waitlist, limiter, postgres, wal, wire, handshake, redis, pause } = costsOf(raw)
  return markdown(
    ['cost of one signup, n of them in a commit', 'from the measured points'],
    [
      [`W(n): our processor time, of it ${limiter.toFixed(1)} µs for the limit in Redis`, shared(waitlist, 'µs')],
      ['P(n): PostgreSQL’s processor time', shared(postgres, 'µs')],
      ['L(n): write-ahead log', shared(wal, 'bytes')],
      ['B(n): between an instance and PostgreSQL, both ways', shared(wire, 'bytes')],
      ['R: Redis’ processor time', redis === null ? 'not measured' : `${redis.toFixed(1)} µs`],
      ['H: our processor time for a new TLS connection', `${count(handshake)} µs`],
      [
        'T: a commit, whatever its size',
        `${ROUND_TRIP} ms round trip (assumed) + ${raw.sync} µs sync + ${count(postgres.commit)} µs = ${pause.toFixed(2)} ms`,
      ],
    ],
  )
}

function limitsTable(raw: RawFigures): string {
  const costs = costsOf(raw)
  const ours = spreadOf(figures(raw, 'one instance', CROWD, sample => sample.waitlist)).median
  const theirs = spreadOf(figures(raw, 'one instance', CROWD, sample => sample.postgres)).median
  const most = spreadOf(figures(raw, 'one instance', 256, rateOf))
  const log = spreadOf(figures(raw, 'one instance', CROWD, sample => sample.wal)).median
  const connection = costs.handshake + ours
  const { cores, walPerSecond } = SERVER
  const limits: [what: string, how: string, rate: number][] = [
    ['an instance: one thread does nearly all', `1 s / ${ours.toFixed(1)} µs`, 1e6 / ours],
    [
      'an instance with the limit in Redis',
      `1 s / (${ours.toFixed(1)} + ${costs.limiter.toFixed(1)} µs)`,
      1e6 / (ours + costs.limiter),
    ],
    ['one process of PostgreSQL; each instance has one', `1 s / ${theirs.toFixed(1)} µs`, 1e6 / theirs],
    [`PostgreSQL with ${cores} cores`, `${cores} × 1 s / ${theirs.toFixed(1)} µs`, (cores * 1e6) / theirs],
    ['its log', `${megabytes(walPerSecond)} / ${count(log)} bytes`, walPerSecond / log],
    ['syncs, one after the other, 256 signups each', `256 × 1 s / ${raw.sync} µs`, 256e6 / raw.sync],
    ['an instance with a new TLS connection each', `1 s / ${count(connection)} µs`, 1e6 / connection],
  ]
  if (costs.redis !== null) limits.push(['Redis: one thread', `1 s / ${costs.redis.toFixed(1)} µs`, 1e6 / costs.redis])
  const rows = limits.sort((a, b) => a[2] - b[2]).map(([what, how, rate]) => [what, how, count(rate)])
  rows.push(['measured: one instance, everything on one machine, 256 connections', '', text(most)])
  return markdown(['what can be full', 'arithmetic', 'signups/s'], rows)
}

/** After a checkpoint, the first change of a page puts the whole page into the log (`full_page_writes`). */
function listsTable(raw: RawFigures): string {
  const { addressIndexPerContact: each } = raw
  const rows = [1e6, 1e8, 1e9].map(contacts => {
    const index = contacts * each
    const after = (minutes: number) => `${megabytes(index / (minutes * 60))}/s`
    return [count(contacts), megabytes(contacts * raw.bytesPerContact), megabytes(index), after(5), after(30)]
  })
  const head = [
    'on disk',
    'index of the addresses',
    'whole pages in the log at most, checkpoint after 5 min',
    'after 30 min',
  ]
  return markdown(['contacts in one database', ...head], rows)
}

const megabytes = (bytes: number) =>
  bytes < 1e9
    ? `${(bytes / 1e6).toFixed(1)} MB`
    : bytes < 1e12
      ? `${(bytes / 1e9).toFixed(1)} GB`
      : `${(bytes / 1e12).toFixed(1)} TB`
const coresText = (value: number) => (value < 10 ? value.toFixed(1) : count(value))

/** One line for each part of the plan, one column for each rate, with the arithmetic and how sure it is. */
function planTable(raw: RawFigures): string {
  const costs = costsOf(raw)
  const needs = targets.map(rate => needsOf(rate, raw, costs))
  const row = (name: string, how: string, known: string, of: (need: (typeof needs)[number]) => string) => [
    name,
    how,
    ...needs.map(of),
    known,
  ]
  const busy = String(BUSY)
  const rows = [
    row('instances, N', `rate × W(n) / ${busy} s`, 'computed', ({ instances }) => count(instances)),
    row(
      'signups in a commit, n',
      `r × T / (1 − r × ${costs.postgres.each.toFixed(1)} µs), r = rate / N`,
      'computed',
      ({ batch }) => batch.toFixed(1),
    ),
    row('commits/s', 'rate / n', 'computed', ({ commits }) => count(commits)),
    row('cores of PostgreSQL', `rate × P(n) / ${busy} s`, 'computed', need => coresText(need.postgresCores)),
    row('write-ahead log, per second', 'rate × L(n)', 'computed', ({ wal }) => megabytes(wal)),
    row(
      'partitions',
      `${SERVER.cores} cores or ${megabytes(SERVER.walPerSecond)}/s of log each, ${BUSY * 100} % used`,
      'reasoned',
      ({ partitions, partitionsBy }) => (partitions === 1 ? '1' : `${partitions} (${partitionsBy})`),
    ),
    row('instances for each partition', 'N / partitions', 'computed', ({ instances, partitions }) =>
      String(Math.ceil(instances / partitions)),
    ),
    row(
      'connections to each PostgreSQL',
      `${CONNECTIONS} × instances of the partition`,
      'reasoned',
      ({ instances, partitions }) => count(Math.ceil(instances / partitions) * CONNECTIONS),
    ),
    row('write-ahead log, per day', `86,400 × the above`, 'computed', ({ wal }) => megabytes(wal * DAY)),
    row('disk, per day', `86,400 × rate × ${count(raw.bytesPerContact)} bytes`, 'computed', ({ rate }) =>
      megabytes(rate * DAY * raw.bytesPerContact),
    ),
    row(
      'between instances and PostgreSQL',
      'rate × B(n)',
      'computed',
      ({ rate, batch }) => `${megabytes(rate * costAt(costs.wire, batch))}/s`,
    ),
    row('cores for new TLS connections', `rate × H / ${busy} s`, 'computed', need => coresText(need.handshakeCores)),
  ]
  if (raw.redis !== null && costs.redis !== null) {
    rows.push(
      row('threads of Redis', `rate × R / ${busy} s`, 'computed', need => coresText(need.redisCores ?? 0)),
      row('memory of Redis', `rate × 30 s × ${count(raw.redis.perClient)} bytes`, 'computed', need =>
        megabytes(need.redisMemory ?? 0),
      ),
    )
  }
  return markdown(['part', 'arithmetic', ...targets.map(rate => `${count(rate)}/s`), 'how known'], rows)
}
