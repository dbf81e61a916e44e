import { randomUUID, randomUUIDv7 } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { LEASE } from '../../waitlist/ports/outbox.ts'
import { type ContactState, sourceParameters } from '../../waitlist/rules/contact.ts'
import type { HoldRules } from '../../waitlist/rules/hold.ts'
import { emailKey } from '../../waitlist/rules/signup.ts'
import { IN_PLACE } from '../deliveries.ts'
import type { Credentials } from '../gate.ts'
import { gating } from './gate.ts'

/** What the store needs to know about the rest of the service. */
export interface Surroundings {
  /** The name of every event. */
  readonly eventName: string
  /** The destinations of every event. */
  readonly destinations: readonly string[]
  /** The provider that confirms a contact before it is listed; null: there is none. */
  readonly provider: string | null
  /** Whether the sources of signups are kept. */
  readonly trackSources: boolean
  /** Null: no signup is held, and none has a proof. */
  readonly holds: HoldRules | null
  /** Whether a signup with a known address costs a synced commit, as a new one does. */
  readonly syncsKnown: boolean
}

/**
 * A batch of signups as columns, one signup to a line: a few long strings are cheaper to send to a thread than hundreds of
 * short ones. Names and addresses contain no line breaks, which `parseSignup` refuses, and neither does JSON.
 */
export interface AdmitBatch {
  readonly names: string
  readonly emails: string
  /** As JSON; a line is empty where the source is not known. Only there if sources are kept. */
  readonly sources?: string
  /** Only there if signups may be held. */
  readonly credentials?: readonly (Credentials | null)[]
}

/**
 * The results of a batch, a line for each signup: empty for a contact that was listed before, otherwise the contact's id.
 * With a provider: `+`, the hand-over's number and the id for a new contact (the id is the token), or `=` and the
 * contact's number for one that is still pending. `~` for one that is still held; where signups may be held, with the
 * reason for a new one, and `!` for a spent proof.
 */
export type AdmittedBatch = string

/** Adds the deliveries of a contact that was just listed. */
function announcing(database: DatabaseSync, destinations: readonly string[]) {
  const insert = database.prepare(`insert into delivery (contact, destination, due_at) values (?, ?, ?) ${IN_PLACE}`)
  return (contact: number | bigint, now: number): void => {
    for (const destination of destinations) insert.run(contact, destination, now)
  }
}

/** Lists a pending contact, with its event if `joined`. Deletes its hand-overs and adds the deliveries of its event. */
export function listing(database: DatabaseSync, { eventName, destinations }: Surroundings) {
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

const NONE = [] as const
/** Nobody is held. */
const OPEN = { heldFor: null, mailbox: null } as const

/** Prepares the statements, and returns the function that admits a batch inside an open transaction. */
export function admitting(database: DatabaseSync, surroundings: Surroundings) {
  const { provider, eventName, destinations, trackSources, holds } = surroundings
  const columns = [
    ...['id', 'name', 'email', 'email_key', 'created_at', 'state', 'event_name', 'event_at'],
    ...(trackSources ? ['source'] : []),
    ...(holds === null ? [] : ['held_for', 'mailbox']),
  ]
  const insert = database.prepare(
    `insert into contact (${columns.join(', ')})` +
      // A conflict would use up a number, and that is a write: a known address would cost a sync.
      ` select ${columns.map((_, i) => `?${i + 1}`).join(', ')} where not exists (select 1 from contact where email_key = ?4)`,
  )
  const handOver = database.prepare(
    `insert into delivery (contact, destination, attempts, due_at, token) values (?, ?, 1, ?, ?) ${IN_PLACE} returning number`,
  )
  const unlisted = database.prepare("select number, id, state from contact where email_key = ? and state <> 'listed'")
  const announce = announcing(database, destinations)
  const list = listing(database, surroundings)
  const gate = holds === null ? null : gating(database, holds)
  const held = ['held', null, null] as const
  const beat = surroundings.syncsKnown
    ? database.prepare("insert or replace into turn (name, token, next_at) values ('answers', ?, ?)")
    : null

  /** A pending contact waits for the provider. Without one, as after another setting or an import, the next signup lists it. */
  function known(key: string, now: number): string {
    const row = unlisted.get(key) as { number: number; id: string; state: ContactState } | undefined
    if (row === undefined) return ''
    if (row.state === 'held') return '~'
    if (provider !== null) return `=${row.number}`
    list(row.number, true, undefined, now)
    return row.id
  }

  /** `trial`: it will be taken back, so the gate must not count it. */
  return ({ names, emails, sources, credentials }: AdmitBatch, now: number, trial?: 'trial'): AdmittedBatch => {
    const name = names.split('\n')
    const source = sources?.split('\n')
    const letIn = provider === null ? ['listed', eventName, now] : ['pending', null, null]
    const lines: string[] = []
    const each = emails.split('\n')
    gate?.sweep(each.length, now)
    for (const [i, email] of each.entries()) {
      const id = randomUUIDv7()
      const key = emailKey(email)
      const entry = trial === undefined ? gate?.entryOf(name[i]!, email, credentials?.[i], now) : OPEN
      if (entry === 'spent') {
        lines.push('!')
        continue
      }
      const [state, event, at] = entry?.heldFor ? held : letIn
      const more = source === undefined ? NONE : [source[i] || null]
      const how = gate === null ? NONE : [entry?.heldFor ?? null, entry?.mailbox ?? null]
      const { changes, lastInsertRowid } = insert.run(
        id,
        name[i]!,
        email,
        key,
        now,
        state!,
        event!,
        at!,
        ...more,
        ...how,
      )
      if (changes === 0) lines.push(known(key, now))
      else if (entry?.heldFor) lines.push(`~${entry.heldFor}`)
      else if (provider === null) {
        announce(lastInsertRowid, now)
        lines.push(id)
      } else {
        const { number } = handOver.get(lastInsertRowid, provider, now + LEASE, id) as { number: number }
        lines.push(`+${number} ${id}`)
      }
    }
    beat?.run(randomUUID(), now)
    return lines.join('\n')
  }
}

/** 100 characters of 4 bytes. */
const LONGEST_NAME = '-'.repeat(400)
const LONGEST_SOURCE = JSON.stringify(Object.fromEntries(sourceParameters.map(each => [each, LONGEST_NAME])))

/**
 * Returns a function that admits the longest possible signup and takes it back, inside an open transaction: it needs all
 * that a signup needs, and leaves only a gap in the numbers. Nobody can have such an address (RFC 2606 §2).
 */
export function trying(
  database: DatabaseSync,
  admit: ReturnType<typeof admitting>,
  { trackSources }: Pick<Surroundings, 'trackSources'>,
) {
  const sources = trackSources ? { sources: LONGEST_SOURCE } : {}
  const takeBack = database.prepare('delete from contact where email_key = ?')
  return (now: number): void => {
    const email = `${randomUUID()}@waitlist.invalid`.padStart(255, '-')
    admit({ names: LONGEST_NAME, emails: email, ...sources }, now, 'trial')
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
