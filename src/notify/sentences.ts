import { type Outage, outageWords } from '../delivery/breaker.ts'
import type { Counts } from '../store/counts.ts'

/** What channels are told, in one sentence each. */

const number = new Intl.NumberFormat('en').format
const people = (count: number): string => (count === 1 ? '1 person' : `${number(count)} people`)

/** Those who joined and were invited since the last message; not neither. */
interface News {
  readonly joined: number
  readonly invited: number
  /** Contacts on the list; null: they could not be counted. */
  readonly total: number | null
  /** Whether an earlier message may have counted some of them. */
  readonly doubt: boolean
}

export function newsSentence({ joined, invited, total, doubt }: News): string {
  const inAll = total === null ? '' : `, ${number(total)} in all`
  const parts = [
    ...(joined === 0 ? [] : [`${people(joined)} joined the waitlist${inAll}`]),
    ...(invited === 0 ? [] : [`${people(invited)} ${invited === 1 ? 'was' : 'were'} invited`]),
  ]
  return `${parts.join('; ')}${doubt ? ' (some of them may have been announced before)' : ''}`
}

/** What a destination is to the channels. */
export interface Watched {
  readonly name: string
  /** What people call it, within a sentence. */
  readonly label: string
  /** What is kept for it while it is out. */
  readonly keeps: 'signups' | 'events'
}

const completed = { signups: 'completed', events: 'delivered' }

const capital = (sentence: string): string => sentence.charAt(0).toUpperCase() + sentence.slice(1)

/** `why`: what the log has, with the other side's own words; they are quoted. */
export const outageSentence = ({ label, keeps }: Watched, outage: Outage, why: string): string =>
  `${capital(label)} ${outageWords[outage]}: ${keeps} are kept and ${completed[keeps]} later. ${capital(why)}`

/** `lasted`: milliseconds. `waiting`: how many deliveries were kept; null: they could not be counted. */
export function recoverySentence({ label, keeps }: Watched, lasted: number, waiting: number | null): string {
  const minutes = Math.max(1, Math.round(lasted / 60_000))
  const time = minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
  const were =
    waiting === 1 ? `1 ${keeps.slice(0, -1)} was kept and is` : `${number(waiting ?? 0)} ${keeps} were kept and are`
  const kept = waiting === null ? 'what was kept is' : were
  return `${capital(label)} answers again after ${time}: ${kept} ${completed[keeps]} now`
}

export function heldSentence(held: Counts['held']): string {
  const count = held.reduce((sum, { count }) => sum + count, 0)
  const reasons = held.map(({ reason, count }) => `${reason} ${number(count)}`).join(', ')
  return `Signups are being held: ${number(count)} ${count === 1 ? 'needs' : 'need'} review (${reasons})`
}
