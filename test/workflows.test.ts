import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import parsers from '@stoplight/spectral-parsers'
import { npmSettings } from './harness/npm-start.ts'
import { cloned } from './harness/packed.ts'
import { freePort } from './harness/port.ts'
import { isSlow } from './harness/slow.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const paths = globSync('.github/workflows/*.yml', { cwd: root })

interface Step {
  readonly run?: string
  readonly uses?: string
}
interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly 'timeout-minutes'?: number; readonly steps: readonly Step[] }>>
}

/** Which test runs what a step of a workflow runs. */
const runBy: Readonly<Record<string, string>> = {
  'bash scripts/readme.sh': 'test/workflows.test.ts',
  'npm ci': '.ci/run',
  'npm ci && npm test': '.ci/run',
  'sudo --preserve-env=CI bash .ci/run': '.ci/run',
  'npx node scripts/release/check.ts "$GITHUB_REF_NAME"': 'test/deploy/release.test.ts',
  'npx node scripts/release/files.ts': 'test/deploy/release.test.ts',
  'npx node scripts/release/executable.ts': 'test/deploy/release.test.ts',
  'node scripts/release/image.ts build': 'test/deploy/release.test.ts',
  'node scripts/release/image.ts publish': 'test/deploy/release.test.ts',
  'node scripts/release/sign.ts': 'test/deploy/release.test.ts',
  'node scripts/release/npm.ts': 'test/deploy/release.test.ts',
  'node scripts/release/github.ts': 'test/deploy/release.test.ts',
}

describe('the workflows', () => {
  const texts = paths.map(path => readFileSync(join(root, path), 'utf8'))
  const jobs = texts.flatMap(text => Object.values((parsers.Yaml.parse(text).data as Workflow).jobs))
  const steps = jobs.flatMap(({ steps }) => steps)

  test('run nothing that is not run here', () => {
    const run = new Set(steps.flatMap(({ run }) => run ?? []))
    assert.deepEqual([...run].sort(), Object.keys(runBy).sort())
    for (const path of Object.values(runBy)) assert.ok(existsSync(join(root, path)), path)
  })

  test('name each action by its commit, and its version beside it', () => {
    const used = texts.flatMap(text => text.match(/\buses:.*/g) ?? [])
    assert.equal(used.length, steps.filter(({ uses }) => uses !== undefined).length)
    for (const line of used) assert.match(line, /^uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  })

  test('end each job after a while', () => {
    for (const job of jobs) assert.ok((job['timeout-minutes'] ?? Number.POSITIVE_INFINITY) <= 120)
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
