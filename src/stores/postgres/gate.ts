import { ALL, type HoldRules, holdReasonOf, type Newcomer, newcomerOf } from '../../waitlist/hold.ts'
import type { Signup } from '../../waitlist/signup.ts'
import { credentialsOf, type Entry, SPENT_AFTER, SWEPT } from '../gate.ts'
import type { Query } from './client.ts'
import { DURABLE, inMilliseconds, NOW } from './sql.ts'

/** Milliseconds that an instance may be silent inside a transaction. Those that wait for its lock give up after 2,000. */
const SILENT = 1_500
/**
 * What other batches have committed must be seen after waiting for them, whatever the role or the database says. An
 * instance that dies with its machine loses its lock, also behind a pooler that drops our timeouts. And a claim is synced
 * even if nobody is stored with it.
 */
export const BEGIN = `begin isolation level read committed; set local idle_in_transaction_session_timeout = ${SILENT};
with ${DURABLE} select from durable`

/**
 * An advisory lock ("arrivals" in ASCII) under which instances decide whom they let in, one batch after the other; and the
 * time at which it was had.
 */
export const LOCK = `
with lock as materialized (select pg_advisory_xact_lock(7021800566307253363))
select coalesce($1::timestamptz, clock_timestamp()) as time from lock`

/** In one order, as all that two transactions write. One who finds a nonce that is just being claimed waits for that commit. */
const CLAIM = `
insert into spent (nonce, claimant, expires_at)
select distinct on (nonce) nonce, claimant, expires_at
from unnest($1::text[], $2::text[], $3::timestamptz[]) with ordinality as t (nonce, claimant, expires_at, ord)
order by nonce, ord on conflict do nothing`
const CLAIMANTS = 'select nonce, claimant from spent where nonce = any($1::text[])'
/** What another instance is just deleting is skipped. */
const SWEEP_SPENT = `
delete from spent where nonce = any(array(
  select nonce from spent where expires_at < ${inMilliseconds('$2')} order by expires_at limit $3 for update skip locked
))`

const KNOWN = 'select email_key from contact where email_key = any($1::text[])'
const MAILBOXES = 'select distinct mailbox from contact where mailbox = any($1::text[])'
/** The number of no row. */
const END = 2_147_483_647
/**
 * Rows to use for arrivals in each scope, and how many more there may be. What lies ahead was stored before the clock was
 * set back. Of the limit for all, rows are never swept, so their numbers count them; those of a limit that was higher are
 * ignored (`number < below`). Domains have few rows, which are counted.
 */
const ROOM = `
select scope, last,
  most - case scope when '${ALL}' then last + 1 else (select count(*)::int from arrival where arrival.scope = wish.scope) end as free,
  array(
    select number from (
      (select number, at from arrival where arrival.scope = wish.scope and number < below and at <= ${inMilliseconds('$2')}
        order by at limit wanted)
      union all
      (select number, at from arrival where arrival.scope = wish.scope and number < below and at > ${NOW} order by at limit wanted)
    ) as used order by at
  ) as used
from unnest($3::text[], $4::int[], $5::int[], $6::int[]) as wish (scope, most, below, wanted), lateral (
  select coalesce(max(number), -1) as last from arrival where arrival.scope = wish.scope and number < below
) as highest`
const ARRIVE = `
insert into arrival (scope, number, at) select scope, number, ${NOW} from unnest($2::text[], $3::int[]) as t (scope, number)
on conflict (scope, number) do update set at = excluded.at`
const SWEEP_DOMAINS = `
delete from arrival using (
  select scope, number from arrival where at <= ${inMilliseconds('$2')} and scope <> '${ALL}' order by at limit $3
) as old where arrival.scope = old.scope and arrival.number = old.number`

interface Room {
  readonly scope: string
  readonly used: number[]
  /** Rows that may be added. */
  free: number
  /** The highest number of a row. */
  last: number
}

interface Entrant {
  readonly signup: Signup
  readonly key: string
}

/** Decides about a batch, inside the transaction that stores it. Who is in neither result is known already. */
export type Gate<Item extends Entrant> = (
  items: readonly Item[],
  query: Query,
) => Promise<{ readonly entries: ReadonlyMap<Item, Entry>; readonly spent: ReadonlySet<Item> }>

