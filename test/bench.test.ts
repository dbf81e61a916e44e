import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from './harness/folder.ts'

const bench = fileURLToPath(new URL('../bench/run.ts', import.meta.url))

test('the benchmark, run quickly, measures every scenario and leaves nothing behind', async t => {
  const folder = temporaryFolder(t)
  const env = { PATH: process.env.PATH, TMPDIR: folder }
  const { stdout } = await promisify(execFile)(process.execPath, [bench, '--quick'], { env, timeout: 60_000 })

  for (const scenario of ['health', 'new signup', 'known address', 'refused body', 'too many attempts']) {
    assert.match(stdout, new RegExp(`^\\| ${scenario} +\\| \\d+\\.\\d\\d \\(`, 'm'))
  }
  assert.match(stdout, /^\| new signup, 2,000 contacts against 1,000 +\| \d/m)
  assert.match(stdout, /^\| process start until it listens +\| \d+ ms/m)
  const left = readdirSync(folder).filter(name => name.startsWith('waitlist-bench-'))
  assert.deepEqual(left, [], `left behind: ${left.map(name => join(folder, name))}`)
})
