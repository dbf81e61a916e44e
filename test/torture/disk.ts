import type { Call } from './trace.ts'

/** What a disk may do to what was not synced when the power goes. */
export const losses = ['all lost', 'all kept', 'a prefix kept', 'some kept', 'some kept, one torn'] as const
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
  readonly file: string
  /** Null: the name is gone. */
  readonly is: File | null
  readonly ended: number
}

/**
 * One folder of a disk. What a sync covered is there. Of the rest, any part of each file may be, in any order; names
 * appear and vanish in their order, as on file systems with a journal.
 */
export class Disk {
  readonly #folder: string
  /** What the programs see. */
  readonly #named = new Map<string, File>()
  readonly #syncedNames = new Map<string, File>()
  #namings: Naming[] = []

  constructor(folder: string) {
    this.#folder = folder
  }

  apply(call: Call): void {
    switch (call.is) {
      case 'create':
        if (this.#named.has(call.file)) return
        return this.#name({ ...call, is: { synced: new Image(), pending: [] } })
      case 'unlink':
        return this.#name({ ...call, is: null })
      case 'write':
      case 'truncate':
        return void this.#named.get(call.file)?.pending.push(call)
      case 'sync': {
        const isOver = ({ ended }: { readonly ended: number }) => ended < call.began
        if (call.file === this.#folder) {
          for (const naming of this.#namings.filter(isOver)) rename(this.#syncedNames, naming)
          this.#namings = this.#namings.filter(naming => !isOver(naming))
        }
        const file = this.#named.get(call.file)
        if (file === undefined) return
        for (const change of file.pending.filter(isOver)) file.synced.apply(change)
        file.pending = file.pending.filter(change => !isOver(change))
      }
    }
  }

  #name(naming: Naming): void {
    rename(this.#named, naming)
    this.#namings.push(naming)
  }

  /** What may be found after the power went now: the bytes of each file. */
  after(loss: Loss, random: () => number): Map<string, Buffer> {
    const names = new Map(this.#syncedNames)
    for (const naming of this.#namings.slice(0, keptOf(this.#namings.length, loss, random))) rename(names, naming)
    return new Map([...names].map(([name, { synced, pending }]) => [name, leftOf(synced, pending, loss, random)]))
  }
}

function rename(names: Map<string, File>, { file, is }: Naming): void {
  if (is === null) names.delete(file)
  else names.set(file, is)
}

function keptOf(count: number, loss: Loss, random: () => number): number {
  if (loss === 'all lost') return 0
  return loss === 'all kept' ? count : Math.floor(random() * (count + 1))
}

function leftOf(synced: Image, pending: readonly Change[], loss: Loss, random: () => number): Buffer {
  const left = synced.copy()
  const isPrefix = loss !== 'some kept' && loss !== 'some kept, one torn'
  const kept = isPrefix ? pending.slice(0, keptOf(pending.length, loss, random)) : pending.filter(() => random() < 0.5)
  const torn = loss === 'some kept, one torn' ? Math.floor(random() * kept.length) : -1
  for (const [i, change] of kept.entries()) {
    if (i === torn && change.is === 'write') for (const part of sectorsOf(change, random)) left.apply(part)
    else left.apply(change)
  }
  return left.bytes()
}

/** Half of the sectors that it touches. */
function* sectorsOf(write: Extract<Change, { is: 'write' }>, random: () => number): Iterable<Change> {
  const end = write.at + write.bytes.length
  for (let at = write.at; at < end; at = (Math.floor(at / SECTOR) + 1) * SECTOR) {
    const next = Math.min(end, (Math.floor(at / SECTOR) + 1) * SECTOR)
    if (random() < 0.5) yield { ...write, at, bytes: write.bytes.subarray(at - write.at, next - write.at) }
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
