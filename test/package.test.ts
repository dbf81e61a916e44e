import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { clientOf } from './harness/client.ts'
import { temporaryFolder } from './harness/folder.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

test('the installed package runs its compiled files, with everything that they read at start', async t => {
  const modules = join(temporaryFolder(t), 'node_modules')
  const installed = join(modules, 'waitlist')
  mkdirSync(installed, { recursive: true })
  const { dependencies, files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  assert.deepEqual(files, ['bin', 'dist'])
  for (const name of Object.keys(dependencies)) {
    // The name may have a scope.
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  for (const name of ['package.json', 'bin']) cpSync(join(root, name), join(installed, name), { recursive: true })
  execFileSync(process.execPath, ['scripts/build.ts', join(installed, 'dist')], { cwd: root })

  const program = spawn(process.execPath, [join(installed, 'bin', 'waitlist.js')], {
    cwd: installed,
    env: { PATH: process.env.PATH, PORT: '0', DATABASE_URL: 'sqlite::memory:', SHUTDOWN_DELAY: '0' },
  })
  const ended = once(program, 'close')
  t.after(() => {
    program.kill('SIGKILL')
    return ended
  })
  const [line] = await once(program.stdout, 'data')
  const client = await clientOf({ baseUrl: JSON.parse(String(line).split('\n', 1)[0]!).url })
  assert.equal((await client.signUp({ name: 'Ada', email: 'ada@example.com' })).json.alreadyExisted, false)
  assert.match((await client.request('/docs/api')).text, /<style>/)
  program.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
})
