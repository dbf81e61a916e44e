import { events } from '../../../src/waitlist/delivery/events.ts'
import { handOver } from '../../../src/waitlist/delivery/handover.ts'
import type { Loop } from '../../../src/waitlist/delivery/loop.ts'
import { type Joined, join } from '../../../src/waitlist/join.ts'
import type { Destination } from '../../../src/waitlist/ports/destination.ts'
import type { Log } from '../../../src/waitlist/ports/log.ts'
import type { Delivery, Settlement } from '../../../src/waitlist/ports/outbox.ts'
import type { Provider } from '../../../src/waitlist/ports/provider.ts'
import { StoreUnavailable } from '../../../src/waitlist/ports/signups.ts'
import type { Store } from '../../../src/waitlist/ports/store.ts'
import type { Signup } from '../../../src/waitlist/rules/signup.ts'
import type { Leases } from './leases.ts'
import type { Witness } from './line.ts'
import type { Time } from './time.ts'

/** `claim`, `settle`: of hand-overs. `claim one`: of that of a visitor who waits. */
const storeCalls = ['admit', 'claim one', 'claim', 'settle', 'claim events', 'settle event'] as const
const calls = [...storeCalls, 'create', 'deliver'] as const
type Call = (typeof calls)[number]

/** A moment in the life of a process: a call is about to be made, or its answer was about to arrive. */
export type Moment = `${'before' | 'after'} ${Call}`
const moments = (calls: readonly Call[]) => calls.flatMap((call): Moment[] => [`before ${call}`, `after ${call}`])

/** What can happen to a process, and when. It sleeps when its machine does: longer, perhaps, than its leases. */
export const fates = {
  dies: moments(calls),
  sleeps: ['before settle', 'before settle event'],
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
  /** Whether the provider answered this process last, and not while it was to be left alone: no breaker is open. */
  wasAnswered(): boolean
  state(): 'alive' | 'dead' | 'asleep'
  wake(): void
  /** Whatever it was about ends where it is. */
  end(): void
}

export interface ProcessParts {
  readonly time: Time
  readonly witness: Witness
  readonly leases: Leases
  /** The one that is configured when the process starts. */
  readonly provider: () => Provider
  readonly destinations: readonly Destination[]
  /** The store at this moment: another one after it was opened again. */
  readonly store: () => Store
  /** Told of every call of the store. */
  readonly track: <T>(answer: Promise<T>) => Promise<T>
  /** Told once that a signup was stored. */
  readonly stored: (signup: Signup) => void
  /** Told of every outcome that was stored. */
  readonly settled: (delivery: Delivery, settlement: Settlement) => void
  /** What happens to whoever is there at this moment; undefined: nothing. */
  readonly fate: (at: Moment) => Fate['what'] | undefined
  /** Milliseconds that a visitor waits for somebody else's attempt. */
  readonly timeout: number
}

const silent: Log = { info() {}, warn() {}, error() {} }
const never = () => new Promise<never>(() => {})

/** The business with the real store and everything that it keeps in memory. */
export function startProcess(parts: ProcessParts): Process {
  const { time, witness, leases, destinations, store, track, stored, settled, fate, timeout } = parts
  const provider = parts.provider()
  let state: ReturnType<Process['state']> = 'alive'
  let answered = true
  let heldUntil = 0
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
  const nameOf = ({ number }: Delivery) => `delivery ${number}`
  const given = (delivery: Delivery) => leases.given(nameOf(delivery), delivery.token)

  const seenByMe: Store = {
    admit: signup =>
      askStore(
        'admit',
        store => store.admit(signup),
        admission => {
          witness.seen(`admit: ${admission.is}`)
          stored(signup)
          if (admission.is === 'pending now') given(admission.delivery)
        },
      ),
    isBehind: () => store().isBehind(),
    claim(destination, most, contact) {
      const whole = destination === provider.name ? 'claim' : 'claim events'
      return askStore(
        contact === undefined ? whole : 'claim one',
        store => store.claim(destination, most, contact),
        claimed => {
          if (contact !== undefined)
            witness.seen(`claim one: ${claimed.length === 0 ? 'somebody else has it' : 'ours'}`)
          claimed.forEach(given)
        },
      )
    },
    settle(delivery, settlement) {
      witness.seen(`settle: ${settlement.is}`)
      return askStore(
        delivery.contact.event === undefined ? 'settle' : 'settle event',
        store => store.settle(delivery, settlement),
        wasHeld => {
          if (!wasHeld) return witness.seen('settle: the lease was lost')
          leases.ended(nameOf(delivery), delivery.token)
          settled(delivery, settlement)
        },
      )
    },
    claimDigest: (...all) => store().claimDigest(...all),
    settleDigest: (...all) => store().settleDigest(...all),
    acquireInterval: (...all) => store().acquireInterval(...all),
    prune: (...all) => store().prune(...all),
    fillMailboxes: (...all) => store().fillMailboxes(...all),
    secret: name => store().secret(name),
    countListed: () => store().countListed(),
    counts: () => store().counts(),
    check: () => store().check(),
    failure: store().failure,
    refuse() {
      throw new Error('a process does not refuse what others use')
    },
    close: () => Promise.reject(new Error('a process does not close what others use')),
  }
  const vendor: Provider = {
    ...provider,
    async createContact(...all) {
      const creation = await ask('create', () => provider.createContact(...all))
      if ('retryAfter' in creation) heldUntil = time.now() + (creation.retryAfter ?? 0)
      answered = !('why' in creation) && time.now() >= heldUntil
      return creation
    },
  }
  const announce = () => {}
  const common = { store: seenByMe, log: silent, clock: time.now, random: () => 0.5, announce }
  const handing = handOver({ ...common, provider: vendor })
  const leave = new AbortController().signal

  return {
    visit: signup =>
      join(signup, { store: seenByMe, handOver: handing, timeout, inBackground: null, signal: leave, announce }),
    background: handing.loop,
    outboxes: destinations.map(destination => {
      const deliver: Destination['deliver'] = (...all) => ask('deliver', () => destination.deliver(...all))
      return events({ ...common, destination: { ...destination, deliver }, now: time.now }).loop
    }),
    wasAnswered: () => answered,
    state: () => state,
    wake() {
      if (state !== 'asleep') return
      witness.seen('a process woke up')
      state = 'alive'
      awake.resolve()
      awake = Promise.withResolvers()
    },
    end() {
      state = 'dead'
    },
  }
}
