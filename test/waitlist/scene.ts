import assert from 'node:assert/strict'
import { join as joinPath } from 'node:path'
import type { TestContext } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { Contact } from '../../src/waitlist/contact.ts'
import { type Joined, join } from '../../src/waitlist/join.ts'
import type { Creation, Log, Provider, Store } from '../../src/waitlist/ports.ts'
import { type Register, register } from '../../src/waitlist/register.ts'
import { signup } from '../contracts/store.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'

export interface Line {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly details: object
}

/** Keeps every line, and refuses what must never be in one. */
export function keptLog(): { readonly log: Log; readonly lines: Line[] } {
  const lines: Line[] = []
  const keep = (level: Line['level']) => (details: object, message: string) => {
    assert.doesNotMatch(JSON.stringify([details, message]), /@|lovelace/i, 'a person in the log')
    lines.push({ level, message, details })
  }
  return { log: { info: keep('info'), warn: keep('warn'), error: keep('error') }, lines }
}

/** A moment that tests wait for, such as the end of a call to the outside. */
export const moment = () => Promise.withResolvers<void>()

/** Nobody waits for longer than this in a test. */
export const TIMEOUT = 20_000
export const deadline = () => AbortSignal.timeout(TIMEOUT)

export type Answer = (contact: Contact, doubt: boolean, deadline: AbortSignal) => Creation | Promise<Creation>

export interface Scene {
  readonly store: Store
  readonly clock: { now: number }
  /** What the provider says; may be changed at any time. */
  provider: { answer: Answer }
  /** Every question to the provider: the address and whether there was doubt. */
  readonly asked: { readonly email: string; readonly doubt: boolean; readonly at: number }[]
  readonly lines: Line[]
  readonly registering: Register
  /** How often an event was born. */
  readonly announced: () => number
  /** A process that starts now on the same store, with what it knows of the past: nothing. */
  restarted(store?: Store): Register
  visit(email: string): Promise<Joined>
  contacts(): ReturnType<typeof contactsIn>
  /** The rows of what is pending. */
  pending(): { readonly doubt: number; readonly attempts: number; readonly due_at: number }[]
  /** Steps the clock by a second at a time, with one look of the background at each. */
  pass(seconds: number): Promise<void>
}

/** The real store in a file of its own, the real register, a provider that says what the test wants, a stepped clock. */
export async function scene(t: TestContext, answer: Answer = () => ({ is: 'created' })): Promise<Scene> {
  const path = joinPath(temporaryFolder(t), 'waitlist.db')
  const clock = { now: Date.parse('2026-11-21T12:00:00Z') }
  const provider = { answer }
  const asked: { email: string; doubt: boolean; at: number }[] = []
  const { log, lines } = keptLog()
  let announced = 0
  const port: Provider = {
    name: 'fake',
    async createContact(contact, doubt, deadline) {
      asked.push({ email: contact.email, doubt, at: clock.now })
      return provider.answer(contact, doubt, deadline)
    },
    automation: null,
    close: async () => {},
  }
  const store = await sqliteStore({
    ...{ path, eventName: 'waitlist.joined', provider: 'fake', destinations: ['webhook'], clock: () => clock.now },
  })
  t.after(() => store.close())
  const announce = () => void announced++
  const restarted = (other = store): Register =>
    register({
      ...{ store: other, provider: port, timeout: TIMEOUT, log, announce },
      ...{ clock: () => clock.now, random: () => 0.5 },
    })
  const registering = restarted()
  return {
    ...{ store, clock, provider, asked, lines, registering, restarted, announced: () => announced },
    visit: email => join(signup('Ada Lovelace', email), { store, register: registering, timeout: TIMEOUT, announce }),
    contacts: () => contactsIn(path),
    pending: () =>
      withDatabase(path, database =>
        database.prepare('select doubt, attempts, due_at from registration order by contact').all(),
      ) as unknown as ReturnType<Scene['pending']>,
    async pass(seconds) {
      for (let i = 0; i < seconds; i++) {
        clock.now += 1_000
        while ((await registering.background.once()) > 0);
      }
    },
  }
}
