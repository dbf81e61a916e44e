import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Admission, Registration, Store } from '../../src/waitlist/ports.ts'
import { parseSignup, type Signup } from '../../src/waitlist/signup.ts'

/** What a probe sees: the contact, and how many events and deliveries it has. */
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
  readonly provider?: string
  readonly destinations?: readonly string[]
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
  /** Why nothing is there any more after `close`, where that is so. */
  readonly forgets?: string
}

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

/** A clock that stands until it is moved. */
export function handClock(): { read: () => number; pass(milliseconds: number): void } {
  let now = Date.UTC(2030, 0, 1)
  return {
    read: () => now,
    pass(milliseconds) {
      now += milliseconds
    },
  }
}

export const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

export const idOf = (admission: Admission): string => (admission.is === 'listed now' ? admission.contactId : '')

/** Signs up somebody new with a store that has a provider. */
export async function pendingNow(store: Store, email = 'ada@example.com', name = 'Ada'): Promise<Registration> {
  const admission = await store.admit(signup(name, email))
  assert.equal(admission.is, 'pending now')
  return (admission as { registration: Registration }).registration
}

/** What somebody pending is told by an attempt that begins now. */
export async function begun(store: Store, contactId: string, provider: string): Promise<Registration> {
  const beginning = await store.begin(contactId, provider)
  assert.equal(beginning.is, 'ours')
  return (beginning as { registration: Registration }).registration
}
