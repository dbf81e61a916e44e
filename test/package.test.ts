import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { linksIn } from './documents.ts'
import { clientOf } from './harness/client.ts'
import { skipSlow } from './harness/environment.ts'
import { temporaryFolder } from './harness/folder.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** What the package brings, beside the compiled program. */
const brought = [
  /^(?:package\.json|README\.md|LICENSE|ARCHITECTURE\.md|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|\.env\.example|compose\.yaml)$/,
  /^bin\/waitlist\.js$/,
  /^dist\/[\w./-]+\.(?:js|sql|css|md|json|svg)$/,
  /^docs\/[\w./-]+\.(?:md|png)$/,
  /^(?:deploy|examples)\/[\w./-]+$/,
]

test('the installed package runs its compiled files, with everything that they read at start', {
  skip: skipSlow,
}, async t => {
  // In a copy, so that nothing is written into this clone.
  const clone = temporaryFolder(t)
  const isOurs = (path: string) => !/^(?:node_modules|dist|data|\.git|\.env)(?:\/|$)/.test(path.slice(root.length))
  cpSync(root, clone, { recursive: true, filter: isOurs })
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
  execFileSync(process.execPath, ['scripts/build.ts'], { cwd: clone })
  const packing = ['pack', '--json', '--ignore-scripts']
  const told = execFileSync('npm', packing, { cwd: clone, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const [pack] = JSON.parse(told)
  const files: string[] = pack.files.map(({ path }: { path: string }) => path)
  assert.deepEqual(
    files.filter(file => !brought.some(pattern => pattern.test(file))),
    [],
  )
  const needed = ['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'docs/deploy.md', 'dist/main.js']
  for (const file of needed) assert.ok(files.includes(file), file)
  // Neither npm's page of the package nor its folder knows where the rest of the project is.
  const nowhere = files
    .filter(file => file.endsWith('.md') && !file.startsWith('dist/'))
    .flatMap(linksIn)
    .filter(({ found }) => !files.some(file => `${file}/`.startsWith(found.replace(/\/?$/, '/'))))
  assert.deepEqual(nowhere, [])

  const modules = join(temporaryFolder(t), 'node_modules')
  const installed = join(modules, 'waitlist')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xf', join(clone, pack.filename), '--strip-components=1', '-C', installed])
  for (const name of Object.keys(manifest.dependencies)) {
    // The name may have a scope.
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  const program = spawn(process.execPath, [join(installed, 'bin', 'waitlist.js')], {
    cwd: installed,
    env: { PATH: process.env.PATH, PORT: '0', DATABASE_URL: 'sqlite:waitlist.db', SHUTDOWN_DELAY: '0' },
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
  assert.match((await client.request('/form.js')).text, /customElements/)
  failed.catch(() => {})
  program.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
})

test('the package may be published, runs nothing when it is installed, and is of the newest version in the changelog', () => {
  const { scripts, publishConfig, private: isPrivate, engines, version } = manifest
  // npm warns of each of them.
  for (const hook of ['preinstall', 'install', 'postinstall', 'prepare']) assert.equal(scripts[hook], undefined)
  assert.equal(isPrivate, undefined)
  assert.deepEqual(publishConfig, { access: 'public', provenance: true })
  assert.equal(engines.node, '>=26')
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  assert.equal(/^## \[(\d+\.\d+\.\d+)\]/m.exec(changelog)?.[1], version)
})

test('every dependency of the lock file has an integrity hash, and no address of its own', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const { '': _, ...packages } = lock.packages as Record<string, { integrity?: string; resolved?: string }>
  assert.ok(Object.keys(packages).length > 100)
  for (const [path, { integrity, resolved }] of Object.entries(packages)) {
    assert.match(integrity ?? '', /^sha512-[\w+/]{86}==$/, path)
    assert.equal(resolved, undefined, path)
  }
})
