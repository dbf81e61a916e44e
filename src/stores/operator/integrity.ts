import { LEASE } from '../../waitlist/ports/outbox.ts'
import { type Engine, lend, type Sql } from '../sql.ts'

/** Whether a store can be trusted, and whether somebody works on what it keeps. */
export interface Integrity {
  /** What the engine finds wrong in its own file; null: nothing, or it keeps that to itself (PostgreSQL). */
  readonly damage: string | null
  /** Deliveries that a process held when it ended, and that no other one has taken over since. */
  readonly staleLeases: number
  /** Bytes that the store takes, without the log. */
  readonly size: number
  /** Bytes that are free where it is, and those without which it refuses signups; null: not known here. */
  readonly free: { readonly bytes: number; readonly needed: number } | null
}

/** Milliseconds. A running service takes over what is due within a minute. */
const LATE = 2 * LEASE

/** What an engine alone can tell. */
export type Condition = (sql: Sql) => Promise<Pick<Integrity, 'damage' | 'size' | 'free'>>

export const integrity = (engine: Engine, condition: Condition) => ({
  /** Reads everything and changes nothing, which takes seconds among millions. Null: the first start has yet to make the tables. */
  async checkIntegrity(): Promise<Integrity | null> {
    const opened = await engine.openIfMade()
    if (opened === null) return null
    return lend(engine, opened, async sql => {
      const { now, after } = sql.dialect
      const [row] = await sql.all<{ n: number }>(
        "select count(*) as n from delivery where state = 'waiting' and token is not null" +
          ` and due_at < ${after(now, String(-LATE))}`,
      )
      return { ...(await condition(sql)), staleLeases: row!.n }
    })
  },
})
