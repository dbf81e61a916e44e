import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { npmSettings } from './harness/npm-start.ts'
import { cloned } from './harness/packed.ts'
import { freePort } from './harness/port.ts'
import { isSlow } from './harness/slow.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const paths = globSync('.github/workflows/*.yml', { cwd: root })

describe('the workflows', () => {
  test('name each action by its commit, and its version beside it', () => {
    const used = paths.flatMap(path => readFileSync(join(root, path), 'utf8').match(/\buses:.*/g) ?? [])
    assert.ok(used.length > 5)
    for (const line of used) assert.match(line, /^uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  })

  for (const [linter, args] of [
    ['actionlint', ['-no-color', ...paths]],
    ['zizmor', ['--offline', '--no-progress', '--persona=pedantic', '.github']],
  ] as const) {
    test(`have nothing that ${linter} would change`, {
      skip: spawnSync(linter, ['--version']).error !== undefined && `${linter} is not installed; .ci/run installs it`,
    }, () => {
      const { status, stdout, stderr } = spawnSync(linter, args, { cwd: root, encoding: 'utf8' })
      assert.equal(status, 0, stdout + stderr)
    })
  }

  test('scripts/readme.sh installs, starts and signs somebody up', {
    timeout: 300_000,
    skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
  }, async t => {
    const env = { HOME: process.env.HOME, PATH: process.env.PATH, ...npmSettings }
    const script = ['scripts/readme.sh', String(await freePort())]
    const { stdout } = await promisify(execFile)('bash', script, { cwd: cloned(t), env })
    assert.equal(JSON.parse(stdout).alreadyExisted, false)
  })
})
