import type { Pruned } from '../../waitlist/ports/upkeep.ts'

/** Deletes deliveries that are of no use any more. */
export interface Pruning {
  /**
   * Deletes the deliveries of events that ended before then. It goes in short steps, so that signups do not wait, and what
   * was done stays done if it is stopped. `progress` is called after each step.
   */
  prune(before: Date, progress?: PruneProgress): Promise<Pick<Pruned, 'deleted' | 'abandoned'>>
}

/** `done`: the deliveries that were looked at so far. `total`: those that were there at the start. */
export type PruneProgress = (done: number, total: number) => void

/**
 * What may be pruned: not the hand-over of somebody who is pending, which is not at its end even if it was abandoned. What
 * was abandoned is the owner's to replay, so only `byHand`. `before` is SQL.
 */
export const endedBefore = (before: string, byHand: boolean): string =>
  `delivery.state ${byHand ? "<> 'waiting'" : "= 'delivered'"} and settled_at < ${before}` +
  " and (select contact.state from contact where contact.number = delivery.contact) is distinct from 'pending'"
