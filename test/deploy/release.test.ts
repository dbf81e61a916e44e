import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '../harness/folder.ts'
import { packed } from '../harness/packed.ts'
import { isSlow } from '../harness/slow.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs', 'engineering', 'releasing.md'), 'utf8')
const [sums, bill] = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!)

/** The packages of the lock file that run in production. */
const production = Object.entries(
  JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages as Record<string, { dev?: true }>,
)
  .filter(([path, { dev }]) => path !== '' && dev !== true)
  .map(([path]) => path.replace(/^.*node_modules\//, ''))

describe('docs/engineering/releasing.md', { timeout: 120_000, skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1' }, () => {
  test('the list of what is in a release has each package that runs, and no other', async t => {
    const { tarball } = packed(t)
    const cwd = join(dirname(dirname(tarball)), 'list')
    mkdirSync(cwd)
    const env = { ...process.env, npm_config_prefer_offline: 'true' }
    await promisify(execFile)('sh', ['-ec', bill!], { cwd, env })
    const { components } = JSON.parse(readFileSync(join(cwd, 'waitlist.cdx.json'), 'utf8'))
    const listed = (components as { purl: string }[]).map(({ purl }) => decodeURIComponent(purl).replace(/@[^@]*$/, ''))
    assert.deepEqual(listed.sort(), ['waitlist', ...production].map(name => `pkg:npm/${name}`).sort())
  })

  test('the checksums are those of the executable', async t => {
    const cwd = temporaryFolder(t)
    mkdirSync(join(cwd, 'build'))
    writeFileSync(join(cwd, 'build', 'waitlist'), 'the executable')
    await promisify(execFile)('sh', ['-ec', `${sums} sha256sum --check build/SHA256SUMS`], { cwd })
  })
})
