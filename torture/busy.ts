import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { load } from '../test/harness/load.ts'
import type { Scene } from './scenario.ts'

const CLIENTS = 8

/** Signups without end, beside whatever a scenario does. */
export interface Busy {
  /** How many answers there were of each status; `none` where a connection was lost. */
  readonly answers: Readonly<Record<string, number>>
  stop(): Promise<void>
}

/** Signs up on a few connections. Only the statuses in `mayBe` are right, and no answer may take 15 s. */
export function busy(
  { ledger, after }: Pick<Scene, 'ledger' | 'after'>,
  baseUrl: string,
  {
    mayBe,
    round = 0,
    rest = 5,
  }: { readonly mayBe: readonly (number | 'none')[]; readonly round?: number; readonly rest?: number },
): Busy {
  const answers: Record<string, number> = {}
  let isOver = false
  const loading = load({
    ledger,
    clients: CLIENTS,
    round,
    rest,
    to: () => baseUrl,
    goesOn(answer) {
      const status = answer?.status ?? 'none'
      answers[status] = (answers[status] ?? 0) + 1
      assert.ok(mayBe.includes(status), `answered with ${status}`)
      return !isOver
    },
  })
  // Told to the one who stops it.
  loading.catch(() => {})
  const stop = () => {
    isOver = true
    return loading
  }
  after(() => stop().catch(() => {}))
  return { answers, stop }
}

/** Milliseconds between two looks at the health report, as a balancer looks. */
const LOOK = 250

/** Milliseconds until the health report has this status. Rejects after `within` milliseconds. */
export async function becomes(baseUrl: string, status: number, within = 5_000): Promise<number> {
  const start = performance.now()
  for (;;) {
    const now = await fetch(`${baseUrl}/api/health`).then(
      ({ status }) => status,
      () => 0,
    )
    const took = performance.now() - start
    if (now === status) return took
    assert.ok(took < within, `health is ${now} and not ${status} after ${within} ms`)
    await wait(LOOK)
  }
}
