import type { Counts, DeliveryCount } from '../waitlist/alerts/counts.ts'
import { duration, whole } from './axis.ts'
import { counted, megabytes } from './html.ts'
import type { DestinationReading, Reading } from './reading.ts'

/** What needs the owner. */
export interface Problem {
  /** Now: signups are refused, or nothing goes on by itself. */
  readonly isUrgent: boolean
  readonly title: string
  readonly text: string
  /** What a destination said, which are not our words. */
  readonly why: string | null
  /** What shows more, or helps. */
  readonly commands: readonly string[]
}

/** Bytes. The embedded store takes no signups with less than 64 MiB. */
const LITTLE_SPACE = 1_000_000_000

/** What needs the owner, the urgent first. */
export function problemsIn(reading: Reading): readonly Problem[] {
  const { counts, destinations } = reading
  const deliveries = counts?.deliveries ?? []
  const set = new Set(destinations.map(({ name }) => name))
  const problems = [
    ...ofStore(reading),
    counts === null || counts.contacts.held === 0 ? null : ofHeld(counts),
    ...destinations.map(destination => {
      const isOurs = (each: DeliveryCount) => each.destination === destination.name && each.state === 'waiting'
      return ofDestination(destination, deliveries.find(isOurs), counts)
    }),
    ...deliveries.map(each => {
      if (each.state === 'abandoned') return ofAbandoned(each)
      return each.state === 'waiting' && !set.has(each.destination) ? ofUnset(each) : null
    }),
  ].filter(each => each !== null)
  return problems.sort((one, other) => Number(other.isUrgent) - Number(one.isUrgent))
}

const problem = (of: Partial<Problem> & Pick<Problem, 'title' | 'text'>): Problem => ({
  isUrgent: false,
  why: null,
  commands: [],
  ...of,
})

function* ofStore({ store, freeSpace, counts, countsFailed: why }: Reading): Generator<Problem> {
  if (store?.takesSignups === false) {
    const text = 'Visitors are asked to try again later. The log says why.'
    yield problem({ isUrgent: true, title: 'Signups cannot be stored', text, commands: ['waitlist check'] })
  }
  if (freeSpace !== null && freeSpace < LITTLE_SPACE) {
    const text = `${megabytes(freeSpace)} are free where the database is. When the disk is full, signups are refused.`
    yield problem({ title: 'The disk is almost full', text })
  }
  if (why !== null) {
    const text = `What this page counts is ${counts === null ? 'missing' : 'old'}; signups are not concerned.`
    yield problem({ title: 'The contacts could not be counted', text, why })
  }
}

function ofHeld({ contacts, held }: Counts): Problem {
  const title = `${counted(contacts.held, 'signup is', 'signups are')} held`
  const reasons = held.map(({ reason, count }) => `${reason} ${whole(count)}`).join(', ')
  const text = `By reason: ${reasons}. Nothing is sent until you release them. See docs/bots.md, “Held signups”.`
  // Those above the limit gave no other reason to be held. For the rest, somebody must look first.
  const release = held.some(({ reason }) => reason === 'above-limit') ? ['waitlist release --reason above-limit'] : []
  return problem({ title, text, commands: ['waitlist held', ...release] })
}

function ofDestination(
  { name, outage, lateAfter }: DestinationReading,
  waiting: DeliveryCount | undefined,
  counts: Counts | null,
): Problem | null {
  const age = counts === null || !waiting?.oldest ? 0 : counts.at.getTime() - waiting.oldest.getTime()
  if (outage === null && age <= lateAfter) return null
  const meanwhile =
    waiting === undefined ? 'Nothing waits for it.' : `${howMany(waiting)}, the oldest for ${duration(age)}.`
  const about = { why: waiting?.why ?? null, commands: ['waitlist check', listed('waiting', name)] }
  if (outage === null) return problem({ ...about, title: `Deliveries to ${name} are late`, text: meanwhile })
  if (outage === 'unreachable') {
    const text = `${meanwhile} Nothing is lost: it goes on when the other side answers.`
    return problem({ ...about, title: `${name} does not answer`, text })
  }
  const text = `${meanwhile} Nothing is lost: correct the key or the setting, and restart the service.`
  return problem({ ...about, isUrgent: true, title: `${name} refuses our key or settings`, text })
}

function ofAbandoned({ destination: name, count, why }: DeliveryCount): Problem {
  const commands = [listed('abandoned', name), `waitlist deliveries replay --abandoned${option(name)}`]
  const title = `${counted(count, 'delivery', 'deliveries')} to ${name} abandoned`
  return problem({ title, text: 'When the cause is gone, they can be replayed.', why, commands })
}

function ofUnset(waiting: DeliveryCount): Problem {
  const text = `${howMany(waiting)}, and will until it is set again.`
  const { destination: name } = waiting
  return problem({ title: `${name} is not set`, text, commands: [listed('waiting', name)] })
}

const howMany = ({ count }: DeliveryCount): string => counted(count, 'contact waits', 'contacts wait')

const listed = (state: DeliveryCount['state'], name: string) => `waitlist deliveries --state ${state}${option(name)}`

/** Only what is safe in a shell: a name in the store could be anything. */
const option = (name: string): string => (/^[a-z][a-z0-9-]*$/.test(name) ? ` --destination ${name}` : '')
