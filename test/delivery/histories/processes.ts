import type { DeliveryResult, Destination } from '../../../src/delivery/destination.ts'
import { eventWorker } from '../../../src/delivery/events.ts'
import { handover } from '../../../src/delivery/handover.ts'
import type { Worker } from '../../../src/delivery/worker.ts'
import type { Signup } from '../../../src/signup/contact.ts'
import { type Joined, join } from '../../../src/signup/join.ts'
import { StoreUnavailable } from '../../../src/store/database.ts'
import type { Delivery, Settlement } from '../../../src/store/outbox.ts'
import type { Store } from '../../../src/store/store.ts'
import { type Outside, TIMEOUT } from './outside.ts'
import { type Time, turn } from './time.ts'

/** A moment in the life of a process: a call is about to be made, or its answer was about to arrive. */
type Call = 'admit' | 'claim' | 'settle' | 'create' | 'deliver'
export type Moment = `${'before' | 'after'} ${Call}`
const both = (...calls: readonly Call[]) => calls.flatMap((call): Moment[] => [`before ${call}`, `after ${call}`])

/** What can happen to a process, and when. It sleeps when its machine does: longer than its leases. */
export const fates = {
  dies: both('admit', 'claim', 'settle', 'create', 'deliver'),
  sleeps: ['before settle'],
  'is refused by the store': both('admit', 'claim', 'settle'),
} as const satisfies Record<string, readonly Moment[]>
export interface Fate {
  readonly what: keyof typeof fates
  readonly at: Moment
}

/** Milliseconds. */
const SLEEP = 61_000

type Loop = Pick<Worker<DeliveryResult>, 'once'>

interface Process {
  visit(signup: Signup): Promise<Joined>
  readonly handOvers: readonly Loop[]
  readonly outboxes: readonly Loop[]
  isDead(): boolean
  /** Whatever it was about ends where it is. */
  end(): void
}

/** What a process is about, and its end; of a process that died it never comes. */
export interface Work {
  readonly by: Process
  readonly done: Promise<void>
}

export interface Parts {
  readonly time: Time
  readonly store: Store
  readonly outside: Pick<Outside, 'provider' | 'destinations'>
  readonly fault: (what: string) => void
  /** Told once that a signup was stored. */
  readonly stored: (signup: Signup) => void
  /** Told of every outcome that was stored. */
  readonly settled: (delivery: Delivery, settlement: Settlement) => void
}

const never = () => new Promise<never>(() => {})
const { signal } = new AbortController()

/** The business with the real store and everything that it keeps in memory. */
function startProcess(
  { time, store, outside, fault, stored, settled }: Parts,
  fate: (at: Moment) => Fate['what'] | undefined,
  leases: Map<number, string>,
): Process {
  let isDead = false
  let awake: Promise<unknown> = Promise.resolve()

  async function live(at: Moment): Promise<void> {
    await awake
    if (isDead) await never()
    const what = fate(at)
    if (what === undefined) return
    if (what === 'is refused by the store') throw new StoreUnavailable('as the history wants it')
    if (what === 'sleeps') awake = time.pause(SLEEP)
    else isDead = true
    await (isDead ? never() : awake)
  }

  async function ask<Answer>(call: Call, make: () => Promise<Answer>): Promise<Answer> {
    await live(`before ${call}`)
    const answer = await make()
    if (!Array.isArray(answer) || answer.length > 0) await live(`after ${call}`)
    return answer
  }
  const given = ({ number, token }: Delivery) => void leases.set(number, token)

  const seenByMe: Store = {
    ...store,
    admit: signup =>
      ask('admit', async () => {
        const admission = await store.admit(signup)
        stored(signup)
        if (admission.is === 'pending now') given(admission.delivery)
        return admission
      }),
    claim: (...all) =>
      ask('claim', async () => {
        const claimed = await store.claim(...all)
        claimed.forEach(given)
        return claimed
      }),
    settle: (delivery, settlement) =>
      ask('settle', async () => {
        const wasHeld = await store.settle(delivery, settlement)
        if (!wasHeld) return false
        // Only the last to be given a lease may end it, and once.
        if (leases.get(delivery.number) !== delivery.token) fault('a lease that was lost was ended')
        settled(delivery, settlement)
        leases.delete(delivery.number)
        return true
      }),
  }
  const log = { info() {}, warn() {}, error() {} }
  const common = { store: seenByMe, log, announce() {} }
  const { provider, destinations } = outside
  const create: typeof provider.create = (...all) => ask('create', () => provider.create(...all))
  const handing = handover({ ...provider, create }, 'the vendor', common)

  return {
    visit: signup => join(signup, { ...common, handOver: handing, timeout: TIMEOUT, inBackground: null, signal }),
    handOvers: [handing],
    outboxes: destinations.map(destination => {
      const deliver: Destination['deliver'] = (...all) => ask('deliver', () => destination.deliver(...all))
      return eventWorker({ ...destination, deliver }, destination.name, common)
    }),
    isDead: () => isDead,
    end() {
      isDead = true
    },
  }
}

