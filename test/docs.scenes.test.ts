import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { guessedColumns } from '../src/cli/import/contacts.ts'
import { readConfig } from '../src/config/config.ts'
import { sqliteStore } from '../src/stores/sqlite/store.ts'
import { signup } from './contracts/store.place.ts'
import { blocksOf, textOf } from './documents.ts'
import { checkout } from './harness/checkout.ts'
import { contactsIn } from './harness/database.ts'
import { startPostgres, unsynced } from './harness/postgres.ts'
import { rowsIn as query } from './harness/postgres-database.ts'
import { isSlow } from './harness/slow.ts'
import { listIn } from './stores/move.scene.ts'

const own = { PATH: process.env.PATH, HOME: process.env.HOME }

/** Types the commands under this heading of the page as they stand there, and returns what each of them printed. */
async function typeUnder(cwd: string, heading: string, env: NodeJS.ProcessEnv = own): Promise<readonly string[]> {
  const blocks = blocksOf(textOf('docs/bots.md')).filter(
    ({ language, under }) => language === 'sh' && under === heading,
  )
  const printed: string[] = []
  for (const line of blocks.flatMap(({ lines }) => lines)) {
    printed.push((await promisify(execFile)('sh', ['-c', line], { cwd, env })).stdout)
  }
  return printed
}

const isSlowOnly = { timeout: 120_000, skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1' }

test('the commands of docs/bots.md show held signups, let them in and delete them', isSlowOnly, async t => {
  const cwd = await checkoutWithHeld(t)
  const states = () => contactsIn(join(cwd, 'data', 'waitlist.db')).map(({ email, state }) => `${email} ${state}`)
  assert.deepEqual(states(), [
    'eva.lund@gmail.com listed',
    'evalund+x@gmail.com held',
    'ada@example.com held',
    'ben@example.com held',
    'cleo@acme.example held',
  ])
  const [held] = await typeUnder(cwd, 'held-signups')
  for (const reason of ['same-mailbox', 'link-in-name', 'above-limit']) assert.match(held!, new RegExp(reason))
  assert.deepEqual(
    states(),
    ['eva.lund@gmail.com', 'ada@example.com', 'ben@example.com', 'cleo@acme.example'].map(email => `${email} listed`),
  )
})

test('the commands of docs/bots.md make a list of domains that is accepted', isSlowOnly, async t => {
  // The package comes from the registry, by what this machine says of proxies and certificates.
  const checked = (await typeUnder(checkout(t), 'lists-of-domains', process.env)).at(-1)
  assert.match(checked!, /\b\d{2},\d{3} domains are blocked/)
})

/** One is on the list, and one is held for each command of the page. */
async function checkoutWithHeld(t: TestContext): Promise<string> {
  const cwd = checkout(t)
  const store = await sqliteStore({
    path: join(cwd, 'data', 'waitlist.db'),
    eventName: 'waitlist.joined',
    minimumFree: 0,
    holds: { above: 1, window: 3_600_000, suspicious: true },
  })
  await store.admit(signup('Eva', 'eva.lund@gmail.com'))
  await store.admit(signup('Eva', 'evalund+x@gmail.com'))
  await store.admit(signup('Ada www.shop.example', 'ada@example.com'))
  await store.admit(signup('Ben', 'ben@example.com'))
  await store.admit(signup('Cleo', 'cleo@acme.example'))
  await store.close()
  return cwd
}

const importing = textOf('docs/importing.md')

test('the commands of docs/importing.md work as they stand there', isSlowOnly, async t => {
  const cwd = checkout(t)
  writeFileSync(join(cwd, 'subscribers.csv'), 'Email Address,First Name,Last Name\nada@example.com,Ada,Lovelace\n')
  writeFileSync(join(cwd, 'people.csv'), 'Contact,Given,Family,Since\nbob@example.com,Bob,Bee,2025-01-02\n')
  const type = async (command: string) => {
    return (await promisify(execFile)('sh', ['-c', command], { cwd, env: own })).stdout
  }
  const [dry, plain, mapped, ours, report, announced, ...others] = [...importing.matchAll(/^```sh\n(.*?)^```$/gms)].map(
    ([, block]) => block!.trim(),
  )
  assert.deepEqual(others, [], 'every command is typed here')
  assert.match(await type(dry!), /^1 would be added/)
  assert.match(await type(plain!), /^1 added/)
  assert.match(await type(mapped!), /^1 added/)
  assert.match(await type('npm run -s waitlist export'), /,Bob Bee,bob@example\.com,listed,2025-01-02T00:00:00\.000Z/)
  assert.match(await type(ours!), /^0 added, 2 on the list/)
  assert.match(await type(report!), /^0 added, 1 on the list/)
  assert.ok(existsSync(join(cwd, 'report.csv')))
  rmSync(join(cwd, 'data', 'waitlist.db'))
  assert.match(await type(announced!), /^1 added.*\nThe running service/)
})

test('the headings that docs/importing.md names are guessed', () => {
  const rows = [...importing.matchAll(/^\| (email|name|time of the signup|source) \| (.*) \|$/gm)]
  assert.equal(rows.length, 4)
  const guess = (...heading: string[]) => {
    const columns = guessedColumns(heading)
    return 'unclear' in columns ? columns : Object.keys(columns)
  }
  const headings = (i: number) => rows[i]![2]!.split(', ')
  for (const email of headings(0)) assert.deepEqual(guess('Name', email), ['email', 'name'], email)
  for (const name of headings(1)[1]!.split(';')[0]!.split(', '))
    assert.deepEqual(guess('Email', name), ['email', 'name'])
  for (const time of headings(2)) assert.deepEqual(guess('Email', 'Name', time), ['email', 'name', 'createdAt'], time)
  for (const source of headings(3)) assert.deepEqual(guess('Email', 'Name', source), ['email', 'name', source])
})

const moving = textOf('docs/moving.md')
const blocks = (language: string) =>
  [...moving.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block]) => block!.trim())

const server = isSlow ? await startPostgres({ settings: unsynced }) : null
after(() => server?.remove())

const environment = {
  ...own,
  HOST: '127.0.0.1',
  PORT: '0',
  SHUTDOWN_DELAY: '0',
}
/** Where the document has the server `db`, there is ours. */
const here = (command: string) => command.replaceAll('@db/', `@127.0.0.1:${server!.port}/`)

test('the switch of docs/moving.md works as it stands there, step by step, and so does the way back', {
  timeout: 180_000,
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const cwd = checkout(t)
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

test('the settings of docs/moving.md are accepted', async () => {
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
