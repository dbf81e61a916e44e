import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Delivery } from '../../src/waitlist/ports/outbox.ts'
import type { Admission, Store } from '../../src/waitlist/ports/signups.ts'
import type { Contact } from '../../src/waitlist/rules/contact.ts'
import type { HoldRules } from '../../src/waitlist/rules/hold.ts'
import { parseSignup, type Signup } from '../../src/waitlist/rules/signup.ts'

/** What a probe sees: the contact, whether it has its event (0 or 1), and how many deliveries, hand-overs among them. */
export interface StoredContact {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly state: string
  readonly providerId: string | null
  readonly events: number
  readonly deliveries: number
}

export interface PlaceOptions {
  /** None: the store is the list. */
  readonly provider?: string | null
  readonly destinations?: readonly string[]
  /** None: nobody is asked to confirm. */
  readonly asks?: string | null
  readonly trackSources?: boolean
  readonly holds?: HoldRules | null
  /** Milliseconds since 1970. */
  readonly clock?: () => number
}

/** A place of a test's own in which a store keeps its contacts. The adapter's test cleans it up after the test. */
export interface Place {
  /** Opens the store; its events are named `waitlist.joined`. After `close` it is called again to find what was kept. */
  open(options?: PlaceOptions): Promise<Store>
  /** Opens one more store beside the first, as another instance does; where it is missing, only one may be open. */
  another?(options?: PlaceOptions): Promise<Store>
  /** All contacts in the order in which they joined, read past the store; or why nobody else can read them. */
  readonly probe: (() => Promise<readonly StoredContact[]>) | { readonly impossible: string }
  /** Runs one statement past the store, as an operator does in a shell; missing where nobody can. */
  readonly sql?: RunSql
  /** Somebody else keeps the store from writing until the result is called; missing where nobody else can. */
  hold?(): Promise<() => Promise<unknown>>
  /** Why nothing is there any more after `close`, where that is so. */
  readonly forgets?: string
}

export type RunSql = (statement: string) => Promise<readonly Record<string, unknown>[]>

/** Makes an empty place for each test. */
export type MakePlace = (test: TestContext) => Promise<Place>

export const signup = (name: string, email: string): Signup => {
  const parsed = parseSignup({ name, email })
  assert.ok(!('problem' in parsed), 'problem' in parsed ? parsed.problem : '')
  return parsed
}

/** Closed at the end of the test, unless the test itself has closed it. */
export async function opened({ open }: Place, t: TestContext, options: PlaceOptions = {}): Promise<Store> {
  const store = await open(options)
  let closed: Promise<void> | undefined
  const close = () => (closed ??= store.close())
  t.after(close)
  return { ...store, close }
}

/** As many instances as asked for on one place, or the only one there may be. */
export async function instances(place: Place, t: TestContext, most: number, options: PlaceOptions = {}) {
  const first = await opened(place, t, options)
  const { another } = place
  if (another === undefined) return [first] as const
  const others = Array.from({ length: most - 1 }, () => opened({ ...place, open: another }, t, options))
  return [first, ...(await Promise.all(others))] as const
}

export async function stored({ probe }: Place, t: TestContext): Promise<readonly StoredContact[] | null> {
  if (typeof probe === 'function') return (await probe()).map(contact => ({ ...contact }))
  t.diagnostic(`what is stored was not looked at: ${probe.impossible}`)
  return null
}

/** A clock that stands until time passes. */
export function handClock() {
  let now = Date.UTC(2030, 0, 1)
  return {
    read: (): number => now,
    pass(milliseconds: number): void {
      now += milliseconds
    },
  }
}

export const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

export const DAY = 86_400_000

export const idOf = (admission: Admission): string => (admission.is === 'listed now' ? admission.contactId : '')
export const emailsOf = (deliveries: readonly Delivery[]) => deliveries.map(({ contact }) => contact.email)
export const numbersOf = (deliveries: readonly Delivery[]) => deliveries.map(({ number }) => number)

/** Without the members that are undefined, as two stores need not agree on them. */
export const bare = (contact: Contact): Partial<Contact> =>
  Object.fromEntries(Object.entries(contact).filter(([, value]) => value !== undefined))

/** Signs up somebody new with a store that has a provider. */
export async function pendingNow(store: Store, email = 'ada@example.com', name = 'Ada'): Promise<Delivery> {
  const admission = await store.admit(signup(name, email))
  assert.equal(admission.is, 'pending now')
  return (admission as { delivery: Delivery }).delivery
}

/** What `claim` knows somebody pending by, as a second signup is told. */
export async function numberOf(store: Store, email = 'ada@example.com'): Promise<number> {
  const admission = await store.admit(signup('Again', email))
  assert.equal(admission.is, 'still pending')
  return (admission as { contact: number }).contact
}

/** Claims the only delivery that is due, or that of one contact. */
export async function only(store: Store, destination = 'webhook', contact?: number): Promise<Delivery> {
  const deliveries = await store.claim(destination, 10, contact)
  assert.equal(deliveries.length, 1)
  return deliveries[0]!
}
