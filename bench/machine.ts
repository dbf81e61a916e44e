import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { median } from './report.ts'

/** What the figures depend on. */
export function machineFacts(folder: string): readonly string[] {
  const { node, sqlite } = process.versions
  const model = cpus()[0]?.model.trim() ?? 'unknown'
  return [
    `${cpus().length} cores (${model}), ${(totalmem() / 2 ** 30).toFixed(0)} GiB of memory, ${process.platform}`,
    `Node.js ${node}, SQLite ${sqlite}`,
    `fsync of 4 KiB in the folder of the databases: ${(syncTime(folder) * 1000).toFixed(0)} µs (median of 200)`,
    `load average at the start: ${loadavg()[0]!.toFixed(2)}`,
  ]
}

/** Median of 200, in milliseconds, of one append of a page and its sync. */
function syncTime(folder: string): number {
  const path = join(folder, 'sync')
  const file = openSync(path, 'w')
  const page = Buffer.alloc(4096, 1)
  const times = Array.from({ length: 200 }, () => {
    writeSync(file, page)
    const start = performance.now()
    fsyncSync(file)
    return performance.now() - start
  })
  closeSync(file)
  rmSync(path)
  return median(times)
}
