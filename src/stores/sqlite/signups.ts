import { randomUUID, randomUUIDv7 } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { LEASE } from '../../waitlist/ports/outbox.ts'
import type { Admission } from '../../waitlist/ports/signups.ts'
import {
  ASKED_DISTANCE,
  ASKED_MOST,
  type Contact,
  type ContactState,
  type Source,
  sourceParameters,
} from '../../waitlist/rules/contact.ts'
import type { HoldRules } from '../../waitlist/rules/hold.ts'
import { mailboxOf } from '../../waitlist/rules/mailbox.ts'
import { emailKey, type Signup } from '../../waitlist/rules/signup.ts'
import { credentialsOf } from '../gate.ts'
import { UPSERT_DELIVERY } from '../rows.ts'
import { gating } from './gate.ts'
import { HIGHEST_NUMBER } from './sql.ts'

/** What the store needs to know about the rest of the service. */
export interface SignupOptions {
  /** The name of every event. */
  readonly eventName: string
  /** The destinations of every event. */
  readonly destinations: readonly string[]
  /** The provider that confirms a contact before it is listed; null: there is none. */
  readonly provider: string | null
  /** The destination that asks new contacts to confirm their address before all else; null: nobody has to. */
  readonly asks: string | null
  /** Whether the sources of signups are kept. */
  readonly trackSources: boolean
  /** Null: no signup is held, and none has a proof. */
  readonly holds: HoldRules | null
}

/** Adds the deliveries of a contact that was just listed. */
function announcing(database: DatabaseSync, destinations: readonly string[]) {
  const insert = database.prepare('insert into delivery (contact, destination, due_at) values (?, ?, ?)')
  return (contact: number, now: number): void => {
    for (const destination of destinations) insert.run(contact, destination, now)
  }
}

/** Lists a pending contact, with its event if `joined`. Deletes its hand-overs and adds the deliveries of its event. */
export function listing(database: DatabaseSync, { eventName, destinations }: SignupOptions) {
  const list = database.prepare(
    "update contact set state = 'listed', provider_id = ?, event_name = ?, event_at = ?" +
      " where number = ? and state = 'pending'",
  )
  const forget = database.prepare('delete from delivery where contact = ?')
  const announce = announcing(database, destinations)
  return (contact: number, joined: boolean, providerId: string | undefined, now: number): void => {
    if (list.run(providerId ?? null, joined ? eventName : null, joined ? now : null, contact).changes === 0) return
    forget.run(contact)
    if (joined) announce(contact, now)
  }
}

interface Unlisted {
  readonly number: number
  readonly id: string
  readonly state: ContactState
}

/** Asks contacts that are unconfirmed to confirm their address, by a delivery to `asks`. */
function asking(database: DatabaseSync, asks: string) {
  const insert = database.prepare(
    `insert into delivery (contact, destination, event, due_at) values (?, ?, 'asked', ?) ${UPSERT_DELIVERY}`,
  )
  const count = database.prepare(
    `update contact set asked_at = ?1, asks = asks + 1 where number = ?2 and asks < ${ASKED_MOST}` +
      ` and ?1 - asked_at >= ${ASKED_DISTANCE} and not exists (select 1 from delivery` +
      " where contact = ?2 and destination = ?3 and event = 'asked' and state = 'waiting')",
  )
  return {
    first: (contact: number, now: number) => void insert.run(contact, asks, now),
    /** Whether it was asked again. */
    again(contact: number, now: number): boolean {
      if (count.run(now, contact, asks).changes === 0) return false
      insert.run(contact, asks, now)
      return true
    },
  }
}

/** What is stored of a signup. */
type Given = Pick<Signup, 'name' | 'email' | 'source' | 'proof' | 'unverified'>

