import { existsSync } from 'node:fs'
import type { Config } from '../config/load.ts'
import { OperatorError } from '../config/operator.ts'
import { countAll } from '../store/counts.ts'
import { checkIntegrity, describe, type Integrity } from '../store/integrity.ts'
import type { StoreLocation } from '../store/location.ts'
import { withDatabase } from '../store/open.ts'
import { whyEphemeral } from '../store/sqlite/files.ts'
import type { DeliveryCount, HeldCount } from '../store/stats.ts'
import { bytes, type ExitCode, type Io, moment, number, paint, plain, print, toJson } from './output.ts'

export interface CheckOptions {
  readonly quiet?: true
  /** Whether the webhook, the chats and the owner are sent a test message. */
  readonly sendTest?: true
  /** An address that a mail is sent to. */
  readonly mail?: string
  readonly letter: 'welcome' | 'invite' | 'confirm'
  readonly json?: true
}

/** The result of trying one part of the configuration. */
export interface CheckResult {
  readonly what: string
  /** `note`: it works, and its owner should know. */
  readonly is: 'ok' | 'note' | 'wrong'
  readonly why: string
}

/**
 * Says what is wrong with the settings, with what is stored and with `outside`, what they name beside it: a line each, or as
 * `{ok, checks: [{what, is, why}]}`. Exit code 1 if anything is wrong; a note is not.
 */
export async function report(
  results: readonly CheckResult[],
  { quiet, json }: Pick<CheckOptions, 'quiet' | 'json'>,
  io: Io,
): Promise<ExitCode> {
  const ok = results.every(({ is }) => is !== 'wrong')
  const shown = quiet ? results.filter(({ is }) => is === 'wrong') : results
  if (json) await print(io, [toJson({ ok, checks: shown })])
  else
    await print(
      io,
      shown.map(({ what, is, why }) => `${column(is, io)}${what}: ${plain(why)}\n`),
    )
  return ok ? 0 : 1
}

const colours = { ok: 'green', note: 'yellow', wrong: 'red' } as const

const column = (is: CheckResult['is'], { stdout }: Io): string =>
  paint(colours[is], is, stdout) + ' '.repeat(8 - is.length)

/** Tries something that says what is good about it. Anything but an error for the operator is a bug, and is thrown. */
export async function tried(what: string, run: () => Promise<string> | string): Promise<CheckResult> {
  try {
    return { what, is: 'ok', why: await run() }
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return { what, is: 'wrong', why: error.message }
  }
}

/** Whether the list is there and sound, and what waits for whom. `destinations`: the names of those that are set. */
export async function checkStored(
  { store }: Pick<Config, 'store'>,
  destinations: readonly string[],
): Promise<readonly CheckResult[]> {
  const database = await tried('database', () => describe(store))
  if (database.is === 'wrong') return [database]
  const lost = store.kind === 'sqlite' && existsSync(store.path) ? whyEphemeral(store.path) : null
  const notes: readonly CheckResult[] = lost === null ? [] : [{ what: 'data folder', is: 'note', why: lost }]
  let found: readonly CheckResult[] = []
  const looked = await tried('what is stored', async () => {
    found = await lookInside(store, destinations)
    return ''
  })
  return [database, ...notes, ...(looked.is === 'ok' ? found : [looked])]
}

async function lookInside(store: StoreLocation, destinations: readonly string[]): Promise<readonly CheckResult[]> {
  const integrity = await checkIntegrity(store)
  // What else a damaged file says is worth nothing.
  if (integrity.damage !== null) return [...integrityOf(integrity)]
  const { at, held, deliveries } = await withDatabase(store, ({ read }) => read(countAll))
  const abandoned = deliveries.filter(({ state }) => state === 'abandoned').reduce((sum, { count }) => sum + count, 0)
  const waiting = deliveries
    .filter(({ state }) => state === 'waiting')
    .map(each => waitingFor(each, at, destinations.includes(each.destination)))
  return [
    ...integrityOf(integrity),
    ...(held.length === 0 ? [] : [heldSignups(held)]),
    ...waiting,
    ...(abandoned === 0 ? [] : [abandonedDeliveries(abandoned)]),
  ]
}

/** Bytes. With less the disk may be full before anybody has looked. */
const LOW_SPACE = 1024 ** 3

function* integrityOf({ damage, staleLeases, size, free }: Integrity): Generator<CheckResult> {
  yield damage === null
    ? { what: 'what is stored', is: 'ok', why: `the store is intact, and takes ${bytes(size)}` }
    : { what: 'what is stored', is: 'wrong', why: `it is damaged: ${damage}. Stop the service and restore a backup.` }
  if (free !== null) {
    const left = `${bytes(free.bytes)} left`
    if (free.bytes < free.needed) yield { what: 'disk', is: 'wrong', why: `${left}: signups are refused` }
    else yield { what: 'disk', is: free.bytes < LOW_SPACE ? 'note' : 'ok', why: left }
  }
  if (staleLeases > 0) {
    const why = `${number(staleLeases)} were in flight when a process ended, and nobody has taken them over: is the service running?`
    yield { what: 'deliveries', is: 'wrong', why }
  }
}

function heldSignups(held: readonly HeldCount[]): CheckResult {
  const total = held.reduce((sum, { count }) => sum + count, 0)
  const since = new Date(Math.min(...held.map(({ oldest }) => oldest.getTime())))
  const why = `${number(total)}, the first since ${moment(since)}; list --state held shows them`
  return { what: 'held signups', is: 'note', why }
}

const abandonedDeliveries = (count: number): CheckResult => ({
  ...{ what: 'abandoned', is: 'note', why: `${number(count)}; deliveries --state abandoned says why` },
})

/** Milliseconds after which what waits is late. */
const LATE = 3_600_000

function waitingFor({ destination, count, oldest, why }: DeliveryCount, at: Date, isSet: boolean): CheckResult {
  const milliseconds = at.getTime() - (oldest ?? at).getTime()
  const parts = [
    `${number(count)}, the oldest for ${duration(milliseconds)}`,
    ...(isSet ? [] : ['it is not set, so they go on waiting']),
    ...(why === null ? [] : [`the last attempt: ${why}`]),
  ]
  const is = isSet && milliseconds > LATE ? 'wrong' : 'ok'
  return { what: `waiting for ${destination}`, is, why: parts.join('; ') }
}

function duration(milliseconds: number): string {
  const minutes = Math.floor(Math.max(0, milliseconds) / 60_000)
  if (minutes < 120) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`
}
