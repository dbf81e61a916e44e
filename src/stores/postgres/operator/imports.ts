import { randomUUIDv7 } from 'node:crypto'
import { OperatorError } from '../../../waitlist/ports/log.ts'
import { mailboxOf } from '../../../waitlist/rules/mailbox.ts'
import { emailKey } from '../../../waitlist/rules/signup.ts'
import { IN_PLACE } from '../../deliveries.ts'
import { erasureHash } from '../../erasure.ts'
import {
  type Decide,
  type Entry,
  type Imports,
  type ImportWish,
  importing,
  type Pace,
  staysErased,
  stored,
} from '../../operator/imports.ts'
import type { Postgres, Query } from '../client.ts'
import { DURABLE, ERASURES } from '../sql.ts'
import { erasureSecret } from './erasure.ts'
import { lend } from './open.ts'

export const imports = (url: string): Imports => ({
  importContacts: (entries, wish) =>
    lend(url, database => importing(entries, wish, wish.dryRun ? looking(database) : adding(database, wish), PACE)),
})

const PACE: Pace = { least: 1_000, most: 5_000, rests: 0.25 }

/**
 * Signups are inserted in the order of their addresses and entries in their own, so the two could wait for each other: the
 * import gives way long before the server looks for a deadlock. After waiting for a removal it must see it, whatever
 * isolation the role or the database has by default.
 */
const BEGIN = `begin isolation level read committed; set local lock_timeout = 100; select pg_advisory_xact_lock_shared(${ERASURES})`

/** The numbers grow in the order of the entries. */
const ADD = `
with input as (
  select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::text[],
    $8::text[], $9::text[]) with ordinality as t (id, name, email, email_key, state, created_at, source, held_for, mailbox, ord)
), added as (
  insert into contact (id, name, email, email_key, state, created_at, source, held_for, mailbox, event_name, event_at)
  select id, name, email, email_key, state, coalesce(timestamptz 'epoch' + created_at * interval '1 millisecond', now()),
    source::json, held_for, mailbox, case when held_for is null then $10::text end,
    case when held_for is null and $10::text is not null then now() end
  from input order by ord on conflict do nothing
  returning number, email_key, state
), told as (
  insert into delivery (contact, destination, due_at)
  select number, destination, now() from added cross join unnest($11::text[]) as destination where state <> 'held' order by number ${IN_PLACE}
), ${DURABLE}
select email_key from added, durable`

const LISTED = 'select email_key from contact where email_key = any($1::text[])'
const ERASED = 'select hash, erased_at from erased where hash = any($1::text[])'

function adding(database: Postgres, wish: ImportWish): Decide {
  return batch =>
    database.attempt(async (query, again) => {
      if (again) throw new OperatorError('The connection was lost before the answer came. Run it again: it goes on.')
      await query(BEGIN)
      const stays = await erasedIn(query, batch)
      const firsts = new Map<string, Entry>()
      for (const entry of batch) {
        if (!stays(entry) && !firsts.has(keyOf(entry))) firsts.set(keyOf(entry), entry)
      }
      const listed = await keys(query, LISTED, [batch.filter(stays).map(keyOf)])
      const added = await keys(query, ADD, rowsOf([...firsts.values()], wish))
      await query('commit')
      return batch.map(entry => {
        const key = keyOf(entry)
        if (listed.has(key)) return 'existing'
        if (stays(entry)) return 'erased'
        listed.add(key)
        return added.has(key) ? 'added' : 'existing'
      })
    })
}

const looking =
  (database: Postgres): Decide =>
  batch =>
    database.attempt(async query => {
      const stays = await erasedIn(query, batch)
      const listed = await keys(query, LISTED, [batch.map(keyOf)])
      return batch.map(entry => (listed.has(keyOf(entry)) ? 'existing' : stays(entry) ? 'erased' : 'added'))
    })

const keyOf = ({ signup }: Entry): string => emailKey(signup.email)

async function keys(query: Query, text: string, values: readonly unknown[]): Promise<Set<string>> {
  const rows = await query<{ email_key: string }>(text, values)
  return new Set(rows.map(({ email_key }) => email_key))
}

/** Which entries stay away, since their addresses were erased. */
async function erasedIn(query: Query, batch: readonly Entry[]): Promise<(entry: Entry) => boolean> {
  const secret = await erasureSecret(query)
  if (secret === undefined) return () => false
  const hashOf = ({ signup }: Entry) => erasureHash(secret, signup.email)
  const rows = await query<{ hash: string; erased_at: Date }>(ERASED, [batch.map(hashOf)])
  if (rows.length === 0) return () => false
  const erased = new Map(rows.map(({ hash, erased_at }) => [hash, erased_at]))
  return entry => {
    const at = erased.get(hashOf(entry))
    return at !== undefined && staysErased(entry, at)
  }
}

/** The parameters of `ADD`. */
function rowsOf(entries: readonly Entry[], { announcement, keepsMailboxes }: ImportWish): unknown[] {
  const columns: readonly ((entry: Entry) => string | number | null)[] = [
    ({ id }) => id ?? randomUUIDv7(),
    ({ signup }) => signup.name,
    ({ signup }) => signup.email,
    keyOf,
    entry => stored(entry, announcement).state,
    ({ createdAt }) => createdAt?.getTime() ?? null,
    ({ source }) => (source === undefined ? null : JSON.stringify(source)),
    ({ heldFor }) => heldFor ?? null,
    entry => (keepsMailboxes ? mailboxOf(keyOf(entry)) : null),
  ]
  const { eventName, destinations } = stored({ state: 'listed' }, announcement)
  return [...columns.map(column => entries.map(entry => column(entry))), eventName, destinations]
}
