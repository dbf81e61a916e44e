import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import type { TestContext } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { type HandOver, handOver } from '../../src/waitlist/delivery/handover.ts'
import { type Joined, join } from '../../src/waitlist/join.ts'
import type { Creation, Provider } from '../../src/waitlist/ports/provider.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import type { Contact } from '../../src/waitlist/rules/contact.ts'
import { signup } from '../contracts/store.place.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { keptLog, type Line } from './log.ts'

/** A moment that tests wait for, such as the end of a call to the outside. */
export const moment = () => Promise.withResolvers<void>()

/** Nobody waits for longer than this in a test. */
export const TIMEOUT = 20_000
/** Never aborted. */
export const stay = () => new AbortController().signal

/** In memory, where the system has files there: that commits are synced is shown elsewhere. */
export function quickFolder(t: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(joinPath(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'waitlist-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export type Answer = (
  contact: Contact,
  doubt: boolean,
  signal: AbortSignal,
  forVisitor?: boolean,
) => Creation | Promise<Creation>

/** A hand-over as it is stored. */
export interface Pending {
  readonly email: string
  readonly attempts: number
  readonly doubt: number
  readonly due_at: number
  readonly leased: number
  readonly why: string | null
}

export interface Scene {
  readonly store: Store
  /** `now` only grows, for each process; what is on the wall is ahead of it by `ahead`. */
  readonly clock: { now: number; ahead: number }
  /** What the provider says; may be changed at any time. */
  readonly provider: { answer: Answer }
  /** Every question to the provider: the address and whether there was doubt. */
  readonly asked: { readonly email: string; readonly doubt: boolean; readonly at: number }[]
  readonly lines: Line[]
  readonly handing: HandOver
  /** How often an event was born. */
  readonly announced: () => number
  /** A process that starts now on the same store, with what it knows of the past: nothing. */
  restarted(store?: Store): HandOver
  /** A visitor comes, to the first process unless another one is named. */
  visit(email: string, handing?: HandOver, leave?: AbortSignal, timeout?: number): Promise<Joined>
  /** Signups that nobody has attempted to hand over. */
  waiting(count: number, what?: string): Promise<void>
  contacts(): ReturnType<typeof contactsIn>
  pending(): Pending[]
  /** Steps the clock by a second at a time, at each of which every process does all that it finds. */
  pass(seconds: number, ...processes: readonly HandOver[]): Promise<void>
}

/** The real store in a file of its own, the real hand-over, a provider that says what the test wants, a stepped clock. */
export async function scene(t: TestContext, answer: Answer = () => ({ is: 'created' })): Promise<Scene> {
  const path = joinPath(quickFolder(t), 'waitlist.db')
  const clock = { now: Date.parse('2026-11-21T12:00:00Z'), ahead: 0 }
  const provider = { answer }
  const asked: { email: string; doubt: boolean; at: number }[] = []
  const { log, lines } = keptLog()
  let announced = 0
  const port: Provider = {
    name: 'fake',
    timeout: TIMEOUT,
    async createContact(contact, doubt, leave, _, forVisitor) {
      asked.push({ email: contact.email, doubt, at: clock.now })
      return provider.answer(contact, doubt, leave, forVisitor)
    },
    automation: null,
    remove: async () => ({ is: 'absent' }),
    check: async () => null,
    close: async () => {},
  }
  const store = await sqliteStore({
    path,
    eventName: 'waitlist.joined',
    provider: 'fake',
    destinations: ['webhook'],
    clock: () => clock.now + clock.ahead,
  })
  t.after(() => store.close())
  const announce = () => void announced++
  const restarted = (other = store): HandOver =>
    handOver({ store: other, provider: port, log, announce, clock: () => clock.now, random: () => 0.5 })
  const handing = restarted()
  return {
    store,
    clock,
    provider,
    asked,
    lines,
    handing,
    restarted,
    announced: () => announced,
    visit: (email, by = handing, leave = stay(), timeout = TIMEOUT) =>
      join(signup('Ada Lovelace', email), {
        store,
        handOver: by,
        timeout,
        inBackground: null,
        signal: leave,
        announce,
      }),
    async waiting(count, what = 'waiting') {
      const all = Array.from({ length: count }, async (_, i) => {
        const admission = await store.admit(signup('Ada Lovelace', `${what}-${i}@example.com`))
        if (admission.is !== 'pending now') throw new Error(admission.is)
        const why = 'not attempted'
        await store.settle(admission.delivery, { is: 'waiting', wait: 0, doubt: false, why, uncounted: true })
      })
      await Promise.all(all)
    },
    contacts: () => contactsIn(path),
    pending: () =>
      withDatabase(path, database =>
        database
          .prepare(
            'select email, attempts, doubt, due_at, token is not null as leased, why from delivery' +
              " join contact on contact.number = contact where destination = 'fake' order by delivery.number",
          )
          .all(),
      ) as unknown as Pending[],
    async pass(seconds, ...processes) {
      const all = processes.length === 0 ? [handing] : processes
      for (let i = 0; i < seconds; i++) {
        clock.now += 1_000
        for (let done = 1; done > 0; ) {
          const counts = await Promise.all(all.map(({ loop }) => loop.once()))
          done = counts.reduce((sum, count) => sum + count, 0)
        }
      }
    },
  }
}