export function gating<Item extends Entrant>(rules: HoldRules, now: () => Date | null): Gate<Item> {
  const { above, window, suspicious } = rules
  const counts = above !== null || suspicious

  async function claimed(items: readonly Item[], query: Query): Promise<ReadonlySet<Item>> {
    const proofs = new Map(items.map(item => [item, credentialsOf(item.signup)?.proof] as const))
    const given = [...proofs.values()].filter(proof => proof !== undefined)
    if (given.length === 0) return new Set()
    const nonces = given.map(({ nonce }) => nonce)
    const expiries = given.map(({ expires }) => new Date(expires))
    await query(SWEEP_SPENT, [now(), -SPENT_AFTER, items.length + SWEPT])
    await query(CLAIM, [nonces, given.map(({ claimant }) => claimant), expiries])
    const rows = await query<{ nonce: string; claimant: string }>(CLAIMANTS, [nonces])
    const claimants = new Map(rows.map(({ nonce, claimant }) => [nonce, claimant]))
    return new Set(
      items.filter(item => {
        const proof = proofs.get(item)
        return proof !== undefined && claimants.get(proof.nonce) !== proof.claimant
      }),
    )
  }

  return async (items, query) => {
    const spent = await claimed(items, query)
    const time = counts ? (await query<{ time: Date }>(LOCK, [now()]))[0]!.time : null
    const keys = items.map(({ key }) => key)
    const known = new Set((await query<{ email_key: string }>(KNOWN, [keys])).map(({ email_key }) => email_key))
    const newcomers = new Map<Item, Newcomer>()
    for (const item of items) {
      if (spent.has(item) || known.has(item.key)) continue
      known.add(item.key)
      newcomers.set(item, newcomerOf(item.signup, rules))
    }
    const register = await registerOf([...newcomers.values()], query, time)
    const entries = new Map<Item, Entry>()
    for (const [item, newcomer] of newcomers) {
      const heldFor = holdReasonOf(newcomer, register)
      register.enter(newcomer, heldFor === null)
      entries.set(item, { heldFor, mailbox: newcomer.mailbox })
    }
    await register.save(items.length)
    return { entries, spent }
  }

  /**
   * What the database remembers of those who came before, with those of this batch added one by one. `time` is that after
   * the lock: the one at which the transaction began may lie before the arrivals that it waited for.
   */
  async function registerOf(newcomers: readonly Newcomer[], query: Query, time: Date | null) {
    const wanted = newcomers.flatMap(({ mailbox }) => mailbox ?? [])
    const mailboxes = new Set(
      wanted.length === 0 ? [] : (await query<{ mailbox: string }>(MAILBOXES, [wanted])).map(({ mailbox }) => mailbox),
    )
    const wishes = new Map<string, { readonly most: number; wanted: number }>()
    for (const { scopes } of newcomers) {
      for (const [scope, most] of scopes) {
        const wish = wishes.get(scope)
        if (wish === undefined) wishes.set(scope, { most, wanted: 1 })
        else wish.wanted++
      }
    }
    const rooms = new Map<string, Room>()
    if (wishes.size > 0) {
      const all = [...wishes.values()]
      const scopes = [...wishes.keys()]
      const most = all.map(({ most }) => most)
      const below = scopes.map((scope, i) => (scope === ALL ? most[i]! : END))
      const values = [time, -window, scopes, most, below, all.map(({ wanted }) => wanted)]
      for (const room of await query<Room>(ROOM, values)) rooms.set(room.scope, room)
    }
    const taken: { readonly scope: string; readonly number: number }[] = []
    return {
      knows: (mailbox: string) => mailboxes.has(mailbox),
      hasRoom(scope: string) {
        const { used, free } = rooms.get(scope)!
        return used.length > 0 || free > 0
      },
      enter({ mailbox, scopes }: Newcomer, letIn: boolean) {
        if (mailbox !== null) mailboxes.add(mailbox)
        if (!letIn) return
        for (const scope of scopes.keys()) {
          const room = rooms.get(scope)!
          const used = room.used.shift()
          if (used === undefined) room.free--
          taken.push({ scope, number: used ?? ++room.last })
        }
      },
      async save(added: number) {
        if (taken.length > 0) {
          await query(ARRIVE, [time, taken.map(({ scope }) => scope), taken.map(({ number }) => number)])
        }
        if (suspicious) await query(SWEEP_DOMAINS, [time, -window, added + SWEPT])
      },
    }
  }
}
