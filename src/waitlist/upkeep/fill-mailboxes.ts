import type { Loop } from '../delivery/loop.ts'
import type { Log } from '../ports/log.ts'
import type { Upkeep } from '../ports/upkeep.ts'
import { pause } from '../timers.ts'

export interface FillParts {
  readonly store: Pick<Upkeep, 'fillMailboxes'>
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Milliseconds between two steps. */
  readonly rest?: number
  /** Milliseconds from the end of a pass to the next one. */
  readonly every?: number
  /** Milliseconds after which a step is tried again that failed. */
  readonly retry?: number
}

/** Contacts of one step. Signups wait for it. */
const PAGE = 100
/** Milliseconds. */
const REST = 20
/** Milliseconds: a day. */
const EVERY = 86_400_000
/** Milliseconds. */
const RETRY = 60_000

/**
 * Finds the mailboxes of contacts that were stored without one, or by an older rule: at the start, and every day for what
 * an import or an instance with other settings has added since. No cursor is kept, since a pass that has nothing to change
 * only reads; so each instance makes its own, and a restart begins again.
 */
export function fillingMailboxes({
  store,
  log,
  rest = REST,
  every = EVERY,
  retry = RETRY,
}: FillParts): Pick<Loop, 'start' | 'stop'> {
  const leaving = new AbortController()
  const { signal } = leaving
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    let [after, filled] = [0, 0]
    while (!signal.aborted) {
      try {
        const step = await store.fillMailboxes(after, PAGE)
        filled += step.filled
        after = step.last ?? 0
        if (step.last !== null) {
          await pause(rest, signal)
          continue
        }
        if (filled > 0) log.info({ contacts: filled }, 'the mailboxes of earlier contacts are known now')
        filled = 0
        await pause(every, signal)
      } catch (error) {
        if (signal.aborted) return
        log.warn(
          { why: String(error) },
          'the mailboxes of earlier contacts could not be looked up; this is tried again',
        )
        await pause(retry, signal)
      }
    }
  }

  return {
    start() {
      running ??= run()
    },
    async stop() {
      leaving.abort()
      await running
    },
  }
}
