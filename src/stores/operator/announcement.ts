import type { ContactState, EventKind } from '../../waitlist/rules/contact.ts'
import type { Sql } from '../sql.ts'
import { stillIn } from './decide.ts'

/** What becomes of new signups, as both stores know it. */
export interface Announcement {
  readonly eventName: string
  readonly provider: string | null
  /** Those that are told of the event. */
  readonly destinations: readonly string[]
  /** The destination that asks them to confirm their address first; null: nobody has to. */
  readonly asks: string | null
}

interface Beginning {
  readonly state: ContactState
  /** Null: it has not joined yet. */
  readonly eventName: string | null
  /** Its deliveries. A hand-over is a part of joining. */
  readonly event: EventKind
  readonly destinations: readonly string[]
}

/** How a contact is stored at first. `news`: null if nobody is to be told of it. */
export function initialState({ state }: { readonly state: ContactState }, news: Announcement | null): Beginning {
  if (news === null || state === 'held' || state === 'invited')
    return { state, eventName: null, event: 'joined', destinations: [] }
  const { provider, eventName, destinations, asks } = news
  if (asks !== null) return { state: 'unconfirmed', eventName: null, event: 'asked', destinations: [asks] }
  return provider === null
    ? { state: 'listed', eventName, event: 'joined', destinations }
    : { state: 'pending', eventName: null, event: 'joined', destinations: [provider] }
}

/**
 * Stores those who are in the state, of the numbers in a JSON array, like new signups, and returns how many there were.
 * Who was unconfirmed is asked no more: they have confirmed, or nobody has to any longer. `now`: null for the server's clock.
 */
export async function goOn(
  sql: Sql,
  from: 'held' | 'unconfirmed',
  numbers: string,
  announcement: Announcement,
  now: Date | null = null,
): Promise<number> {
  const { among, elements } = sql.dialect
  const wasAsked = from === 'unconfirmed'
  const news = wasAsked ? { ...announcement, asks: null } : announcement
  const { state, eventName, event, destinations } = initialState({ state: 'listed' }, news)
  const time = `coalesce(cast($4 as timestamptz), ${sql.dialect.now})`
  const asking = state === 'unconfirmed'
  const gone = await sql.all<{ number: number }>(
    'update contact set state = $2, reason = null, event_name = $3,' +
      ` event_at = case when cast($3 as text) is not null then ${time} end,` +
      ` asked_at = ${asking ? time : 'null'}, asks = ${asking ? '1' : 'null'}` +
      `${wasAsked && announcement.asks !== null ? `, confirmed_at = ${time}` : ''}` +
      ` where ${among('number', stillIn(from, sql))} returning number`,
    [numbers, state, eventName, now],
  )
  if (gone.length === 0) return 0
  if (wasAsked) {
    await sql.all(`delete from delivery where ${among('contact', elements('$1', 'whole'))} and event = 'asked'`, [
      JSON.stringify(gone.map(({ number }) => number)),
    ])
  }
  await addDeliveries(sql, gone, event, destinations, now)
  return gone.length
}

/**
 * Adds the deliveries of those with the numbers, in this order. `now`: null for the server's clock.
 */
export async function addDeliveries(
  sql: Sql,
  contacts: readonly { readonly number: number }[],
  event: EventKind,
  destinations: readonly string[],
  now: Date | null = null,
): Promise<void> {
  const { among, elements } = sql.dialect
  const time = `coalesce(cast($3 as timestamptz), ${sql.dialect.now})`
  await sql.all(
    'insert into delivery (contact, destination, event, due_at)' +
      ` select number, destination.value, '${event}', ${time}` +
      ` from contact cross join (${elements('$2', 'text')}) as destination` +
      ` where ${among('number', elements('$1', 'whole'))} order by number`,
    [JSON.stringify(contacts.map(({ number }) => number)), JSON.stringify(destinations), now],
  )
}
