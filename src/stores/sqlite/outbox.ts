import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import {
  type Delivery,
  type Digest,
  type DigestSettlement,
  LEASE,
  NAMED,
  type Settlement,
} from '../../waitlist/ports/outbox.ts'
import type { EventKind } from '../../waitlist/rules/contact.ts'
import { CONTACT_COLUMNS, type ContactRow, contactOf, underWay, untilDigest } from '../rows.ts'
import { callOn, type UpkeepCall, upkeepOn } from '../upkeep.ts'
import { listing, type SignupOptions } from './signups.ts'
import { sqliteSql } from './sql.ts'

/** The steps of deliveries. Each is atomic within its transaction. */
export type Step =
  | { readonly do: 'claim'; readonly destination: string; readonly most: number; readonly contact: number | undefined }
  | { readonly do: 'settle'; readonly number: number; readonly token: string; readonly settlement: Settlement }
  | {
      readonly do: 'claim digest'
      readonly channel: string
      readonly most: number
      readonly distance: number
    }
  | {
      readonly do: 'settle digest'
      readonly digest: Digest
      readonly settlement: DigestSettlement
      readonly distance: number
    }
  | { readonly do: 'acquire interval'; readonly name: string; readonly distance: number }
  | { readonly do: 'upkeep'; readonly call: UpkeepCall }

/** The answer to each step. */
export interface Results {
  readonly claim: readonly Delivery[]
  readonly settle: boolean
  readonly 'claim digest': Digest | number | null
  readonly 'settle digest': boolean
  readonly 'acquire interval': boolean
  readonly upkeep: unknown
}
export type Result = Results[Step['do']]

interface DeliveryRow extends ContactRow {
  readonly number: number
  readonly event: EventKind
  readonly attempts: number
  readonly doubt: number
  readonly token: string | null
}

interface DigestRow {
  readonly number: number
  readonly attempts: number
  readonly doubt: number
  readonly event: EventKind
  readonly name: string
}

