import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'

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
})
