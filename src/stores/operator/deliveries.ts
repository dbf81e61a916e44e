import type { Contact, DeliveryRecord, DeliveryState } from '../../waitlist/rules/contact.ts'

/** Deliveries, as the operator sees and replays them. */
export interface Deliveries {
  /** The newest first. */
  deliveries(filter: DeliveryFilter): Promise<readonly DeliveryRecord[]>
  /** One delivery with its contact; undefined if there is none with this number. */
  delivery(number: number): Promise<ContactDelivery | undefined>
  /**
   * Makes deliveries due now, as if they were new. Replaying clears their doubt, which is the operator's decision; only
   * hand-overs keep it, since the provider can resolve it. A delivery that is under way is left alone, or it would be
   * attempted twice at once. It goes in short steps, so that signups do not wait, and what was done stays done if it is
   * stopped. `progress` is called after each step of `abandoned`.
   */
  replay(wish: ReplayWish, progress?: ReplayProgress): Promise<Replay>
  /** Nothing where the first start has yet to make the tables. */
  backlog(): Promise<Backlog>
}

export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined
  readonly destination?: string | undefined
  /** The most rows, at least 1. */
  readonly limit: number
}

export interface ContactDelivery {
  readonly record: DeliveryRecord
  readonly contact: Contact
}

/** Either deliveries by number, or all abandoned ones. */
export type ReplayWish =
  | { readonly numbers: readonly number[] }
  | { readonly abandoned: true; readonly destination?: string | undefined }

/** `done`: the deliveries that were looked at so far. `total`: those that were abandoned at the start. */
export type ReplayProgress = (done: number, total: number) => void

/** The result of a replay. The numbers in `underWay` are leased now; those in `unknown` do not exist. */
export interface Replay {
  readonly replayed: number
  readonly underWay: readonly number[]
  readonly unknown: readonly number[]
}

/** What is not completed. */
export interface Backlog {
  /** Contacts. */
  readonly pending: number
  /** Waiting deliveries by destination. `why`: how one of their attempts ended, if there was any. */
  readonly waiting: Readonly<Record<string, { readonly count: number; readonly why: string | null }>>
  /** Deliveries that were abandoned. */
  readonly abandoned: number
}

/** Of a database that has no tables yet. */
export const NO_BACKLOG: Backlog = { pending: 0, waiting: {}, abandoned: 0 }

/** Makes deliveries new and due. Only hand-overs keep their doubt. Times and booleans are in the engine's form. */
export const renew = (now: string): string =>
  `update delivery set state = 'waiting', due_at = ${now}, attempts = 0, token = null, why = null, settled_at = null,` +
  " doubt = (doubt or token is not null) and exists (select 1 from contact where contact.number = delivery.contact and contact.state = 'pending')"
