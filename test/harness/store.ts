import { holdReasons } from '../../src/holds/store.ts'
import type { BatchBounds } from '../../src/store/batches.ts'
import type { StoreLocation } from '../../src/store/location.ts'
import { openDatabase } from '../../src/store/open.ts'
import { openStore, type Store } from '../../src/store/store.ts'
import type { PlaceOptions } from '../store/place.ts'
import { operatorOf } from './operator.ts'
import { recordingLog } from './service.ts'

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
    holdReasons: holds && holdReasons(holds),
    ...(options.bounds && { bounds: options.bounds }),
  })
}

/** What an operator's commands do with the database at a path. */
export const operatorAt = (path: string) => operatorOf({ store: { kind: 'sqlite', path } })

/** Of changes that nothing ends. */
export const bulk = { signal: new AbortController().signal }
