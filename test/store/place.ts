import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext } from 'node:test'
import type { HoldRules } from '../../src/holds/rules.ts'
import type { Contact, Signup } from '../../src/signup/contact.ts'
import { parseSignup } from '../../src/signup/parse.ts'
import type { Database, Value } from '../../src/store/database.ts'
import { type StoreLocation, withDatabase } from '../../src/store/open.ts'
import type { Delivery } from '../../src/store/outbox.ts'
import type { Admission } from '../../src/store/signups.ts'
import type { Store } from '../../src/store/store.ts'
import { STORED_CONTACTS } from '../harness/database.ts'
import { quickFolder } from '../harness/folder.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { type Operator, operatorOf, storeAt } from '../harness/store.ts'

export interface PlaceOptions {
  /** None: the store is the list. */
  readonly provider?: string | null
  readonly destinations?: readonly string[]
  /** The destination that asks for a confirmation; none: nobody has to confirm. */
  readonly confirmation?: string | null
  readonly trackSources?: boolean
  readonly holds?: HoldRules | null
  /** Milliseconds since 1970. */
  readonly clock?: () => number
}

/** An empty database of a test's own. */
export interface Place {
  readonly location: StoreLocation
  /** Opens the store; its events are named `waitlist.joined`. It is closed after the test, unless the test has closed it. */
  open(options?: PlaceOptions): Promise<Store>
  /** As many instances as asked for, or the only one that there may be. */
  instances(most: number, options?: PlaceOptions): Promise<readonly [Store, ...Store[]]>
  /** What the commands do. */
  readonly operator: Operator
  /** The database, as a command uses it. */
  command<T>(use: (database: Database) => Promise<T>, make?: boolean): Promise<T>
  /** Runs one statement past the store. */
  sql<Row = Record<string, unknown>>(text: string, values?: readonly Value[]): Promise<readonly Row[]>
  /** Keeps the store from writing until the result is called. */
  hold(): Promise<() => Promise<unknown>>
}

export type MakePlace = (t: TestContext) => Promise<Place>

/** Tests the same on a file and on a server. */
export function forEachEngine(what: string, tests: (place: MakePlace, engine: 'sqlite' | 'postgres') => void): void {
  // What is begun here ends with the file, and not with the first test that asks for it.
  void sharedPostgres()
  describe(`${what}, on SQLite`, () => tests(onSqlite, 'sqlite'))
  describe(`${what}, on PostgreSQL`, () => tests(onPostgres, 'postgres'))
}

export const onSqlite: MakePlace = async t => {
  const path = join(quickFolder(t), 'waitlist.db')
  const hold = async () => {
    const other = new DatabaseSync(path)
    other.exec('begin immediate')
    return async () => other.close()
  }
  return placeAt({ kind: 'sqlite', path }, t, 1, hold)
}

export const onPostgres: MakePlace = async t => {
  const url = await (await sharedPostgres()).database()
  const location = { kind: 'postgres', url } as const
  const hold = async () => {
    const done = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const ended = withDatabase(location, database =>
      database.transaction(async tx => {
        await tx.all('lock table contact in access exclusive mode')
        held.resolve()
        await done.promise
      }),
    )
    await held.promise
    return () => {
      done.resolve()
      return ended
    }
  }
  return placeAt(location, t, Number.POSITIVE_INFINITY, hold)
}

function placeAt(location: StoreLocation, t: TestContext, most: number, hold: Place['hold']): Place {
  async function open(options: PlaceOptions = {}): Promise<Store> {
    const store = await storeAt(location, options)
    t.after(store.close)
    return store
  }
  const command: Place['command'] = (use, make = false) => withDatabase(location, use, { make })
  return {
    location,
    operator: operatorOf({ store: location }),
    open,
    async instances(wanted, options) {
      const first = await open(options)
      const others = Array.from({ length: Math.min(wanted, most) - 1 }, () => open(options))
      return [first, ...(await Promise.all(others))]
    },
    command,
    sql: <Row>(text: string, values: readonly Value[] = []) =>
      command(database => database.transaction(tx => tx.all<Row>(text, values))),
    hold,
  }
}

export const signup = (name: string, email: string): Signup => {
  const parsed = parseSignup({ name, email })
  assert.ok(!('problem' in parsed), 'problem' in parsed ? parsed.problem : '')
  return parsed
}

/** A contact as it is stored, whether it has its event (0 or 1), and how many deliveries, hand-overs among them. */
export interface StoredContact {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly state: string
  readonly providerId: string | null
  readonly events: number
  readonly deliveries: number
}

export const stored = async ({ sql }: Place): Promise<readonly StoredContact[]> =>
  (await sql<StoredContact>(STORED_CONTACTS)).map(row => ({ ...row }))

/** A clock that stands until time passes, or it is set ahead or back. */
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

/** Without the members that are undefined. */
export const bare = (contact: Contact): Partial<Contact> =>
  Object.fromEntries(Object.entries(contact).filter(([, value]) => value !== undefined))

/** Signs up somebody new with a store that has a provider. */
export async function pendingNow(store: Store, email = 'ada@example.com', name = 'Ada'): Promise<Delivery> {
  const admission = await store.admit(signup(name, email))
  assert.equal(admission.is, 'pending now')
  return (admission as { delivery: Delivery }).delivery
}

/** Claims the only delivery that is due, or that of one contact. */
export async function only(store: Store, destination = 'webhook', address?: string): Promise<Delivery> {
  const deliveries = await store.claim(destination, 10, address)
  assert.equal(deliveries.length, 1)
  return deliveries[0]!
}
