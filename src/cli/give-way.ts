import { constants, setPriority } from 'node:os'
import { setFlagsFromString } from 'node:v8'

/**
 * For a command through which very many rows go. Each lives only briefly, and V8 would let its young generation grow to
 * 64 MiB, which makes nothing faster here.
 */
export const keepNurserySmall = (): void => setFlagsFromString('--semi-space-growth-factor=1')

/** For one that only reads, too: the service beside it comes first. One that writes would hold its lock for longer. */
export function giveWay(): void {
  keepNurserySmall()
  try {
    setPriority(constants.priority.PRIORITY_LOW)
  } catch {
    // A system that does not let a process do that shares its processors evenly.
  }
}
