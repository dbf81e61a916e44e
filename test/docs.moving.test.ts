import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readConfig } from '../src/config/config.ts'
import { temporaryFolder } from './harness/folder.ts'
import { startPostgres, unsynced } from './harness/postgres.ts'
import { isSlow } from './harness/slow.ts'
import { listIn, query } from './stores/move.scene.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const text = readFileSync(join(root, 'docs', 'moving.md'), 'utf8')
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block]) => block!.trim())

const server = isSlow ? await startPostgres({ settings: unsynced }) : null
after(() => server?.remove())

const environment = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  HOST: '127.0.0.1',
  PORT: '0',
  SHUTDOWN_DELAY: '0',
}
/** Where the document has the server `db`, there is ours. */
const here = (command: string) => command.replaceAll('@db/', `@127.0.0.1:${server!.port}/`)

test('the switch works as it stands there, step by step, and so does the way back', {
  timeout: 180_000,
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const cwd = temporaryFolder(t)
  for (const each of ['package.json', 'bin', 'src', 'node_modules']) symlinkSync(join(root, each), join(cwd, each))
  const type = async (command: string, env: Record<string, string> = {}) => {
    const run = promisify(execFile)('sh', ['-c', here(command)], { cwd, env: { ...environment, ...env } })
    return (await run).stdout
  }
  const administer = (sql: string) =>
    server!.run(`postgres://owner@127.0.0.1:${server!.port}/postgres`, ...statements(sql))
  const database = `postgres://owner@127.0.0.1:${server!.port}/waitlist`

  const [make, empty, ...noMoreSql] = blocks('sql')
  const [rehearse, remove, move, start, back, ...noMore] = blocks('sh')
  const [setting, ...noMoreSettings] = blocks('ini')
  assert.deepEqual([...noMoreSql, ...noMore, ...noMoreSettings], [], 'every command is typed here')

  const old = await typeStart(t, cwd, start!)
  await signUp(old.url, 'ada@example.com')
  await administer(make!)
  const [backup, rehearsal] = rehearse!.split('\n')
  await type(backup!)
  assert.match(await type(rehearsal!), /^1 row was copied/m)
  await type(remove!)
  const left = [...readdirSync(cwd), ...readdirSync(join(cwd, 'data'))]
  assert.deepEqual(
    left.filter(name => name.includes('rehearsal')),
    [],
  )
  await signUp(old.url, 'bob@example.com')
  await administer(empty!)
  await old.stop()

  assert.match(await type(move!), /^2 rows were copied\. .* is equal to /m)
  const withoutPassword = move!.replace(':a-long-password', '')
  await assert.rejects(
    type(withoutPassword, { PGPASSWORD: 'a-long-password' }),
    / is not empty\. Give --to a database that has no tables yet/,
  )
  writeFileSync(join(cwd, '.env'), here(setting!))
  const fresh = await typeStart(t, cwd, start!)
  assert.equal((await signUp(fresh.url, 'ADA@example.com')).alreadyExisted, true)
  assert.equal((await signUp(fresh.url, 'eve@example.com')).alreadyExisted, false)
  await fresh.stop()
  assert.equal((await query(database, 'select 1 from contact')).length, 3)

  assert.match(await type(back!), /is equal to postgres:/)
  const emails = listIn(join(cwd, 'data', 'waitlist-again.db')).contact.map(({ email }) => email)
  assert.deepEqual(emails, ['ada@example.com', 'bob@example.com', 'eve@example.com'])
  assert.equal(listIn(join(cwd, 'data', 'waitlist.db')).contact.length, 2)
})

test('the settings are accepted', async () => {
  for (const line of [...blocks('ini'), 'DATABASE_URL=sqlite:./data/waitlist-again.db']) {
    const [name, ...value] = line.split('=')
    assert.ok('config' in (await readConfig({ [name!]: value.join('=') })), line)
  }
})

const statements = (sql: string): string[] =>
  sql
    .split(';')
    .map(each => each.trim())
    .filter(each => each !== '')

async function signUp(url: string, email: string): Promise<{ alreadyExisted: boolean }> {
  const answer = await fetch(`${url}/api/waitlist`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Visitor', email }),
  })
  assert.equal(answer.status, 200)
  return (await answer.json()) as { alreadyExisted: boolean }
}

/** Types `npm start` and waits until it listens. */
async function typeStart(t: TestContext, cwd: string, command: string) {
  const shell = spawn('sh', ['-c', command], { cwd, env: environment, detached: true })
  const closed = new Promise<void>(resolve => shell.once('close', () => resolve()))
  const stop = () => {
    if (shell.exitCode === null && shell.signalCode === null) process.kill(-shell.pid!, 'SIGTERM')
    return closed
  }
  t.after(stop)
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    shell.stderr.resume()
    shell.stdout.on('data', chunk => {
      output += chunk
      const found = /"url":"([^"]+)"/.exec(output)?.[1]
      if (found !== undefined) resolve(found)
    })
    closed.then(() => reject(new Error(`npm start ended: ${output}`)))
  })
  return { url, stop }
}
