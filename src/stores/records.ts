import type { Contact, DeliveryRecord, DeliveryState, JoinedEvent } from '../waitlist/contact.ts'

/** What an operator asks of a store. All of it works beside the services that use the store. */
export interface Records {
  /**
   * All contacts in the order in which they joined, as they stood at one moment. Resolves when they can be read.
   *
   * @throws {CannotOpen} as every other method does, when there is no such store or it is none of ours.
   */
  contacts(): Promise<Iterable<Contact> | AsyncIterable<Contact>>
  /** The newest first. */
  deliveries(filter: DeliveryFilter): Promise<readonly DeliveryRecord[]>
  /** One delivery with its event; undefined when there is none with this number. */
  delivery(number: number): Promise<Delivered | undefined>
  /**
   * Makes deliveries as if they were new and due now; whatever was in doubt about them is the operator's decision. One
   * that is under way is left alone: it would be attempted twice at once.
   */
  replay(wish: ReplayWish): Promise<Replay>
  backlog(): Promise<Backlog>
  /** In a few words what is there; nothing is changed. */
  look(): Promise<string>
  /** Copies the whole store to a new file. */
  backUp(target: string): Promise<void>
}

export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined
  readonly destination?: string | undefined
  /** Rows, from 1. */
  readonly limit: number
}

export interface Delivered {
  readonly record: DeliveryRecord
  readonly event: JoinedEvent
}

/** Either some by their numbers, or all that are abandoned. */
export type ReplayWish =
  | { readonly numbers: readonly number[] }
  | { readonly abandoned: true; readonly destination?: string | undefined }

/** What became of a wish. The numbers of `underWay` are leased at this moment; those of `unknown` do not exist. */
export interface Replay {
  readonly replayed: number
  readonly underWay: readonly number[]
  readonly unknown: readonly number[]
}

/** What has not come to its end: contacts that are pending, deliveries that wait (by destination) or were given up. */
export interface Backlog {
  readonly pending: number
  readonly waiting: Readonly<Record<string, number>>
  readonly abandoned: number
}
