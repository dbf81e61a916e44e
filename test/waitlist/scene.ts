import { join as joinPath } from 'node:path'
import type { TestContext } from 'node:test'
import type { Contact, WaitlistEvent } from '../../src/signup/contact.ts'
import { join } from '../../src/signup/join.ts'
import { events } from '../../src/waitlist/delivery/events.ts'
import { type HandOver, type HandOverParts, handOver } from '../../src/waitlist/delivery/handover.ts'
import type { DeliveryResult, Destination } from '../../src/waitlist/ports/destination.ts'
import type { Creation, Provider } from '../../src/waitlist/ports/provider.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { quickFolder } from '../harness/folder.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'
import { keptLog } from './log.ts'

/** A moment that tests wait for, such as the end of a call to the outside. */
export const moment = () => Promise.withResolvers<void>()

/** Nobody waits for longer than this in a test. */
const TIMEOUT = 20_000
/** Never aborted. */
export const stay = () => new AbortController().signal

/** A delivery as it is stored. */
export interface Row {
  readonly email: string
  readonly state: string
  readonly attempts: number
  readonly doubt: number
  readonly due_at: number
  readonly leased: number
  readonly why: string | null
}

interface Loop {
  once(): Promise<number>
}

/** The real store in a file of its own, a stepped clock, and what is logged. */
export async function stage(t: TestContext, destinations: readonly string[], provider: string | null = null) {
  const path = joinPath(quickFolder(t), 'waitlist.db')
  /** `now` only grows, for each process; what is on the wall is ahead of it by `ahead`. */
  const clock = { now: Date.parse('2026-11-21T12:00:00Z'), ahead: 0 }
  const wall = () => clock.now + clock.ahead
  const store = await storeAt(path, { provider, destinations, clock: wall })
  t.after(() => store.close())
  const { log, lines } = keptLog()
  let visitors = 0
  return {
    ...{ path, clock, wall, store, lines },
    /** What every dispatcher needs; one that announces an event says so itself. */
    parts: {
      ...{ store, log, clock: () => clock.now, random: () => 0.5 },
      announce(): void {
        throw new Error('a delivery of an event gives birth to none')
      },
    },
    joins: () => store.admit(signup('Ada Lovelace', `visitor-${visitors++}@example.com`)),
    contacts: () => contactsIn(path),
    rows: (destination: string) =>
      withDatabase(path, database =>
        database
          .prepare(
            'select email, delivery.state, attempts, doubt, due_at, token is not null as leased, why from delivery' +
              ' join contact on contact.number = contact where destination = ? order by delivery.number',
          )
          .all(destination),
      ) as unknown as Row[],
    /** Steps the clock by this much at a time; at each step the loop does all that it finds. */
    async pass(seconds: number, loop: Loop, step = 1): Promise<void> {
      for (let i = 0; i < seconds; i += step) {
        clock.now += step * 1_000
        while ((await loop.once()) > 0);
      }
    },
  }
}

/** A provider that does nothing but what it is told. */
export const providerThat = (createContact: Provider['createContact']): Provider => ({
  name: 'fake',
  timeout: TIMEOUT,
  createContact,
  automation: null,
  remove: async () => ({ is: 'absent' }),
  check: async () => null,
  close: async () => {},
})

type Answer = (
  contact: Contact,
  doubt: boolean,
  signal: AbortSignal,
  forVisitor?: boolean,
) => Creation | Promise<Creation>

export type Scene = Awaited<ReturnType<typeof scene>>

/** The real hand-over to a provider that says what the test wants. */
export async function scene(t: TestContext, answer: Answer = () => ({ is: 'created' })) {
  const { parts, rows, pass, ...here } = await stage(t, ['webhook'], 'fake')
  const { store, clock } = here
  /** May be changed at any time. */
  const provider = { answer }
  const asked: { readonly email: string; readonly doubt: boolean; readonly at: number }[] = []
  const port = providerThat(async (contact, doubt, leave, _, forVisitor) => {
    asked.push({ email: contact.email, doubt, at: clock.now })
    return provider.answer(contact, doubt, leave, forVisitor)
  })
  let announced = 0
  const announce = () => void announced++
  const started = (more: Partial<HandOverParts> = {}) => handOver({ ...parts, provider: port, announce, ...more })
  const handing = started()
  return {
    ...here,
    provider,
    /** Every question to the provider: the address and whether there was doubt. */
    asked,
    handing,
    /** How often an event was born. */
    announced: () => announced,
    /** A process that starts now on the same store, with what it knows of the past: nothing. */
    started,
    /** A visitor comes, to the first process unless another one is named. */
    visit: (email: string, by: HandOver = handing, signal = stay(), timeout = TIMEOUT) =>
      join(signup('Ada Lovelace', email), { store, handOver: by, timeout, inBackground: null, signal, announce }),
    /** Signups that nobody has attempted to hand over. */
    async waiting(count: number): Promise<void> {
      const all = Array.from({ length: count }, async (_, i) => {
        const admission = await store.admit(signup('Ada Lovelace', `waiting-${i}@example.com`))
        if (admission.is !== 'pending now') throw new Error(admission.is)
        const why = 'not attempted'
        await store.settle(admission.delivery, { is: 'retry', wait: 0, doubt: false, why, counts: false })
      })
      await Promise.all(all)
    },
    pending: () => rows('fake'),
    pass: (seconds: number) => pass(seconds, handing.loop),
  }
}

/** Two destinations, without a provider, so that a signup gives an event at once. */
export async function outbox(t: TestContext) {
  const { parts, rows, ...here } = await stage(t, ['webhook', 'crm'])
  const told: { readonly id: string; readonly to: string; readonly at: number }[] = []
  return {
    ...here,
    told,
    rows: (destination = 'webhook') => rows(destination),
    /** The loop to one destination, which says what `answer` does. */
    to(
      answer: (event: WaitlistEvent, mayBegin: () => boolean) => DeliveryResult | Promise<DeliveryResult>,
      more: Partial<Destination> = {},
      now = here.wall,
    ) {
      const destination: Destination = {
        name: 'webhook',
        events: ['joined'],
        repeatable: Number.POSITIVE_INFINITY,
        timeout: 20_000,
        concurrency: 4,
        async deliver(event, _, mayBegin = () => true) {
          told.push({ id: event.id, to: destination.name, at: here.clock.now })
          return answer(event, mayBegin)
        },
        ...more,
      }
      const { loop } = events({ ...parts, destination, now })
      t.after(() => loop.stop(0))
      return loop
    },
  }
}
