import type { Counts } from '../alerts/counts.ts'

/** What the background of the running service asks of the store. */
export interface Upkeep {
  /**
   * Takes a turn that instances share. False: one of them took it less than `distance` milliseconds ago, as long as the
   * store's clock is not set. With `latest`, also when nobody has taken it yet, or for more than `latest` milliseconds
   * after it was free: then the distance begins anew.
   */
  acquireInterval(name: string, distance: number, latest?: number): Promise<boolean>

  /**
   * Looks at the next `most` deliveries after number `after`, and deletes those that were delivered more than `age`
   * milliseconds ago, by the store's clock. `counting`: it deletes none, and says how many it would.
   */
  prune(age: number, after: number, most: number, counting?: boolean): Promise<Pruned>

  /** A random value that all instances share, 64 hexadecimal digits, made when it is first asked for. */
  secret(name: string): Promise<string>

  /** Counts the contacts that are listed now, without holding up signups. It may take seconds. */
  countListed(): Promise<number>

  /** Counts everything, of one moment, without holding up signups. It may take seconds. All who ask meanwhile share it. */
  counts(): Promise<Counts>
}

/** What was deleted of some deliveries. */
export interface Pruned {
  readonly looked: number
  readonly deleted: number
  /** How many of them were abandoned. */
  readonly abandoned: number
  /** The number of the last that was looked at; null: there are no more. */
  readonly last: number | null
}
