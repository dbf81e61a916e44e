import type { Counts } from '../alerts/counts.ts'

/** What the background of the running service asks of the store. */
export interface Upkeep {
  /**
   * Takes a turn that instances share. False: one of them took it less than `distance` milliseconds ago, as long as the
   * store's clock is not set.
   */
  acquireInterval(name: string, distance: number): Promise<boolean>

  /** Deletes up to `most` deliveries that were delivered more than `age` milliseconds ago, and returns how many there were. */
  prune(age: number, most: number): Promise<number>

  /** A random value that all instances share, 64 hexadecimal digits, made when it is first asked for. */
  secret(name: string): Promise<string>

  /** Counts the contacts that are listed now, without holding up signups. It may take seconds. */
  countListed(): Promise<number>

  /** Counts everything, of one moment, without holding up signups. It may take seconds. All who ask meanwhile share it. */
  counts(): Promise<Counts>
}