/** Prepares the statements, and returns the function that does one step inside an open transaction. */
export function stepping(
  database: DatabaseSync,
  options: SignupOptions,
): (step: Step, now: number) => Result | Promise<Result> {
  const sql = sqliteSql(database)
  const claimable = (which: string) =>
    database.prepare(
      `select delivery.number, delivery.event, attempts, doubt, token, ${CONTACT_COLUMNS}` +
        ' from delivery join contact on contact.number = delivery.contact' +
        ` where destination = ? and delivery.state = 'waiting' and ${which} order by due_at, delivery.number limit ?`,
    )
  const due = claimable('due_at <= ?')
  // A lease holds while there is a token and the due time lies ahead.
  const ofContact = claimable('(due_at <= ? or token is null) and contact = ?')
  const lease = database.prepare(
    'update delivery set token = ?, due_at = ?, doubt = ?, attempts = attempts + 1 where number = ?',
  )
  const held = database.prepare('select contact from delivery where number = ? and token = ?')
  const settleRow = database.prepare(
    'update delivery set token = null, state = ?, due_at = ?, doubt = ?, why = ?, settled_at = ?, attempts = attempts - ?' +
      ' where number = ?',
  )
  const remove = database.prepare("delete from contact where number = ? and state = 'pending'")
  const list = listing(database, options)
  const nextTurn = database.prepare('select next_at - ? as wait from turn where name = ?')
  const dueToChannel = database.prepare(
    'select delivery.number, delivery.event, attempts, doubt or token is not null as doubt, name' +
      ' from delivery join contact on contact.number = delivery.contact' +
      " where destination = ? and delivery.state = 'waiting' and due_at <= ? order by due_at, delivery.number limit ?",
  )
  const beginTurn = database.prepare(
    'insert into turn (name, token, next_at) values (?, ?, ?)' +
      ' on conflict (name) do update set token = excluded.token, next_at = excluded.next_at',
  )
  const leaseAll = database.prepare(
    'update delivery set token = ?, due_at = ?, doubt = doubt or token is not null, attempts = attempts + 1' +
      ' where number in (select value from json_each(?))',
  )
  const settleAll = database.prepare(
    'update delivery set token = null, state = ?, due_at = ?, doubt = ? and (doubt or ?), why = ?, settled_at = ?,' +
      ' attempts = attempts - ? where number in (select value from json_each(?)) and token = ?',
  )
  const endTurn = database.prepare('update turn set next_at = ? where name = ? and token = ?')

  function claim({ destination, most, contact }: Step & { do: 'claim' }, now: number): Delivery[] {
    const rows =
      contact === undefined ? due.all(destination, now, most) : ofContact.all(destination, now, contact, most)
    return (rows as unknown as DeliveryRow[]).map(row => {
      const token = randomUUID()
      // A row that is due and still has a token was held by a process that died with the outcome.
      const doubt = row.doubt === 1 || row.token !== null
      lease.run(token, now + LEASE, doubt ? 1 : 0, row.number)
      return { number: row.number, token, contact: contactOf(row), event: row.event, attempts: row.attempts, doubt }
    })
  }

  function settle({ number, token, settlement }: Step & { do: 'settle' }, now: number): boolean {
    const row = held.get(number, token) as { contact: number } | undefined
    if (row === undefined) return false
    switch (settlement.is) {
      case 'listed':
        list(row.contact, settlement.joined, settlement.providerId, now)
        return true
      case 'removed':
        remove.run(row.contact)
        return true
      case 'waiting': {
        const { wait, doubt, why, uncounted } = settlement
        settleRow.run('waiting', Math.round(now + wait), doubt ? 1 : 0, why, null, uncounted ? 1 : 0, number)
        return true
      }
      default:
        settleRow.run(settlement.is, now, 0, settlement.is === 'abandoned' ? settlement.why : null, now, 0, number)
        return true
    }
  }

  const untilTurn = (name: string, now: number) => (nextTurn.get(now, name)?.wait as number | undefined) ?? 0

  function acquireInterval({ name, distance }: Step & { do: 'acquire interval' }, now: number): boolean {
    if (untilTurn(name, now) > 0) return false
    beginTurn.run(name, randomUUID(), now + distance)
    return true
  }

  function claimDigest({ channel, most, distance }: Step & { do: 'claim digest' }, now: number) {
    const wait = untilTurn(channel, now)
    if (wait > 0) return wait
    const rows = dueToChannel.all(channel, now, most) as unknown as DigestRow[]
    if (rows.length === 0) return null
    const token = randomUUID()
    const deliveries = rows.map(({ number }) => number)
    beginTurn.run(channel, token, now + underWay(distance))
    leaseAll.run(token, now + LEASE, JSON.stringify(deliveries))
    return {
      channel,
      token,
      deliveries,
      attempts: Math.min(...rows.map(({ attempts }) => attempts)),
      doubtful: rows.filter(({ doubt }) => doubt === 1).length,
      invited: rows.filter(({ event }) => event === 'invited').length,
      names: rows
        .filter(({ event }) => event === 'joined')
        .slice(0, NAMED)
        .map(({ name }) => name),
    }
  }

  function settleDigest({ digest, settlement, distance }: Step & { do: 'settle digest' }, now: number): boolean {
    const { channel, token, deliveries } = digest
    const { wait, doubt, uncounted = false } = settlement.is === 'waiting' ? settlement : { wait: 0, doubt: false }
    const waits = settlement.is === 'waiting'
    const { changes } = settleAll.run(
      settlement.is,
      Math.round(now + wait),
      Number(waits),
      Number(doubt),
      'why' in settlement ? settlement.why : null,
      waits ? null : now,
      Number(uncounted),
      JSON.stringify(deliveries),
      token,
    )
    endTurn.run(now + untilDigest(settlement, distance), channel, token)
    return changes > 0
  }

  return (step, now) => {
    switch (step.do) {
      case 'claim':
        return claim(step, now)
      case 'settle':
        return settle(step, now)
      case 'claim digest':
        return claimDigest(step, now)
      case 'settle digest':
        return settleDigest(step, now)
      case 'acquire interval':
        return acquireInterval(step, now)
      case 'upkeep':
        return callOn(
          upkeepOn(sql, options, () => new Date(now)),
          step.call,
        )
    }
  }
}
