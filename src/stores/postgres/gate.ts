import type { HoldReason } from '../../waitlist/rules/contact.ts'
import { type Candidate, candidateOf, type HoldRules, holdReasonOf } from '../../waitlist/rules/hold.ts'
import type { Signup } from '../../waitlist/rules/signup.ts'
import { credentialsOf, SPENT_AFTER, SWEPT } from '../gate.ts'
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
/**
 * The number of the last arrival, and how many more may be let in. Numbers have no gaps, so the difference of two counts
 * those between. What lies ahead was stored before the clock was set back, and is written over.
 */
const ROOM = `
select last, $3::int - (last - before) as free
from (
  select coalesce(
    (select number from arrival where at <= ${inMilliseconds('$2')} order by at desc, number desc limit 1),
    (select number - 1 from arrival order by number limit 1),
    -1
  ) as before
) as edge, lateral (
  select coalesce((select number from arrival where at <= ${NOW} order by at desc, number desc limit 1), before) as last
) as newest`
const ARRIVE = `
insert into arrival (number, at) select number, ${NOW} from unnest($2::bigint[]) as t (number)
on conflict (number) do update set at = excluded.at`
const SWEEP_ARRIVALS = `
delete from arrival where number = any(array(
  select number from arrival where at <= ${inMilliseconds('$2')} order by at, number limit $3
))`

interface Entrant {
  readonly signup: Signup
  readonly key: string
}

/** Decides about a batch, inside the transaction that stores it. Who is in neither result is known already. Null: let in. */
export type Gate<Item extends Entrant> = (
  items: readonly Item[],
  query: Query,
) => Promise<{ readonly reasons: ReadonlyMap<Item, HoldReason | null>; readonly spent: ReadonlySet<Item> }>

interface GateOptions {
  readonly rules: HoldRules
  /** Null: the server's clock is used. */
  now(): Date | null
}

export function gating<Item extends Entrant>({ rules, now }: GateOptions): Gate<Item> {
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
    const time = counts ? new Date((await query<{ time: number }>(LOCK, [now()]))[0]!.time) : null
    const keys = items.map(({ key }) => key)
    const known = new Set((await query<{ email_key: string }>(KNOWN, [keys])).map(({ email_key }) => email_key))
    const candidates = new Map<Item, Candidate>()
    for (const item of items) {
      if (spent.has(item) || known.has(item.key)) continue
      known.add(item.key)
      candidates.set(item, candidateOf(item.signup, rules))
    }
    const window = await windowOf([...candidates.values()], query, time)
    const reasons = new Map<Item, HoldReason | null>()
    for (const [item, candidate] of candidates) {
      const reason = holdReasonOf(candidate, window)
      window.enter(candidate, reason === null)
      reasons.set(item, reason)
    }
    await window.save(items.length)
    return { reasons, spent }
  }

  /**
   * What the database remembers of those who came before, with those of this batch added one by one. `time` is that after
   * the lock: the one at which the transaction began may lie before the arrivals that it waited for.
   */
  async function windowOf(candidates: readonly Candidate[], query: Query, time: Date | null) {
    const wanted = candidates.flatMap(({ mailbox }) => mailbox ?? [])
    const mailboxes = new Set(
      wanted.length === 0 ? [] : (await query<{ mailbox: string }>(MAILBOXES, [wanted])).map(({ mailbox }) => mailbox),
    )
    const isLimited = above !== null && candidates.length > 0
    const [room] = isLimited ? await query<{ last: number; free: number }>(ROOM, [time, -window, above]) : []
    let { last, free } = room ?? { last: -1, free: Number.POSITIVE_INFINITY }
    const taken: number[] = []
    return {
      knows: (mailbox: string) => mailboxes.has(mailbox),
      hasRoom: () => free > 0,
      enter({ mailbox }: Candidate, letIn: boolean) {
        if (mailbox !== null) mailboxes.add(mailbox)
        if (!letIn || !isLimited) return
        free--
        taken.push(++last)
      },
      async save(added: number) {
        if (taken.length > 0) await query(ARRIVE, [time, taken])
        if (above !== null) await query(SWEEP_ARRIVALS, [time, -window, added + SWEPT])
      },
    }
  }
}
