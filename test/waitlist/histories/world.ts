import type { Joined } from '../../../src/waitlist/join.ts'
import type { Loop } from '../../../src/waitlist/loop.ts'
import { emailKey } from '../../../src/waitlist/signup.ts'
import { signup } from '../../contracts/store.place.ts'
import { watchLeases } from './leases.ts'
import type { Witness } from './line.ts'
import type { Place } from './place.ts'
import type { Process } from './process.ts'
import { type Processes, startProcesses, type Work } from './processes.ts'
import { type Receiver, scriptedReceiver } from './receiver.ts'
import type { Time } from './time.ts'
import { type Abilities, scriptedVendor, type Vendor } from './vendor.ts'

/** Milliseconds for one call to the outside. */
const TIMEOUT = 1_000

/** A visitor, and what was answered: nothing as long as nothing came, `failed` when the store did. */
export interface Visit {
  readonly email: string
  /** Moments in the order of the history. */
  readonly from: number
  to: number
  told: Joined['is'] | 'failed' | 'nothing'
  /** The vendor answered, nobody held the address, and the process lived. */
  readonly unhindered: boolean
}

/** One history's world: the real store and the real business, in the middle of those who are scripted. */
export interface World {
  readonly place: Place
  readonly time: Time
  readonly vendor: Vendor
  readonly receiver: Receiver
  readonly witness: Witness
  readonly processes: Processes
  readonly visits: readonly Visit[]
  /** Addresses whose signup the store has confirmed to a process. */
  readonly stored: ReadonlySet<string>
  /** When the owner added an address by hand, as a moment of the history. */
  readonly owned: ReadonlyMap<string, number>
  own(email: string): void
  visit(name: string, email: string): Work
  /** One step of the loops of every process, after this time. */
  background(after?: number): Work[]
  outboxes(after?: number): Work[]
}

export function createWorld(place: Place, time: Time, witness: Witness, abilities: Abilities): World {
  const vendor = scriptedVendor(time, witness, abilities, TIMEOUT)
  const receiver = scriptedReceiver(time, witness, TIMEOUT)
  const visits: Visit[] = []
  const stored = new Set<string>()
  const owned = new Map<string, number>()
  let moment = 0

  const processes = startProcesses(time, {
    ...{ witness, leases: watchLeases(witness), provider: vendor.provider, timeout: TIMEOUT, store: place.store },
    destinations: [vendor.provider.automation!, receiver.destination],
    stored: ({ email }) => void stored.add(emailKey(email)),
  })

  /** The store refuses, now and then, since the history wants it. Everything else is a fault. */
  const faulty = (error: Error): void => {
    if (error.name !== 'StoreUnavailable') witness.fault(String(error))
  }

  const steps = (loopsOf: (process: Process) => readonly Loop[], after: number): Work[] =>
    processes.running().flatMap(by =>
      loopsOf(by).map(({ once }) => ({
        by,
        done: time
          .pause(after)
          .then(once)
          .then(() => {}, faulty),
      })),
    )

  return {
    ...{ place, time, vendor, receiver, witness, processes, visits, stored, owned },
    own(email) {
      if (vendor.madeBy(email) !== undefined) return
      vendor.add(email)
      owned.set(email, ++moment)
    },
    visit(name, typed) {
      const parsed = signup(name, typed)
      const email = emailKey(parsed.email)
      const by = processes.running().at(-1)!
      const safe = by.state() === 'alive' && !processes.isDestined()
      const unhindered = safe && vendor.creating.isClear() && !place.isLeased(email, time.now())
      const visit: Visit = { email, from: ++moment, to: Number.POSITIVE_INFINITY, told: 'nothing', unhindered }
      visits.push(visit)
      const over = (told: Visit['told']): void => {
        visit.told = told
        visit.to = ++moment
        witness.seen(`told: ${told}`)
      }
      const failed = (error: Error): void => {
        over('failed')
        faulty(error)
      }
      return { by, done: by.visit(parsed).then(({ is }) => over(is), failed) }
    },
    background: (after = 0) => steps(({ background }) => [background], after),
    outboxes: (after = 0) => steps(({ outboxes }) => outboxes, after),
  }
}
