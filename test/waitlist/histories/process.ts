import { deliveries } from '../../../src/waitlist/deliver.ts'
import { type Joined, join } from '../../../src/waitlist/join.ts'
import type { Loop } from '../../../src/waitlist/loop.ts'
import {
  type Delivery,
  type Destination,
  type Log,
  type Provider,
  type Registration,
  type Store,
  StoreUnavailable,
} from '../../../src/waitlist/ports.ts'
import { register } from '../../../src/waitlist/register.ts'
import type { Signup } from '../../../src/waitlist/signup.ts'
import type { Leases } from './leases.ts'
import type { Witness } from './line.ts'
import type { Time } from './time.ts'

const storeCalls = ['admit', 'begin', 'beginDue', 'conclude', 'claim', 'settle'] as const
const calls = [...storeCalls, 'create', 'deliver'] as const
type Call = (typeof calls)[number]

/** A moment in the life of a process: a call is about to be made, or its answer was about to arrive. */
export type Moment = `${'before' | 'after'} ${Call}`
const moments = (calls: readonly Call[]) => calls.flatMap((call): Moment[] => [`before ${call}`, `after ${call}`])

/** What can happen to a process, and when. It sleeps when its machine does: longer, perhaps, than its leases. */
export const fates = {
  dies: moments(calls),
  sleeps: ['before conclude', 'before settle'],
  'is refused by the store': moments(storeCalls),
} as const satisfies Record<string, readonly Moment[]>
export interface Fate {
  readonly what: keyof typeof fates
  readonly at: Moment
}

export interface Process {
  visit(signup: Signup): Promise<Joined>
  readonly background: Loop
  readonly outboxes: readonly Loop[]
  state(): 'alive' | 'dead' | 'asleep'
  wake(): void
}

export interface ProcessParts {
  readonly time: Time
  readonly witness: Witness
  readonly leases: Leases
  readonly provider: Provider
  readonly destinations: readonly Destination[]
  /** The store at this moment: another one after it was opened again. */
  readonly store: () => Store
  /** Told of every call of the store. */
  readonly track: <T>(answer: Promise<T>) => Promise<T>
  /** Told once that a signup was stored. */
  readonly stored: (signup: Signup) => void
  /** What happens to whoever is there at this moment; undefined: nothing. */
  readonly fate: (at: Moment) => Fate['what'] | undefined
  /** Milliseconds for one call to the outside. */
  readonly timeout: number
}

const silent: Log = { info() {}, warn() {}, error() {} }
const never = () => new Promise<never>(() => {})

/** The business with the real store and everything that it keeps in memory. */
export function startProcess(parts: ProcessParts): Process {
  const { time, witness, leases, provider, destinations, store, track, stored, fate, timeout } = parts
  let state: ReturnType<Process['state']> = 'alive'
  let awake = Promise.withResolvers<void>()

  async function live(at: Moment): Promise<void> {
    if (state === 'dead') await never()
    if (state === 'asleep') await awake.promise
    const what = fate(at)
    if (what === undefined) return
    witness.seen(`${what} ${at}`)
    if (what === 'is refused by the store') throw new StoreUnavailable('as the history wants it')
    state = what === 'dies' ? 'dead' : 'asleep'
    await (what === 'dies' ? never() : awake.promise)
  }

  async function ask<Answer>(call: Call, make: () => Promise<Answer>): Promise<Answer> {
    await live(`before ${call}`)
    const answer = await make()
    if (!Array.isArray(answer) || answer.length > 0) await live(`after ${call}`)
    return answer
  }
  const askStore = <Answer>(call: Call, make: (store: Store) => Promise<Answer>, note: (answer: Answer) => void) =>
    ask(call, async () => {
      const answer = await track(make(store()))
      note(answer)
      return answer
    })
  const begun = ({ contact, token }: Registration) => leases.given(contact.id, token)
  const ended = (call: Call, what: string, token: string) => (wasHeld: boolean) => {
    if (wasHeld) leases.ended(what, token)
    else witness.seen(`${call}: the lease was lost`)
  }
  const nameOf = ({ number }: Delivery) => `delivery ${number}`

  const seenByMe: Store = {
    admit: signup =>
      askStore(
        'admit',
        store => store.admit(signup),
        admission => {
          witness.seen(`admit: ${admission.is}`)
          stored(signup)
          if (admission.is === 'pending now') begun(admission.registration)
        },
      ),
    begin: (...all) =>
      askStore(
        'begin',
        store => store.begin(...all),
        beginning => {
          witness.seen(`begin: ${beginning.is}`)
          if (beginning.is === 'ours') begun(beginning.registration)
        },
      ),
    beginDue: (...all) =>
      askStore(
        'beginDue',
        store => store.beginDue(...all),
        due => due.forEach(begun),
      ),
    conclude: (registration, conclusion) =>
      askStore(
        'conclude',
        store => store.conclude(registration, conclusion),
        ended('conclude', registration.contact.id, registration.token),
      ),
    hasten: () => track(store().hasten()),
    claim: (...all) =>
      askStore(
        'claim',
        store => store.claim(...all),
        due => {
          for (const delivery of due) leases.given(nameOf(delivery), delivery.token)
        },
      ),
    settle(delivery, settlement) {
      witness.seen(`settle: ${settlement.is}`)
      const note = ended('settle', nameOf(delivery), delivery.token)
      return askStore('settle', store => store.settle(delivery, settlement), note)
    },
    check: () => store().check(),
    failure: store().failure,
    close: () => Promise.reject(new Error('a process does not close what others use')),
  }
  const vendor: Provider = {
    ...provider,
    createContact: (...all) => ask('create', () => provider.createContact(...all)),
  }
  const common = { store: seenByMe, log: silent, clock: time.now, random: () => 0.5, announce: () => {} }
  const registering = register({ ...common, provider: vendor, timeout })

  return {
    visit: signup => join(signup, { ...common, register: registering, timeout }),
    background: registering.background,
    outboxes: destinations.map(destination =>
      deliveries({
        ...common,
        destination: { ...destination, deliver: (...all) => ask('deliver', () => destination.deliver(...all)) },
      }),
    ),
    state: () => state,
    wake() {
      if (state !== 'asleep') return
      witness.seen('a process woke up')
      state = 'alive'
      awake.resolve()
      awake = Promise.withResolvers()
    },
  }
}
