import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { linksIn } from './documents.ts'
import { clientOf } from './harness/client.ts'
import { temporaryFolder } from './harness/folder.ts'
import { packed } from './harness/packed.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** What the package brings, beside the compiled program. */
const brought = [
  /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|\.env\.example|compose\.yaml)$/,
  /^bin\/waitlist\.js$/,
  /^dist\/[\w./-]+\.(?:js|sql|css|html|svg)$/,
  /^docs\/[\w./-]+\.(?:md|svg|json)$/,
  /^torture\/README\.md$/,
  /^(?:deploy|examples)\/[\w./-]+$/,
]

test('the installed package runs its compiled files, with everything that they read at start', {
  timeout: 120_000,
}, async t => {
  const { tarball, files } = packed(t)
  assert.deepEqual(
    files.filter(file => !brought.some(pattern => pattern.test(file))),
    [],
  )
  for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'docs/deploy.md', 'dist/main.js']) {
    assert.ok(files.includes(file), file)
  }
  // Neither npm's page of the package nor its folder knows where the rest of the project is.
  const nowhere = files
    .filter(file => file.endsWith('.md'))
    .flatMap(linksIn)
    .filter(({ found }) => !files.some(file => `${file}/`.startsWith(found.replace(/\/?$/, '/'))))
  assert.deepEqual(nowhere, [])

  const modules = join(temporaryFolder(t), 'node_modules')
  const installed = join(modules, 'waitlist')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xf', tarball, '--strip-components=1', '-C', installed])
  for (const name of Object.keys(manifest.dependencies)) {
    // The name may have a scope.
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  const program = spawn(process.execPath, [join(installed, 'bin', 'waitlist.js')], {
    cwd: installed,
    env: { PATH: process.env.PATH, PORT: '0', DATABASE_URL: 'sqlite::memory:', SHUTDOWN_DELAY: '0' },
  })
  const ended = once(program, 'close')
  t.after(() => {
    program.kill('SIGKILL')
    return ended
  })
  const failed = ended.then(([code]) => assert.fail(`it ended with ${code}`))
  const [line] = await Promise.race([once(program.stdout, 'data'), failed])
  const client = await clientOf({ baseUrl: JSON.parse(String(line).split('\n', 1)[0]!).url })
  assert.equal((await client.signUp({ name: 'Ada', email: 'ada@example.com' })).json.alreadyExisted, false)
  assert.match((await client.request('/docs/api')).text, /<style>/)
  failed.catch(() => {})
  program.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
})

test('the package runs nothing when it is installed, and may be published', () => {
  const { scripts, publishConfig, private: isPrivate } = manifest
  // npm warns of each of them.
  for (const hook of ['preinstall', 'install', 'postinstall', 'prepare']) assert.equal(scripts[hook], undefined)
  assert.equal(isPrivate, undefined)
  assert.deepEqual(publishConfig, { access: 'public', provenance: true })
})

test('the newest version in the changelog is that of the package', () => {
  const [, version] = /^## \[(\d+\.\d+\.\d+)\]/m.exec(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')) ?? []
  assert.equal(version, manifest.version)
})
