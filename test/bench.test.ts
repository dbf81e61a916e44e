import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { skipSlow } from './harness/environment.ts'

const root = new URL('../', import.meta.url)

for (const against of [[], ['against', fileURLToPath(root)]]) {
  test(`the benchmark, run for a moment${against.length === 0 ? '' : ' against another checkout'}, prints its table`, {
    skip: skipSlow || (process.platform !== 'linux' && 'it needs Linux'),
  }, async () => {
    const args = [fileURLToPath(new URL('bench/run.ts', root)), ...against, 'known', 'limited']
    const env = { PATH: process.env.PATH, ROUNDS: '1', SECONDS: '1' }
    const { stdout } = await promisify(execFile)(process.execPath, args, { env })
    assert.match(stdout, /^\| known \| \d+ \| \d\.\d\d \| \d+ \| \d\.\d\d \|\n\| limited \| /m)
    assert.match(stdout, /^this: listens after \d+ ms, \d+ MB at rest$/m)
  })
}
