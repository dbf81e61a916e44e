/** Copies of the whole store. */
export interface Copies {
  /** Copies the whole store to a new file, and reads all of the copy to check it. */
  backUp(target: string): Promise<BackedUp>
  /**
   * Puts a backup in the place of the store, which no service may use meanwhile, and keeps what was there. With null: the
   * store's own tools have just restored it, and only what a backup cannot know is brought up to date.
   *
   * A backup does not know what happened after it was made. So contacts that were erased since are taken out of it, and
   * each waiting delivery is in doubt.
   */
  restore(file: string | null): Promise<Restored>
}

export interface BackedUp {
  readonly contacts: number
  /** Bytes. */
  readonly size: number
}

export interface Restored {
  readonly contacts: number
  /** Contacts that were erased since, and were taken out. */
  readonly erased: number
  /** Waiting deliveries. */
  readonly doubtful: number
  /** What was there before; null: nothing. */
  readonly kept: Kept | null
}

export interface Kept {
  readonly file: string
  /** Null: it cannot be read, so nobody knows who was erased there. */
  readonly contacts: number | null
  /** Contacts that are only there. */
  readonly missing: number
  /** Erased addresses of the backup that cannot be told any more: they are hashed under another secret. */
  readonly forgotten: number
}
