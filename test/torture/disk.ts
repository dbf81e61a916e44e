import type { Call } from './trace.ts'

/** What a disk may do, in a power failure, to what was not synced. */
export const losses = ['all lost', 'a prefix kept', 'some kept, one torn'] as const
export type Loss = (typeof losses)[number]

/** Bytes that a disk writes whole, or not at all. */
const SECTOR = 512

type Change = Extract<Call, { is: 'write' | 'truncate' }>

interface File {
  readonly synced: Image
  /** In their order. */
  pending: Change[]
}

interface Naming {
  readonly name: string
  /** `undefined` removes the name. */
  readonly file: File | undefined
  readonly ended: number
}

/**
 * One folder of a disk. What a sync covered is there. Of the rest, any part of each file may be, in any order; names
 * appear and vanish in their order, as on file systems with a journal.
 */
export class Disk {
  readonly #folder: string
  /** What the programs see. */
  readonly #files = new Map<string, File>()
  readonly #synced = new Map<string, File>()
  #namings: Naming[] = []

  constructor(folder: string) {
    this.#folder = folder
  }

  apply(call: Call): void {
    switch (call.is) {
      case 'create':
        if (this.#files.has(call.file)) return
        return this.#name({ name: call.file, file: { synced: new Image(), pending: [] }, ended: call.ended })
      case 'unlink':
        return this.#name({ name: call.file, file: undefined, ended: call.ended })
      case 'write':
      case 'truncate':
        return void this.#files.get(call.file)?.pending.push(call)
      case 'sync': {
        const isCovered = ({ ended }: { readonly ended: number }) => ended < call.began
        if (call.file === this.#folder) {
          for (const naming of this.#namings.filter(isCovered)) rename(this.#synced, naming)
          this.#namings = this.#namings.filter(naming => !isCovered(naming))
        }
        const file = this.#files.get(call.file)
        if (file === undefined) return
        for (const change of file.pending.filter(isCovered)) file.synced.apply(change)
        file.pending = file.pending.filter(change => !isCovered(change))
      }
    }
  }

  #name(naming: Naming): void {
    rename(this.#files, naming)
    this.#namings.push(naming)
  }

  /** What may be found after a power failure now: the bytes of each file. */
  after(loss: Loss, random: () => number): Map<string, Buffer> {
    const prefix = <T>(all: readonly T[]) => all.slice(0, loss === 'all lost' ? 0 : random() * (all.length + 1))
    const files = new Map(this.#synced)
    for (const naming of prefix(this.#namings)) rename(files, naming)
    const found = ({ synced, pending }: File): Buffer => {
      const image = synced.copy()
      const isTorn = loss === 'some kept, one torn'
      const kept = isTorn ? pending.filter(() => random() < 0.5) : prefix(pending)
      const torn = isTorn ? kept[Math.floor(random() * kept.length)] : undefined
      for (const change of kept) {
        const parts = change === torn && change.is === 'write' ? someSectors(change, random) : [change]
        for (const part of parts) image.apply(part)
      }
      return image.bytes()
    }
    return new Map([...files].map(([name, file]) => [name, found(file)]))
  }
}

function rename(files: Map<string, File>, { name, file }: Naming): void {
  if (file === undefined) files.delete(name)
  else files.set(name, file)
}

/** Half of the sectors that it touches. */
function* someSectors(write: Extract<Change, { is: 'write' }>, random: () => number): Iterable<Change> {
  const end = write.at + write.bytes.length
  for (let at = write.at; at < end; ) {
    const next = Math.min(end, (Math.floor(at / SECTOR) + 1) * SECTOR)
    if (random() < 0.5) yield { ...write, at, bytes: write.bytes.subarray(at - write.at, next - write.at) }
    at = next
  }
}

/** The bytes of a file. */
class Image {
  #room: Buffer
  #size: number

  constructor(bytes: Buffer = Buffer.alloc(0)) {
    this.#room = bytes
    this.#size = bytes.length
  }

  apply(change: Change): void {
    const size = change.is === 'write' ? change.at + change.bytes.length : change.size
    if (size > this.#room.length) this.#room = Buffer.concat([this.bytes()], Math.max(size, 2 * this.#room.length))
    if (change.is === 'write') {
      change.bytes.copy(this.#room, change.at)
      this.#size = Math.max(this.#size, size)
    } else {
      this.#room.fill(0, Math.min(size, this.#size), this.#size)
      this.#size = size
    }
  }

  bytes = (): Buffer => this.#room.subarray(0, this.#size)
  copy = (): Image => new Image(Buffer.from(this.bytes()))
}
