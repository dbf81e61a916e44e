import { createHmac } from 'node:crypto'
import { OperatorError } from '../../waitlist/ports/log.ts'
import type { ContactState, DeliveryState } from '../../waitlist/rules/contact.ts'
import { emailKey } from '../../waitlist/rules/signup.ts'
import { newSecret, secretOf } from '../secret.ts'
import { type Engine, lend, type Sql } from '../sql.ts'

/** What is stored about a contact, without the contact itself. A destination may be in a list for each of its events. */
export interface Traces {
  readonly state: ContactState
  readonly createdAt: Date
  /** How many deliveries are in each state. */
  readonly deliveries: Readonly<Record<DeliveryState, number>>
  readonly told: readonly string[]
  /** Attempts were made there, and none is known to have succeeded. */
  readonly tried: readonly string[]
  /** An attempt is leased now. */
  readonly underWay: readonly string[]
}

/** The name of the secret under which erased addresses are hashed. It is made at the first removal. */
export const ERASURE = 'erasure'

/**
 * What is kept of an erased address, so that older copies of the contact do not come back: HMAC-SHA-256 in hex. Who has
 * neither the secret nor the address learns nothing from it.
 */
export const erasureHash = (secret: string, email: string): string =>
  createHmac('sha256', secret).update(emailKey(email)).digest('hex')

/** When each of these addresses was erased, by its key; those that were not are missing. */
export async function erasedAt(sql: Sql, emails: readonly string[]): Promise<ReadonlyMap<string, Date>> {
  const secret = await secretOf(sql, ERASURE)
  if (secret === undefined) return new Map()
  const keys = new Map(emails.map(email => [erasureHash(secret, email), emailKey(email)] as const))
  const { among, elements } = sql.dialect
  const rows = await sql.all<{ hash: string; erased_at: number }>(
    `select hash, erased_at from erased where ${among('hash', elements('$1', 'text'))}`,
    [JSON.stringify([...keys.keys()])],
  )
  return new Map(rows.map(({ hash, erased_at }) => [keys.get(hash)!, new Date(erased_at)]))
}

export const erasure = (engine: Engine) => ({
  /** What is stored about the contact with this address; undefined: it is not on the list. */
  traces: (email: string) => lend(engine, 'reading', async sql => (await find(sql, email))?.traces),
  /**
   * Deletes the contact with its deliveries in one step, and keeps a keyed hash of the address, so that older copies do not
   * come back. An attempt that is under way may still arrive; its outcome is stored nowhere.
   */
  async erase(email: string): Promise<Traces | undefined> {
    const traces = await lend(engine, 'writing', sql => erase(sql, email))
    if (traces === null)
      throw new OperatorError(
        'The connection was lost before the answer came; the contact is not on the list any more.',
      )
    if (traces !== undefined) await engine.emptyLog()
    return traces
  },
})

/** Erases the contact with this address, in the same way. False: it is not on the list. */
export const leave = async (sql: Sql, email: string): Promise<boolean> => (await erase(sql, email)) !== undefined

async function find(sql: Sql, email: string): Promise<{ number: number; traces: Traces } | undefined> {
  const { now } = sql.dialect
  const [contact] = await sql.all<{ number: number; state: ContactState; created_at: number }>(
    'select number, state, created_at from contact where email_key = $1',
    [emailKey(email)],
  )
  if (contact === undefined) return undefined
  const { number, state, created_at } = contact
  const rows = await sql.all<TraceRow>(
    'select destination, state, attempts > 0 or doubt as tried,' +
      ` token is not null and due_at > ${now} as leased` +
      ' from delivery where contact = $1 order by number',
    [number],
  )
  return { number, traces: tracesOf({ state, createdAt: new Date(created_at) }, rows) }
}

/** Null: an earlier try may have done it, whose answer was lost. */
const erase = (sql: Sql, email: string): Promise<Traces | null | undefined> =>
  sql.transaction(
    async (sql, again) => {
      const { now, later, forUpdate } = sql.dialect
      const key = emailKey(email)
      // In the order of settlements: first what is settled, then the contact.
      await sql.all(
        `select number from delivery where contact in (select number from contact where email_key = $1) order by number ${forUpdate}`,
        [key],
      )
      await sql.all(`select number from contact where email_key = $1 ${forUpdate}`, [key])
      const found = await find(sql, email)
      if (found === undefined) return again ? null : undefined
      await sql.all('insert into secret (name, value) values ($1, $2) on conflict do nothing', [ERASURE, newSecret()])
      // Not before the signup, even if the clock was set back since.
      await sql.all(
        `insert into erased (hash, erased_at) select cast($1 as text), ${later(now, 'created_at')} from contact where number = $2` +
          ` on conflict (hash) do update set erased_at = ${later('erased.erased_at', 'excluded.erased_at')}`,
        [erasureHash((await secretOf(sql, ERASURE))!, email), found.number],
      )
      await sql.all('delete from contact where number = $1', [found.number])
      return found.traces
    },
    { lock: 'erasures' },
  )

/** Numbers or booleans, depending on the engine. */
interface TraceRow {
  readonly destination: string
  readonly state: DeliveryState
  readonly tried: number | boolean
  readonly leased: number | boolean
}

function tracesOf(contact: Pick<Traces, 'state' | 'createdAt'>, rows: readonly TraceRow[]): Traces {
  const count = (state: DeliveryState) => rows.filter(row => row.state === state).length
  const where = (holds: (row: TraceRow) => boolean) => [
    ...new Set(rows.filter(holds).map(({ destination }) => destination)),
  ]
  return {
    ...contact,
    deliveries: { waiting: count('waiting'), delivered: count('delivered'), abandoned: count('abandoned') },
    told: where(({ state }) => state === 'delivered'),
    tried: where(({ state, tried, leased }) => state !== 'delivered' && !leased && Boolean(tried)),
    underWay: where(({ state, leased }) => state === 'waiting' && Boolean(leased)),
  }
}