/** Turns that one command may take; it takes some dozens. */
const PATIENCE = 2_000

/**
 * What a store has yet to answer. Of all histories: the processes of an earlier one may still be at work, and time must
 * not go on while the store is, or it would seem hung.
 */
const asked = new Set<Promise<unknown>>()

function tracked(store: Store): Store {
  const track =
    <Given extends unknown[], Answer>(ask: (...given: Given) => Promise<Answer>) =>
    (...given: Given): Promise<Answer> => {
      const answer = ask(...given)
      asked.add(answer)
      const over = () => void asked.delete(answer)
      answer.then(over, over)
      return answer
    }
  return { ...store, admit: track(store.admit), claim: track(store.claim), settle: track(store.settle) }
}

/** The store owes no answer, and nothing more happens before time goes on. */
async function quiet(): Promise<void> {
  do {
    await Promise.allSettled(asked)
    await turn()
  } while (asked.size > 0)
}

/** Two processes over one store, each of which is started again when it has died. */
export function startProcesses(parts: Parts) {
  const { time, fault } = parts
  const leases = new Map<number, string>()
  let destined: Fate | null = null
  let visits = 0

  function fate(at: Moment): Fate['what'] | undefined {
    if (destined?.at !== at) return undefined
    const { what } = destined
    destined = null
    return what
  }
  const start = () => startProcess({ ...parts, store: tracked(parts.store) }, fate, leases)
  let running = [start(), start()]

  /** The store refuses, now and then, since the history wants it. Everything else is a fault. */
  const failed = (error: Error): void => {
    if (!(error instanceof StoreUnavailable)) fault(String(error))
  }

  return {
    /** What happens to the next process that comes to this moment; null: nothing more. */
    destine(fate: Fate | null) {
      destined = fate
    },
    /** A visitor comes to one of them. */
    visit(signup: Signup, over: (told: Joined['is'] | 'failed') => void): Work {
      const by = running[visits++ % running.length]!
      const notStored = (error: Error): void => {
        over('failed')
        failed(error)
      }
      return { by, done: by.visit(signup).then(({ is }) => over(is), notStored) }
    },
    /** One step of these loops of every process, after this time. */
    step: (what: 'handOvers' | 'outboxes', after = 0): Work[] =>
      running.flatMap(by =>
        by[what].map(({ once }) => ({
          by,
          done: time
            .pause(after)
            .then(once)
            .then(() => {}, failed),
        })),
      ),
    /** Lets time pass until this work is over, or whoever does it is dead. */
    async through(...work: readonly Work[]) {
      const left = new Set(work)
      for (const each of work) void each.done.then(() => left.delete(each))
      let turns = 0
      do {
        if (turns++ > PATIENCE) throw new Error('something does not come to an end')
        await quiet()
      } while (left.size > 0 && time.next())
      if ([...left].some(({ by }) => !by.isDead())) throw new Error('something waits for what never comes')
      running = running.map(process => (process.isDead() ? start() : process))
    },
    pass: (milliseconds: number) => time.pass(milliseconds, quiet),
    /** What they keep, to be stored later, ends with them. */
    restart() {
      for (const process of running) process.end()
      running = [start(), start()]
    },
  }
}
