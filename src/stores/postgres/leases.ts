import { randomUUID } from 'node:crypto'
import { LEASE } from '../../waitlist/ports.ts'
import type { Postgres, Statement } from './client.ts'
import { inMilliseconds, NOW } from './sql.ts'

type Leased = 'registration' | 'delivery'

/** Leases are taken under a token that this side makes, so that one whose answer was lost can be given back. */
export interface Leases {
  /** Takes what the statement says; a try whose answer was lost gives back first what it had taken. */
  take<Row>(
    table: Leased,
    statement: (token: string) => Statement<Row>,
  ): Promise<{ readonly token: string; readonly rows: readonly Row[] }>
  /** Nobody learned of the leases with these tokens, if there are any. */
  lost(table: Leased, tokens: readonly string[]): void
  /** Gives back what it can. */
  close(): Promise<void>
}

/** Nobody was called, so nothing is in doubt. The bounds of `due_at` are for the index. */
const giveBack = (table: Leased) => `
update ${table} set token = null, due_at = ${NOW}, attempts = attempts - 1, why = 'taken without an answer'
where token = any($2::uuid[]) and due_at > ${NOW} and due_at <= ${inMilliseconds('$3')}${
  table === 'delivery' ? " and state = 'waiting'" : ''
}`

/** Milliseconds after which no try that was cut off is still under way on the server, as a rule. */
const STRAGGLING = 5_000

export function leases({ run, attempt }: Postgres, now: () => Date | null): Leases {
  const waiting = new Map<string, { readonly table: Leased; readonly until: number }>()
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const giving = (table: Leased, tokens: readonly string[]): Statement<never> => ({
    text: giveBack(table),
    values: [now(), tokens, LEASE],
  })

  async function giveAllBack(): Promise<void> {
    const all = [...waiting]
    waiting.clear()
    for (const table of ['registration', 'delivery'] as const) {
      const some = all.filter(([, each]) => each.table === table)
      const tokens = some.map(([token]) => token)
      if (tokens.length === 0) continue
      await run(() => giving(table, tokens)).catch(() => {
        // When the lease is over, others take it anyway.
        for (const [token, each] of some) if (each.until > performance.now()) waiting.set(token, each)
      })
    }
    if (waiting.size > 0) later()
  }

  function later(): void {
    if (closed) return
    timer ??= setTimeout(() => {
      timer = undefined
      void giveAllBack()
    }, STRAGGLING)
  }

  function lost(table: Leased, tokens: readonly string[]): void {
    const until = performance.now() + LEASE
    for (const token of tokens) waiting.set(token, { table, until })
    if (tokens.length > 0) later()
  }

  return {
    async take(table, statement) {
      const earlier: string[] = []
      let token: string | undefined
      try {
        const rows = await attempt(async (query, again) => {
          if (again && token !== undefined) {
            earlier.push(token)
            await query(giving(table, earlier))
          }
          token = randomUUID()
          return query(statement(token))
        })
        return { token: token!, rows }
      } catch (error) {
        if (token !== undefined) earlier.push(token)
        throw error
      } finally {
        // Once more later: the server may still be at it.
        lost(table, earlier)
      }
    },
    lost,
    async close() {
      closed = true
      clearTimeout(timer)
      await giveAllBack()
    },
  }
}
