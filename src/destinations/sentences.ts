import type { Alert } from '../waitlist/ports/destination.ts'
import { oneLine } from './names.ts'

const grouped = new Intl.NumberFormat('en')

/** What a channel is told, in one sentence. `quote`: how a text that others chose is written there. */
export function sentenceOf(alert: Alert, quote: (text: string) => string): string {
  const called = 'called' in alert ? quote(alert.called) : ''
  switch (alert.is) {
    case 'digest':
      return `${digest(alert, quote)}${inDoubt(alert)}`
    case 'holding':
      return `Signups are being held: ${held(alert)} (${reasonsOf(alert)}): see waitlist held`
    case 'not holding':
      return `No more signups are being held: ${held(alert)}${alert.held.length === 0 ? '' : `, see waitlist held`}`
    case 'refusing':
      return 'Signups cannot be stored, and visitors are asked to try again later: the log says why'
    case 'storing':
      return 'Signups are stored again'
    case 'late':
      return `Deliveries to ${called} are late, the oldest by more than an hour: see waitlist deliveries`
    case 'on time':
      return `Deliveries to ${called} are on time again`
    case 'answering':
      return `${capital(called)} answers again: the ${alert.keeps} that were kept are ${completed[alert.keeps]} now`
    default: {
      const what = alert.is === 'misconfigured' ? 'refuses our settings' : 'does not answer'
      return `${capital(called)} ${what}: ${alert.keeps} are kept and ${completed[alert.keeps]} later`
    }
  }
}

type Held = Alert & { readonly is: 'holding' | 'not holding' }

function held({ held }: Held): string {
  const count = held.reduce((sum, { count }) => sum + count, 0)
  return count === 0 ? 'none waits for you' : count === 1 ? '1 waits for you' : `${grouped.format(count)} wait for you`
}

const reasonsOf = ({ held }: Held): string =>
  held.map(({ reason, count }) => `${reason} ${grouped.format(count)}`).join(', ')

const completed = { signups: 'completed', events: 'delivered' }

const capital = (sentence: string): string => sentence.charAt(0).toUpperCase() + sentence.slice(1)

type Digest = Alert & { readonly is: 'digest' }

const people = (count: number): string => (count === 1 ? '1 person' : `${grouped.format(count)} people`)

function digest(alert: Digest, quote: (text: string) => string): string {
  const { joined, invited } = alert
  const told = joined === 0 ? [] : [`${joinedIn(alert, quote)} joined the waitlist${inAll(alert)}`]
  if (invited > 0) told.push(`${people(invited)} ${invited === 1 ? 'was' : 'were'} invited`)
  return told.join('; ')
}

/** "37 people", "Ada Lovelace", "Ada Lovelace and Grace Hopper", "Ada Lovelace, Grace Hopper and 35 more". */
function joinedIn({ joined, names }: Digest, quote: (text: string) => string): string {
  const parts = names.map(name => quote(shown(name)))
  const others = joined - parts.length
  if (parts.length === 0) parts.push(people(joined))
  else if (others > 0) parts.push(`${grouped.format(others)} more`)
  const last = parts.pop()
  return parts.length === 0 ? last! : `${parts.join(', ')} and ${last}`
}

const inAll = ({ total }: Digest): string => (total === null ? '' : `, ${grouped.format(total)} in all`)

/** A chat cannot drop a repetition, so readers are told that there may be one. */
const inDoubt = ({ doubt }: Digest): string => (doubt ? ' (some of them may have been announced before)' : '')

/** Code points of a name: ten of them fit into a message, however they are escaped. */
const LONGEST_NAME = 40

function shown(name: string): string {
  const line = oneLine(name)
  const characters = [...line]
  return characters.length <= LONGEST_NAME ? line : `${characters.slice(0, LONGEST_NAME - 1).join('')}…`
}
