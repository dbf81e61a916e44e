import type { Config } from '../../src/config/load.ts'
import { erase, type Traces, tracesOf } from '../../src/erase/store.ts'
import { decideHolds, discard, type HeldFilter, release } from '../../src/holds/store.ts'
import { type ImportOptions, type ImportRow, importContacts } from '../../src/import/store.ts'
import { countInvitable, type InvitationTargets, invitationOf, invite } from '../../src/invite/store.ts'
import type { SignupTargets } from '../../src/store/activate.ts'
import type { BatchBounds } from '../../src/store/batches.ts'
import { type ContactFilter, contactPages, countContacts, newestContacts } from '../../src/store/contacts.ts'
import { countAll } from '../../src/store/counts.ts'
import type { Database, Tx } from '../../src/store/database.ts'
import { type DeliveryFilter, listDeliveries, personOf, replay, replayAbandoned } from '../../src/store/deliveries.ts'
import { openDatabase, type StoreLocation, withDatabase } from '../../src/store/open.ts'
import { openStore, type Store } from '../../src/store/store.ts'
import type { PlaceOptions } from '../store/place.ts'
import { recordingLog } from './log.ts'

export interface StoreAtOptions extends PlaceOptions {
  readonly bounds?: Partial<BatchBounds> | undefined
}

/** The store at a place, as a service opens it; its events are named `waitlist.joined`. */
export async function storeAt(place: string | StoreLocation, options: StoreAtOptions = {}): Promise<Store> {
  const { provider = null, destinations = [], confirmation = null, trackSources = false, holds = null } = options
  const location = typeof place === 'string' ? ({ kind: 'sqlite', path: place } as const) : place
  const database = await openDatabase(location, recordingLog().log, options.clock)
  const targets = { eventName: 'waitlist.joined', provider, destinations, confirmation }
  return openStore(database, {
    targets,
    trackSources,
    holdReasons: holds && decideHolds(holds),
    ...(options.bounds && { bounds: options.bounds }),
  })
}

/** What an operator's commands do with the database at a path. */
export const operatorAt = (path: string) => operatorOf({ store: { kind: 'sqlite', path } })

export type Operator = ReturnType<typeof operatorOf>

/** What commands do with the store. Each call opens the database, uses it, and closes it. */
export function operatorOf({ store }: Pick<Config, 'store'>) {
  const using = <T>(use: (database: Database) => Promise<T>) => withDatabase(store, use)
  const reading = <T>(use: (tx: Tx) => Promise<T>) => using(database => database.read(use))
  return {
    async *contacts(filter: ContactFilter) {
      const pages = contactPages(use => reading(use), filter)
      for await (const page of pages) yield* page
    },
    addedLast: (filter: ContactFilter, limit: number) => reading(tx => newestContacts(tx, filter, limit)),
    count: (filter: ContactFilter) => reading(tx => countContacts(tx, filter)),
    person: (email: string) => reading(tx => personOf(tx, email)),
    deliveries: ({ limit, ...filter }: DeliveryFilter & { limit: number }) =>
      reading(tx => listDeliveries(tx, filter, limit)),
    replay: (numbers: readonly number[]) =>
      using(database => database.transaction(tx => replay(tx, numbers), { repeatable: false })),
    replayAbandoned: (destination: string | undefined) => using(database => replayAbandoned(database, destination)),
    counts: () => reading(countAll),
    traces: (email: string) => reading(tx => tracesOf(tx, email)),
    erase: (email: string): Promise<Traces | undefined> =>
      using(async database => {
        const traces = await database.transaction(tx => erase(tx, email), { repeatable: false })
        if (traces !== undefined) await database.truncateWal()
        return traces
      }),
    release: (filter: HeldFilter, targets: SignupTargets) => using(database => release(database, filter, targets)),
    discard: (filter: HeldFilter) => using(database => discard(database, filter)),
    countInvitable: (filter: ContactFilter, most?: number) => reading(tx => countInvitable(tx, filter, most)),
    invite: (filter: ContactFilter, most: number | undefined, targets: InvitationTargets) =>
      using(database => invite(database, filter, most, targets)),
    addressOf: (code: string) => reading(async tx => (await invitationOf(tx, code))?.email),
    importContacts: (batches: AsyncIterable<readonly ImportRow[]>, options: ImportOptions) =>
      using(database => importContacts(database, batches, options)),
  }
}
