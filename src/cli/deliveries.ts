import { type Operator, operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import { type Contact, type DeliveryRecord, type DeliveryState, eventOf } from '../signup/contact.ts'
import { fail, misused, untilStopped } from './console.ts'
import type { ListFormat } from './formats.ts'
import { type Columns, counted, counter, facts, MOST, moment, number, print, table, toJson } from './print.ts'

export interface ListOptions {
  readonly state?: DeliveryState
  readonly destination?: string
  readonly limit: number
  readonly format: ListFormat
}

/** Writes the newest deliveries to standard output, as a table or as JSON with one object a line. */
export async function listDeliveries(config: Config, { format, limit, ...which }: ListOptions): Promise<void> {
  if (limit > MOST) return misused(`--limit is at most ${number(MOST)}; --state and --destination say which.`)
  // One more than requested, to know whether there are more.
  const found = await operatorOf(config).deliveries({ ...which, limit: limit + 1 })
  const shown = found.slice(0, limit)
  if (format === 'json') return print(shown.map(record => toJson(record)))
  if (shown.length === 0) return print(['There are no such deliveries.\n'])
  const more = found.length > limit ? [`There are more than the newest ${limit}; --limit shows them.\n`] : []
  return print([...table(columns, shown), ...more])
}

const columns: Columns<DeliveryRecord> = {
  number: ({ number }) => String(number),
  state: ({ state }) => state,
  destination: ({ destination }) => destination,
  attempts: ({ attempts }) => String(attempts),
  'due or settled': ({ due, settledAt }) => moment(settledAt ?? due),
  contact: ({ contactId }) => contactId,
  why: ({ why }) => why ?? '',
}

function eventIn(contact: Contact, { kind, eventId }: DeliveryRecord): Readonly<Record<string, string>> {
  if (eventId === null || kind === 'handover') return {}
  const { name, at } = eventOf(contact, kind)
  return { event: `${name}, ${eventId}`, [kind]: moment(at) }
}

/** Writes everything about one delivery, including whom it is about. */
export async function showDelivery(config: Config, number: number): Promise<void> {
  const found = await operatorOf(config).delivery(number)
  if (found === undefined) return fail(`There is no delivery ${number}.`)
  const { record, contact } = found
  const known = {
    number: String(record.number),
    state: record.state,
    destination: record.destination,
    attempts: String(record.attempts),
    ...(record.settledAt === null ? { due: moment(record.due) } : { settled: moment(record.settledAt) }),
    why: record.why ?? '–',
    ...eventIn(contact, record),
    signup: moment(contact.createdAt),
    name: contact.name,
    email: contact.email,
  }
  return print(facts(known))
}

export interface ReplayOptions {
  readonly abandoned?: true
  readonly destination?: string
}

/**
 * Makes deliveries due again: those with these numbers, or all abandoned ones. If it is stopped half-way through the
 * latter, the next call goes on where it ended.
 */
export async function replayDeliveries(
  config: Config,
  numbers: readonly number[],
  { abandoned, destination }: ReplayOptions,
): Promise<void> {
  if (numbers.length > 0 && (abandoned !== undefined || destination !== undefined)) {
    return misused('Give either the numbers of deliveries, or --abandoned (with --destination, if you like), not both.')
  }
  if (numbers.length === 0 && abandoned === undefined) {
    return misused(`Say what to replay: the numbers of deliveries (waitlist deliveries lists them), or --abandoned.`)
  }
  const operator = operatorOf(config)
  if (numbers.length === 0) return replayAbandoned(operator, destination)
  const { replayed, inFlight, unknown } = await operator.replay(numbers)
  if (replayed > 0) await print([due(replayed)])
  const problems = [
    ...unknown.map(number => `There is no delivery ${number}.`),
    ...inFlight.map(number => `Delivery ${number} is being attempted right now. Try again in a minute.`),
  ]
  if (problems.length > 0) fail('not everything could be replayed:', problems)
}

async function replayAbandoned(operator: Operator, destination: string | undefined): Promise<void> {
  const line = counter()
  await untilStopped(async signal => {
    const onProgress = (looked: number) => line.show('replaying', looked)
    const replayed = await operator.replayAbandoned(destination, { signal, onProgress }).finally(line.end)
    if (replayed > 0) return print([due(replayed)])
    fail(
      `There is nothing to replay: no delivery${destination === undefined ? '' : ` to ${destination}`} is abandoned.`,
    )
  })
}

const due = (replayed: number): string =>
  `${counted(replayed, 'delivery is', 'deliveries are')} due now; the running service attempts what is due.\n`
