/** Copies of the whole store. */
export interface Copies {
  /** Copies the whole store to a new file. */
  backUp(target: string): Promise<void>
}
