import { tryAcquireLock } from '../../store/outbox.ts'
import type { Store } from '../../store/store.ts'
import type { Alert, Channel, Outage } from '../ports/destination.ts'
import type { Counts } from './counts.ts'

export interface OutagesParts {
  readonly store: Pick<Store, 'transaction'>
  readonly channels: readonly Channel[]
  /** Aborted when the process stops. */
  readonly signal: AbortSignal
}

export type Outages = ReturnType<typeof outages>

/** A destination, as channels hear of it. */
export interface WatchedDestination {
  readonly name: string
  /** What people call it, within a sentence. */
  readonly called: string
  /** What is kept for it while it is out. */
  readonly keeps: 'signups' | 'events'
}

/** Milliseconds in which only one of several instances sends the same alert. Each notices an outage by itself. */
const SAME = 60_000
/** The same for what periodic checks find, which each instance makes at its own time (`watch.ts`, `holding.ts`). */
const SAME_PERIODIC = 600_000
const periodic: ReadonlySet<Alert['is']> = new Set(['late', 'on time', 'holding', 'not holding'])

/**
 * Tells channels that something is out, late or held, and that this is over.
 *
 * An alert is no delivery: it is tried once, and forgotten when that fails, since the log has it too; a message that may have
 * arrived counts as told. What changes while a message is on its way is told after it.
 */
export function outages({ store, channels, signal }: OutagesParts) {
  async function tellOnce(channel: Channel, about: string, alert: Alert): Promise<boolean> {
    const ttl = periodic.has(alert.is) ? SAME_PERIODIC : SAME
    const name = `${channel.name}: ${about} ${alert.is}`
    // A store that is out is no reason to say nothing.
    const isOurs = await store.transaction(tx => tryAcquireLock(tx, name, ttl)).catch(() => true)
    if (!isOurs) return true
    const told = await channel.tell(alert, signal)
    return told.is === 'delivered' || told.is === 'unclear'
  }

  /** To all channels, except that none is told of itself. */
  function telling<State>(
    about: string,
    initial: State,
    alertOf: (to: State, from: State) => Alert,
  ): (to: State) => void {
    const others = channels.filter(({ name }) => name !== about)
    const tell = others.map(channel => teller(initial, (to, from) => tellOnce(channel, about, alertOf(to, from))))
    return to => {
      for (const each of tell) each(to)
    }
  }

  const all: { name: string; isOut: boolean; tell: (to: Outage | 'answering' | 'late') => void }[] = []
  return {
    /** Returns what the breaker of a destination calls. */
    of({ name, called, keeps }: WatchedDestination): (to: Outage | 'answering') => void {
      const tell = telling<Outage | 'answering' | 'late'>(name, 'answering', (is, was) => {
        if (is === 'late') return { is, called }
        return is === 'answering' && was === 'late' ? { is: 'on time', called } : { is, called, keeps }
      })
      const own = { name, isOut: false, tell }
      all.push(own)
      return to => {
        own.isOut = to !== 'answering'
        tell(to)
      }
    },
    /** The names of all destinations for which something has waited for too long. One that is out is not among them. */
    late(names: ReadonlySet<string>): void {
      for (const { name, isOut, tell } of all) if (!isOut) tell(names.has(name) ? 'late' : 'answering')
    },
    /** Whether the store takes signups. */
    store: telling('store', true, takes => ({ is: takes ? 'storing' : 'refusing' })),
    /** Returns what is told whether signups are being held, and what is held. `already`: channels know that they are. */
    holding(already: boolean): (isHolding: boolean, held: Counts['held']) => void {
      let latest: Counts['held'] = []
      const tell = telling('signups', already, is => ({ is: is ? 'holding' : 'not holding', held: latest }))
      return (isHolding, held) => {
        latest = held
        tell(isHolding)
      }
    },
  }
}

/** `tell` says whether it arrived. */
function teller<State>(initial: State, tell: (to: State, from: State) => Promise<boolean>): (to: State) => void {
  let told = initial
  let latest = told
  let telling = false

  async function catchUp(): Promise<void> {
    telling = true
    while (latest !== told) {
      const to = latest
      if (await tell(to, told)) told = to
      // If nobody heard of the beginning, nobody has to hear of the end.
      else if (latest === to) latest = told
    }
    telling = false
  }

  return to => {
    latest = to
    if (!telling) void catchUp()
  }
}
