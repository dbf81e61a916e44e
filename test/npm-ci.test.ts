import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from './harness/folder.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

test('npm ci does not warn of an older Node.js than ours in a clone, which brings its own', {
  timeout: 60_000,
}, async t => {
  const folder = temporaryFolder(t)
  for (const name of ['package.json', 'package-lock.json', '.npmrc']) cpSync(join(root, name), join(folder, name))
  const path = join(folder, 'package.json')
  const manifest = JSON.parse(readFileSync(path, 'utf8'))
  assert.equal(manifest.engines.node, '>=24.21.0', 'what an installed package says')
  // Whatever Node.js runs npm here is too old for this.
  writeFileSync(path, JSON.stringify({ ...manifest, engines: { node: '>=999' } }))

  const install = async (...options: string[]) => {
    const args = ['ci', '--dry-run', '--offline', '--ignore-scripts', ...options]
    const env = { PATH: process.env.PATH, HOME: folder }
    return (await promisify(execFile)('npm', args, { cwd: folder, env })).stderr
  }
  assert.equal(await install(), '')
  assert.match(await install('--loglevel=warn'), /EBADENGINE[\s\S]*>=999/, 'it is .npmrc that keeps npm quiet')
  assert.equal(existsSync(join(folder, 'node_modules')), false, 'nothing was installed')
})