/** Prepares the statements, and returns the function that admits a batch inside an open transaction. */
export function admitting(database: DatabaseSync, options: SignupOptions) {
  const { provider, eventName, destinations, asks, trackSources, holds } = options
  const columns = [
    ...['number', 'id', 'name', 'email', 'email_key', 'mailbox', 'created_at', 'state', 'event_name', 'event_at'],
    ...(asks === null ? [] : ['asked_at', 'asks']),
    ...(trackSources ? ['source'] : []),
    ...(holds === null ? [] : ['reason']),
  ]
  const insert = database.prepare(
    `insert into contact (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})` +
      ' on conflict (email_key) do nothing',
  )
  const highest = database.prepare(`select ${HIGHEST_NUMBER} as number`)
  let number = 0
  const handOver = database.prepare(
    'insert into delivery (contact, destination, attempts, due_at, token) values (?, ?, 1, ?, ?) returning number',
  )
  const unlisted = database.prepare(
    "select number, id, state from contact where email_key = ? and state not in ('listed', 'invited')",
  )
  const ask = asks === null ? null : asking(database, asks)
  const announce = announcing(database, destinations)
  const list = listing(database, options)
  const gate = holds === null ? null : gating(database, holds)

  /** A pending contact waits for the provider. Without one, as after another setting or an import, the next signup lists it. */
  function known(key: string, now: number): Admission {
    const row = unlisted.get(key) as Unlisted | undefined
    if (row === undefined) return { is: 'already listed' }
    if (row.state === 'held') return { is: 'still held' }
    if (row.state === 'unconfirmed') {
      return { is: 'unconfirmed', contactId: row.id, asked: ask?.again(row.number, now) ?? false }
    }
    if (provider !== null) return { is: 'still pending', contact: row.number }
    list(row.number, true, undefined, now)
    return { is: 'listed now', contactId: row.id }
  }

  function admit({ name, email, source, proof, unverified }: Given, now: number, isTrial: boolean): Admission {
    const id = randomUUIDv7()
    const key = emailKey(email)
    const reason =
      isTrial || gate === null ? null : gate.reasonOf(name, email, credentialsOf({ email, proof, unverified }), now)
    if (reason === 'spent') return { is: 'spent' }
    const letIn = asks !== null ? 'unconfirmed' : provider === null ? 'listed' : 'pending'
    const state = reason === null ? letIn : 'held'
    const isAsked = state === 'unconfirmed'
    const { changes } = insert.run(
      number + 1,
      id,
      name,
      email,
      key,
      mailboxOf(key),
      now,
      state,
      state === 'listed' ? eventName : null,
      state === 'listed' ? now : null,
      ...(asks === null ? [] : [isAsked ? now : null, isAsked ? 1 : null]),
      ...(trackSources ? [source === undefined ? null : JSON.stringify(source)] : []),
      ...(gate === null ? [] : [reason]),
    )
    if (changes === 0) return known(key, now)
    number++
    if (reason !== null) return { is: 'held now', reason }
    if (ask !== null) {
      ask.first(number, now)
      return { is: 'unconfirmed', contactId: id, asked: true }
    }
    if (provider === null) {
      announce(number, now)
      return { is: 'listed now', contactId: id }
    }
    const handedOver = handOver.get(number, provider, now + LEASE, id) as { number: number }
    const contact: Contact = { id, name, email, state: 'pending', createdAt: new Date(now), ...(source && { source }) }
    return {
      is: 'pending now',
      delivery: { number: handedOver.number, token: id, contact, event: 'joined', attempts: 0, doubt: false },
    }
  }

  /** `trial`: it will be taken back, so the gate must not count it. */
  return (signups: readonly Given[], now: number, trial?: 'trial'): readonly Admission[] => {
    gate?.sweep(signups.length, now)
    number = (highest.get() as { number: number }).number
    return signups.map(each => admit(each, now, trial !== undefined))
  }
}

/** 100 characters of 4 bytes. */
const LONGEST_NAME = '-'.repeat(400)
const LONGEST_SOURCE: Source = Object.fromEntries(sourceParameters.map(each => [each, LONGEST_NAME]))

/**
 * Returns a function that admits the longest possible signup and takes it back, inside an open transaction: it needs all
 * that a signup needs, and leaves only a gap in the numbers. Nobody can have such an address (RFC 2606 §2).
 */
export function trying(database: DatabaseSync, admit: ReturnType<typeof admitting>) {
  const takeBack = database.prepare('delete from contact where email_key = ?')
  return (now: number): void => {
    const email = `${randomUUID()}@waitlist.invalid`.padStart(255, '-')
    admit([{ name: LONGEST_NAME, email, source: LONGEST_SOURCE }], now, 'trial')
    takeBack.run(email)
  }
}

/** Hands pending contacts of an earlier provider over to this one. */
export function adopt(database: DatabaseSync, provider: string | null, now: number): void {
  if (provider === null) return
  database
    .prepare(
      'insert into delivery (contact, destination, due_at)' +
        " select number, ?, ? from contact where state = 'pending' on conflict do nothing",
    )
    .run(provider, now)
}
