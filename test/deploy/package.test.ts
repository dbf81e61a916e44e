import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { npmSettings, npmStart } from '../harness/npm-start.ts'
import { cloned } from '../harness/packed.ts'
import { isSlow } from '../harness/slow.ts'
import { commandsUnder } from './commands.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { engines, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const here = { HOME: process.env.HOME!, PATH: `${dirname(process.execPath)}:${process.env.PATH}` }
const run = (command: string, cwd: string, env = here) =>
  promisify(execFile)('sh', ['-c', command], { cwd, env: { ...env, ...npmSettings } })

/** The oldest Node.js that the package may run on, which npm brings. */
async function oldestNode(t: TestContext): Promise<string> {
  const folder = temporaryFolder(t)
  await run(`npm install --silent --no-save --prefix . node@${engines.node.slice(2)}`, folder)
  return join(folder, 'node_modules', 'node', 'bin')
}

/** Starts it as the page says, signs somebody up, exports the list as the page says, and stops it. */
async function tried(t: TestContext, cwd: string, start: string, others: readonly string[], env = here) {
  const { baseUrl, send, ended, stdout, stderr } = await npmStart(t, cwd, env, start)
  const client = await clientOf({ baseUrl })
  assert.equal((await client.signUp({ name: 'Ada', email: 'ada@example.com' })).json.alreadyExisted, false)
  for (const path of ['/docs/api', '/api/health']) assert.equal((await client.request(path)).status, 200)
  for (const command of others) await run(command, cwd, env)
  assert.match(readFileSync(join(cwd, 'contacts.csv'), 'utf8'), /,Ada,ada@example\.com,listed,/)
  // npx passes on no SIGTERM; a terminal tells all.
  send('SIGINT', 'group')
  await ended
  assert.match(stdout(), /"msg":"stopped"/)
  assert.equal(contactsIn(join(cwd, 'data', 'waitlist.db')).length, 1)
  return { welcome: stderr() }
}

const installed = (cwd: string) => readdirSync(join(cwd, 'node_modules'), { recursive: true, encoding: 'utf8' })

describe('docs/deploy.md, word for word', {
  timeout: 300_000,
  skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
}, () => {
  test('as an npm package, on this Node.js and on the oldest', async t => {
    const [make, install, start, ...others] = commandsUnder('As an npm package')
    assert.equal(make, 'npm ci && npm pack')
    const clone = cloned(t)
    symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
    await run('npm pack', clone)
    const { version } = JSON.parse((await run('npm ls --json', clone)).stdout)
    assert.ok(install!.endsWith(`/waitlist/waitlist-${version}.tgz`))

    for (const env of [here, { ...here, PATH: `${await oldestNode(t)}:${here.PATH}` }]) {
      const cwd = join(dirname(clone), `list of ${(await run('node --version', clone, env)).stdout.trim()}`)
      mkdirSync(cwd)
      const { stderr } = await run(install!, cwd, env)
      assert.doesNotMatch(stderr, /scripts/)
      for (const name of Object.keys(devDependencies)) assert.ok(!installed(cwd).includes(name), name)
      assert.match((await tried(t, cwd, start!, others, env)).welcome, /Export the list: {4}waitlist export$/m)
      assert.deepEqual(readdirSync(cwd).sort(), [
        'contacts.csv',
        'data',
        'node_modules',
        'package-lock.json',
        'package.json',
      ])
    }
  })

  test('from a clone', async t => {
    const [install, start, ...others] = commandsUnder('From a clone')
    const clone = cloned(t)
    await run(install!, clone)
    for (const name of Object.keys(devDependencies)) assert.ok(!existsSync(join(clone, 'node_modules', name)), name)
    const { stdout } = await run('du -sm node_modules', clone)
    const megabytes = Number.parseInt(stdout, 10)
    t.diagnostic(`${megabytes} MB`)
    const said = /(\d+) MB\s+are\s+enough/.exec(readFileSync(join(root, 'docs/deploy.md'), 'utf8'))![1]
    assert.ok(megabytes <= Number(said), stdout)
    assert.match((await tried(t, clone, start!, others)).welcome, /Export the list: {4}waitlist export$/m)
  })
})
