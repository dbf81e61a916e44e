import type { Loop } from '../../../src/waitlist/delivery/loop.ts'
import type { Joined } from '../../../src/waitlist/join.ts'
import { LEASE } from '../../../src/waitlist/ports/outbox.ts'
import { emailKey } from '../../../src/waitlist/rules/signup.ts'
import { signup } from '../../contracts/store.place.ts'
import { watchLeases } from './leases.ts'
import type { Witness } from './line.ts'
import type { Place } from './place.ts'
import type { Process } from './process.ts'
import { type Processes, startProcesses, type Work } from './processes.ts'
import { type Receiver, scriptedReceiver } from './receiver.ts'
import type { Time } from './time.ts'
import { type Abilities, scriptedVendor, type Vendor, vendorNames } from './vendor.ts'

/** Milliseconds for one call to the outside. */
const TIMEOUT = 1_000

/** A visitor, and what was answered: nothing as long as nothing came, `failed` when the store did. */
export interface Visit {
  readonly email: string
  /** The vendor of that moment. */
  readonly vendor: Vendor
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
  /** The one in use. */
  readonly vendor: () => Vendor
  readonly vendors: readonly Vendor[]
  readonly receiver: Receiver
  readonly witness: Witness
  readonly processes: Processes
  readonly visits: readonly Visit[]
  /** Addresses whose signup the store has confirmed to a process. */
  readonly stored: ReadonlySet<string>
  /** Which vendor's answer listed a contact, by its id. */
  readonly listedBy: ReadonlyMap<string, Vendor>
  /** Addresses of contacts that were taken off the list, as a vendor refused them. */
  readonly removed: ReadonlySet<string>
  /** When the owner added an address by hand at this vendor, as a moment of the history. */
  owned(vendor: Vendor, email: string): number | undefined
  own(email: string): void
  /** The owner moves to the other vendor. */
  change(): Promise<void>
  visit(name: string, email: string): Work
  /** One step of the loops of every process, after this time. */
  background(after?: number): Work[]
  outboxes(after?: number): Work[]
}

export function createWorld(place: Place, time: Time, witness: Witness, abilities: Abilities): World {
  const vendors = vendorNames.map(name => scriptedVendor(name, time, witness, abilities, TIMEOUT))
  let current = vendors[0]!
  const receiver = scriptedReceiver(time, witness, TIMEOUT)
  const visits: Visit[] = []
  const stored = new Set<string>()
  const listedBy = new Map<string, Vendor>()
  const removed = new Set<string>()
  const owned = new Map<Vendor, Map<string, number>>(vendors.map(vendor => [vendor, new Map()]))
  let moment = 0

  const processes = startProcesses(time, {
    witness,
    leases: watchLeases(witness),
    provider: () => current.provider,
    timeout: TIMEOUT,
    store: place.store,
    // The automation of the other vendor too, as if a second service still served it.
    destinations: [...vendors.map(({ automation }) => automation), receiver.destination],
    stored: ({ email }) => void stored.add(emailKey(email)),
    settled({ contact }, { is }) {
      if (is === 'listed') listedBy.set(contact.id, current)
      if (is === 'removed') removed.add(emailKey(contact.email))
    },
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
    place,
    time,
    vendor: () => current,
    vendors,
    receiver,
    witness,
    processes,
    visits,
    stored,
    listedBy,
    removed,
    owned: (vendor, email) => owned.get(vendor)!.get(email),
    own(email) {
      if (current.madeBy(email) !== undefined) return
      current.add(email)
      owned.get(current)!.set(email, ++moment)
    },
    change: () =>
      processes.replace(async () => {
        current = vendors.find(vendor => vendor !== current)!
        witness.seen(`the provider is the ${current.name}`)
        await place.reopen(current.name)
      }),
    visit(name, typed) {
      const parsed = signup(name, typed)
      const email = emailKey(parsed.email)
      const by = processes.running().at(-1)!
      const safe = by.state() === 'alive' && !processes.isDestined() && by.wasAnswered()
      // A process that holds a lease goes by its own time, which may begin later than the store's.
      const isHeld = place.isLeased(email, time.now() - LEASE)
      const unhindered = safe && current.creating.isClear() && !isHeld
      const visit: Visit = {
        email,
        vendor: current,
        from: ++moment,
        to: Number.POSITIVE_INFINITY,
        told: 'nothing',
        unhindered,
      }
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
