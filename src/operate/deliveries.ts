import type { Config } from '../config/load.ts'
import type { DeliveryRecord } from '../signup/contact.ts'
import { type DeliveryFilter, listDeliveries, replay, replayAbandoned } from '../store/deliveries.ts'
import { withDatabase } from '../store/open.ts'
import {
  type Columns,
  counted,
  type ExitCode,
  fail,
  type Io,
  type ListingOptions,
  listing,
  misused,
  moment,
  print,
} from './output.ts'

/** Prints the newest deliveries. */
export async function deliveries(
  { store }: Config,
  { limit, json, ...filter }: DeliveryFilter & ListingOptions,
  io: Io,
): Promise<ExitCode> {
  const found = await withDatabase(store, ({ read }) => read(tx => listDeliveries(tx, filter, limit + 1)))
  const { why, ...others } = deliveryColumns
  const columns = { ...others, address: ({ email }: { readonly email: string }) => email, why }
  return listing(io, found, { limit, json, columns, toRecord: each => each })
}

/** Of deliveries in a table. */
export const deliveryColumns = {
  delivery: ({ number }) => String(number),
  state: ({ state }) => state,
  destination: ({ destination }) => destination,
  attempts: ({ attempts }) => String(attempts),
  'due or settled': ({ due, settledAt }) => moment(settledAt ?? due),
  why: ({ why }) => why ?? '',
} satisfies Columns<DeliveryRecord>

interface ReplayOptions {
  readonly abandoned?: true
  readonly destination?: string
}

/** Makes deliveries due again: those with these numbers, or all that were abandoned. */
export async function replayDeliveries(
  { store }: Config,
  numbers: readonly number[],
  { abandoned, destination }: ReplayOptions,
  io: Io,
): Promise<ExitCode> {
  if (numbers.length > 0 === (abandoned !== undefined) || (destination !== undefined && abandoned === undefined)) {
    return misused(io, 'Give the numbers of deliveries, or --abandoned, with --destination or without.')
  }
  if (numbers.length === 0) {
    const replayed = await withDatabase(store, database => replayAbandoned(database, destination))
    if (replayed === 0) return fail(io, 'nothing was found.')
    await print(io, [due(replayed)])
    return 0
  }
  const replayed = await withDatabase(store, ({ transaction }) =>
    transaction(tx => replay(tx, numbers), { repeatable: false }),
  )
  if (replayed.length > 0) await print(io, [due(replayed.length)])
  const others = numbers.filter(number => !replayed.includes(number))
  if (others.length === 0) return 0
  return fail(io, `not replayed, since they do not exist or are being attempted right now: ${others.join(', ')}.`)
}

const due = (replayed: number): string =>
  `${counted(replayed, 'delivery is', 'deliveries are')} due now; the running service attempts what is due.\n`
