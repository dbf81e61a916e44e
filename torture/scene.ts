import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFaultProxy } from '../test/harness/fault-proxy.ts'
import { Ledger } from '../test/harness/ledger.ts'
import { runProgram } from '../test/harness/program.ts'
import { seeded } from '../test/harness/seed.ts'
import { changedCopy } from './build.ts'
import type { Scene } from './scenario.ts'
import { watch } from './watch.ts'

export interface SceneOptions {
  readonly seconds: number
  readonly seed: number
  /** Of the service, where it is not that of this folder. */
  readonly entry: string | undefined
}

const settings = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', SHUTDOWN_DELAY: '0' }

/** Gives a scenario what it needs, and ends all of it afterwards, also where this process ends before its time. */
export async function withScene<T>(
  { seconds, seed, entry }: SceneOptions,
  use: (scene: Scene) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'waitlist-torture-'))
  const start = performance.now()
  const random = seeded(seed)
  const hooks: (() => unknown)[] = []
  const scene: Scene = {
    seconds,
    seed,
    random,
    folder,
    entry,
    ledger: new Ledger(),
    isOver: (part = 1) => performance.now() - start >= seconds * part * 1000,
    after: hook => void hooks.push(hook as () => unknown),
    diagnostic: text => void process.stderr.write(`  ${text}\n`),
    service: (env = {}, surroundings = {}) =>
      runProgram(scene, { ...settings, ...env }, { cwd: folder, ...(entry && { entry }), ...surroundings }),
    changed: (...edits) => changedCopy(entry, mkdtempSync(join(folder, 'build-')), edits),
    async proxy(port) {
      const proxy = await startFaultProxy(port, Math.floor(random() * 2 ** 32))
      scene.after(() => proxy.close())
      return proxy
    },
    watch(pid) {
      const watched = watch(pid)
      scene.after(() => watched.stop())
      return watched
    },
  }
  // What ends a process does so at once, and only then waits for it.
  const endNow = () => {
    for (const hook of hooks) (async () => hook())().catch(() => {})
    rmSync(folder, { recursive: true, force: true })
  }
  process.on('exit', endNow)
  try {
    return await use(scene)
  } finally {
    // Some hooks add others.
    for (const hook of hooks) await hook()
    process.off('exit', endNow)
    rmSync(folder, { recursive: true, force: true })
  }
}
