import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** By its folder, what ends a server where this process ends before its time: by itself, by `timeout`, or by Ctrl-C. */
const ours = new Map<string, () => void>()
const signals = ['SIGTERM', 'SIGINT'] as const

/** A new folder for a server, which is gone after `remove`, or after `end` and this process, whichever comes first. */
export function endedWithUs(name: string, end: () => void): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), `waitlist-${name}-`))
  if (ours.size === 0) {
    process.on('exit', endAll)
    for (const signal of signals) process.on(signal, endBy)
  }
  ours.set(folder, end)
  return {
    folder,
    remove() {
      removeAll(folder)
      ours.delete(folder)
      if (ours.size === 0) stopListening()
    },
  }
}

/** Again, where a server that was told to end removes files at the same moment: then Node stops, and says nothing. */
function removeAll(folder: string): void {
  for (let tries = 0; tries < 60 && existsSync(folder); tries++) {
    if (tries > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
  }
}

function endAll(): void {
  for (const end of ours.values()) {
    try {
      end()
    } catch (error) {
      console.error(error)
    }
  }
  for (const folder of ours.keys()) removeAll(folder)
  ours.clear()
}

/** As if nobody had listened: the signal ends this process, unless somebody else listens too. */
function endBy(signal: NodeJS.Signals): void {
  endAll()
  stopListening()
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
}

function stopListening(): void {
  process.off('exit', endAll)
  for (const signal of signals) process.off(signal, endBy)
}
