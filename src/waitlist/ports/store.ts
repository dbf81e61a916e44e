import type { Outbox } from './outbox.ts'
import type { Signups } from './signups.ts'
import type { Upkeep } from './upkeep.ts'

/** Keeps contacts and their deliveries. */
export interface Store extends Signups, Outbox, Upkeep {
  /** Resolves if writes can no longer be trusted. The process must then end; a restart recovers. */
  readonly failure: Promise<Error>

  /**
   * Refuses every signup that waits for its commit, and every later one, since a stop cannot wait any longer. Those under
   * way may yet be stored.
   */
  refuse(): void

  /** Completes what was accepted, then releases every resource. Later calls of `admit` are refused. */
  close(): Promise<void>
}
