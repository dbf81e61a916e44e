import type { Log } from '../config/operator.ts'
import { type OnOutage, type Outage, outageWords } from '../delivery/breaker.ts'
import { counted, number } from '../operate/output.ts'
import type { Counts } from '../store/counts.ts'
import { tryAcquireLock } from '../store/outbox.ts'
import type { Store } from '../store/store.ts'
import type { Channel } from './channel.ts'

interface AlertParts {
  readonly store: Pick<Store, 'transaction' | 'counts'>
  readonly channels: readonly Channel[]
  readonly log: Log
  /** Aborted when the process stops. */
  readonly signal: AbortSignal
}

/** What a destination is to the channels. */
export interface Watched {
  readonly name: string
  /** What people call it, within a sentence. */
  readonly label: string
  /** What is kept for it while it is out. */
  readonly keeps: 'signup' | 'event'
}

interface State extends Watched {
  outage: Outage | null
  why: string
  /** When the last outage began, and for how many milliseconds it lasted, once it is over. */
  since: number
  lasted: number
}

/** Milliseconds between two looks, in which only one of several instances sends the same alert. */
const INTERVAL = 60_000
/** Milliseconds from the first held signup to its alert, which then shows what kind of attack it is. */
const GATHER = 10_000
const HELD_INTERVAL = 3_600_000

/**
 * Tells channels that a destination broke or recovered, and that signups are held. An alert that does not arrive is tried
 * again at the next look, as long as it is true.
 */
export function alerts({ store, channels, log, signal }: AlertParts) {
  const states: State[] = []
  /** Whether each channel was told that a destination is out, and when it was, by both names. */
  const told = new Map<string, { readonly isOut: boolean; readonly at: number }>()
  let checking: Promise<unknown> = Promise.resolve()
  let gathering: NodeJS.Timeout | undefined

  async function tell(channel: Channel, state: State): Promise<void> {
    const { name, outage, why, lasted } = state
    const key = `${channel.name}: ${name}`
    const last = told.get(key) ?? { isOut: false, at: Number.NEGATIVE_INFINITY }
    const isOut = outage !== null
    if (channel.name === name || last.isOut === isOut || performance.now() < last.at + INTERVAL) return
    if (await isOurs(`${key} ${isOut ? 'broke' : 'recovered'}`, INTERVAL)) {
      const sentence =
        outage === null ? recoverySentence(state, lasted, await waitingFor(name)) : outageSentence(state, outage, why)
      const failure = await channel.send(sentence, signal)
      if (failure !== null && failure.is !== 'in doubt') return
    }
    told.set(key, { isOut, at: performance.now() })
  }

  /** A store that is out is no reason to say nothing. */
  const isOurs = (name: string, ttl: number): Promise<boolean> =>
    store.transaction(tx => tryAcquireLock(tx, name, ttl)).catch(() => true)

  async function waitingFor(name: string): Promise<number | null> {
    const counts = await store.counts().catch(() => null)
    return counts?.deliveries.find(each => each.destination === name && each.state === 'waiting')?.count ?? null
  }

  function check(): Promise<unknown> {
    const tellAll = () => Promise.all(channels.flatMap(channel => states.map(state => tell(channel, state))))
    // One after the other, so that nobody is told twice.
    checking = checking.then(tellAll)
    return checking
  }

  async function tellHeld(): Promise<void> {
    gathering = undefined
    const counts = await store.counts().catch(() => null)
    if (counts === null || counts.held.length === 0 || !(await isOurs('signups are held', HELD_INTERVAL))) return
    log.warn({ held: counts.contacts.held }, 'signups are being held: see waitlist list --state held')
    await Promise.all(channels.map(channel => channel.send(heldSentence(counts.held), signal)))
  }

  const timer = setInterval(check, INTERVAL).unref()
  return {
    watch(watched: Watched): OnOutage {
      const state: State = { ...watched, outage: null, why: '', since: 0, lasted: 0 }
      states.push(state)
      return (outage, why) => {
        if (outage === null) state.lasted = performance.now() - state.since
        else if (state.outage === null) state.since = performance.now()
        Object.assign(state, { outage, why })
        return check()
      }
    },
    /** A signup was held. */
    held(): void {
      gathering ??= setTimeout(tellHeld, GATHER).unref()
    },
    stop(): void {
      clearInterval(timer)
      clearTimeout(gathering)
    },
  }
}

const completed = { signup: 'completed', event: 'delivered' }

const capital = (sentence: string): string => sentence.charAt(0).toUpperCase() + sentence.slice(1)

/** `why`: what the log has, with the other side's own words; they are quoted. */
const outageSentence = ({ label, keeps }: Watched, outage: Outage, why: string): string =>
  `${capital(label)} ${outageWords[outage]}: ${keeps}s are kept and ${completed[keeps]} later. ${capital(why)}`

/** `lasted`: milliseconds. `waiting`: how many deliveries were kept; null: they could not be counted. */
export function recoverySentence({ label, keeps }: Watched, lasted: number, waiting: number | null): string {
  const minutes = Math.max(1, Math.round(lasted / 60_000))
  const time = minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
  const [was, is] = waiting === 1 ? ['was', 'is'] : ['were', 'are']
  const kept = waiting === null ? 'what was kept is' : `${counted(waiting, keeps)} ${was} kept and ${is}`
  return `${capital(label)} answers again after ${time}: ${kept} ${completed[keeps]} now`
}

function heldSentence(held: Counts['held']): string {
  const count = held.reduce((sum, { count }) => sum + count, 0)
  const reasons = held.map(({ reason, count }) => `${reason} ${number(count)}`).join(', ')
  return `Signups are being held: ${number(count)} ${count === 1 ? 'needs' : 'need'} review (${reasons})`
}
