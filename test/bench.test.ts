import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { skipSlow } from './harness/environment.ts'

const noWrk =
  (process.platform !== 'linux' || spawnSync('wrk', ['--version']).error !== undefined) && 'wrk is not installed'
const root = new URL('../', import.meta.url)

for (const [what, ...args] of [
  ['a bare server', 'known'],
  ['another checkout', 'against', fileURLToPath(root), 'limited'],
] as const) {
  test(`the benchmark against ${what}, run for a moment, prints its table`, { skip: skipSlow || noWrk }, async () => {
    const env = { PATH: process.env.PATH, ROUNDS: '1', SECONDS: '1' }
    const script = fileURLToPath(new URL('bench/run.ts', root))
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], { env })
    assert.match(stdout, /^\| \w+ \| \d+ \| \d\.\d\d \| \d+ \| \d\.\d\d \|$/m)
    assert.match(stdout, /^this: listens after \d+ ms, \d+ MB at rest$/m)
  })
}
