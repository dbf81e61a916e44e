import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** By its folder, what ends a server where this process ends before its time: by itself, by `timeout`, or by Ctrl-C. */
const ours = new Map<string, () => void>()

/** A new folder for a server, which is gone after `remove`, or after `end` and this process, whichever comes first. */
export function endedWithUs(name: string, end: () => void): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), `waitlist-${name}-`))
  ours.set(folder, end)
  return {
    folder,
    remove() {
      removeAll(folder)
      ours.delete(folder)
    },
  }
}

process.on('exit', endAll)
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    endAll()
    // As if nobody had listened, unless somebody else does.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
  })
}

function endAll(): void {
  for (const end of ours.values()) end()
  for (const folder of ours.keys()) removeAll(folder)
  ours.clear()
}

/** Again, where a server that was told to end removes files at the same moment: then Node stops, and says nothing. */
function removeAll(folder: string): void {
  for (let tries = 0; tries < 60 && existsSync(folder); tries++) {
    if (tries > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
  }
}
