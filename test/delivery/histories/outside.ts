import type { Creation, DeliveryResult, Destination, Provider } from '../../../src/delivery/destination.ts'
import type { Failure } from '../../../src/http-client/call.ts'
import type { Contact, WaitlistEvent } from '../../../src/signup/contact.ts'
import { emailKey } from '../../../src/signup/contact.ts'
import type { Time } from './time.ts'

/** Everything that can happen to a call on its way, but an answer. "before" and "after" are about its effect. */
export const troubles = [
  'unreachable',
  'rate limited',
  'misconfigured',
  'in doubt before',
  'in doubt after',
  'in doubt, effect later',
  'hang before',
  'hang after',
] as const
export type Trouble = (typeof troubles)[number]

export const lineNames = ['creating', 'starting', 'receiving'] as const
export type LineName = (typeof lineNames)[number]

/** What a vendor can promise. */
export interface Abilities {
  /** Milliseconds for which it recognises a repeated start of its automation. */
  readonly repeatable: number
}

/** Milliseconds for one call to the outside. */
export const TIMEOUT = 1_000
/** Milliseconds there and back: long enough that others get between. */
const LATENCY = 20
/** What the other side asks for when it asks to wait. */
const ASKED_TO_WAIT = 30 * 60_000

type Line = ReturnType<typeof line>

/** The line to somebody outside. Carries calls there and answers back, unless it is told otherwise. */
function line(name: LineName, time: Time, fault: (what: string) => void) {
  let planned: Trouble | null = null
  let lasting: Trouble | null = null
  const onTheWay: (() => unknown)[] = []
  const underWay = new Set<string>()

  const inDoubt: Failure = { is: 'in doubt', why: 'no answer' }
  const over = (leave: AbortSignal) =>
    new Promise<void>(resolve => {
      if (leave.aborted) resolve()
      else leave.addEventListener('abort', () => resolve())
      void time.pause(TIMEOUT).then(resolve)
    })

  async function travel<Answer>(leave: AbortSignal, effect: () => Answer): Promise<Answer | Failure> {
    const trouble = planned ?? lasting
    planned = null
    if (trouble === null) {
      const answer = effect()
      await time.pause(LATENCY)
      return leave.aborted ? inDoubt : answer
    }
    if (trouble === 'in doubt after' || trouble === 'hang after') effect()
    if (trouble === 'in doubt, effect later') onTheWay.push(effect)
    await (trouble.startsWith('hang') ? over(leave) : time.pause(LATENCY))
    if (trouble === 'unreachable') return { is: 'unreachable', why: 'nobody there' }
    if (trouble === 'rate limited') return { is: 'rate limited', why: 'too many', retryAfter: ASKED_TO_WAIT }
    return trouble === 'misconfigured' ? { is: 'misconfigured', why: 'wrong key' } : inDoubt
  }

  return {
    /** Happens to the next call. */
    next(what: Trouble | null) {
      planned = what
    },
    /** Happens to every call until it is null. */
    always(what: Trouble | null) {
      lasting = what
    },
    /** `about`: the address or event; two calls about one at the same time are a fault. */
    async carry<Answer>(about: string, leave: AbortSignal, effect: () => Answer): Promise<Answer | Failure> {
      if (leave.aborted) return { is: 'unreachable', why: 'too late' }
      if (underWay.has(about)) fault(`${name}: two calls about ${about} at the same time`)
      underWay.add(about)
      try {
        return await travel(leave, effect)
      } finally {
        underWay.delete(about)
      }
    },
    /** Effects that are still on their way happen now. */
    arrive() {
      for (const effect of onTheWay.splice(0)) effect()
    },
  }
}

export type Outside = ReturnType<typeof outside>

/** A vendor with a list and an automation, and a receiver of webhooks that drops what it has seen, in this process. */
export function outside(time: Time, fault: (what: string) => void, { repeatable }: Abilities) {
  const lines = {
    creating: line('creating', time, fault),
    starting: line('starting', time, fault),
    receiving: line('receiving', time, fault),
  }
  const made = new Map<string, string>()
  const refusing = new Set<string>()
  /** Addresses, and the ids that we gave to them. */
  const refused = new Set<string>()
  const started: { readonly id: string; readonly email: string; readonly at: number }[] = []
  const received = new Map<string, string>()

  function create({ id, email }: Contact, doubt: boolean): Creation {
    const key = emailKey(email)
    const maker = made.get(key)
    if (maker !== undefined) return { is: doubt ? 'created' : 'existing' }
    // A call that comes late does not overtake the refusal of the same contact.
    if (refusing.has(key) || refused.has(id)) {
      refused.add(key).add(id)
      return { is: 'refused', reason: 'it does not like it' }
    }
    made.set(key, id)
    return { is: 'created', providerId: `at-the-vendor-${made.size}` }
  }

  function start({ id, contact }: WaitlistEvent): DeliveryResult {
    const email = emailKey(contact.email)
    if (!made.has(email)) fault(`the automation is started for ${email}, who is not on the list`)
    const isKnown = started.some(each => each.id === id && time.now() - each.at < repeatable)
    if (!isKnown) started.push({ id, email, at: time.now() })
    return { is: 'delivered' }
  }

  function receive({ id, contact }: WaitlistEvent): DeliveryResult {
    received.set(id, emailKey(contact.email))
    return { is: 'delivered' }
  }

  const destination = (
    name: string,
    how: number,
    to: Line,
    effect: (event: WaitlistEvent) => DeliveryResult,
  ): Destination => ({
    name,
    events: ['joined'],
    repeatable: how,
    concurrency: 8,
    deliver: (event, leave) => to.carry(event.id, leave, () => effect(event)),
  })
  const automation = destination('automation', repeatable, lines.starting, start)
  const receiver = destination('receiver', Number.POSITIVE_INFINITY, lines.receiving, receive)

  const provider: Provider = {
    name: 'vendor',
    timeout: TIMEOUT,
    automation,
    create: (contact, doubt, leave) =>
      lines.creating.carry(emailKey(contact.email), leave, () => create(contact, doubt)),
    remove: async () => ({ is: 'absent' }),
    check: async () => null,
  }
  return {
    lines,
    provider,
    destinations: [automation, receiver],
    /** Who made the contact of this address: 'owner', or the id that we gave it; undefined: there is none. */
    madeBy: (email: string) => made.get(email),
    /** How often the automation was started for it. */
    starts: (email: string) => started.filter(each => each.email === email).length,
    /** Different events about it that the receiver knows. */
    events: (email: string) => [...received.values()].filter(each => each === email).length,
    /** The owner adds a contact by hand. False: it is there. */
    add: (email: string) => !made.has(email) && !!made.set(email, 'owner'),
    refuses: (email: string, refuses: boolean) => void (refuses ? refusing.add(email) : refusing.delete(email)),
    /** Whether it ever refused this address to us. */
    hasRefused: (email: string) => refused.has(email),
  }
}
