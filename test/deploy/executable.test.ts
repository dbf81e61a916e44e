import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkout } from '../harness/checkout.ts'
import { clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { listening } from '../harness/listening.ts'
import { startMailServer } from '../harness/mail-server.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn as contactsAt } from '../harness/postgres-database.ts'
import { logOf, type Program, runProgram, spawnProgram, until } from '../harness/program.ts'
import { redisProgram, startRedis } from '../harness/redis.ts'
import { isSlow } from '../harness/slow.ts'
import { commandsUnder } from './commands.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const [make, start, ...others] = commandsUnder('As a single executable')

const skip =
  (!isSlow && 'slow: WAITLIST_SLOW_TESTS=1') || (process.platform !== 'linux' && 'the executable is made for Linux')

/** The libraries that the page names, which a bare system may have; glibc is most of them. */
const libraries = /^(?:lib(?:atomic|c|dl|gcc_s|m|pthread|stdc\+\+)|ld-linux[\w-]*|linux-vdso)\.so/

describe('the single executable', { timeout: 300_000, skip }, () => {
  const folder = checkout({ after: after as TestContext['after'] })
  const made = join(folder, 'build', 'waitlist')

  before(async () => {
    symlinkSync(join(root, 'scripts'), join(folder, 'scripts'))
    assert.ok(make!.startsWith('npm ci && '))
    await promisify(execFile)('sh', ['-c', make!.slice('npm ci && '.length)], { cwd: folder })
  })

  /** A file tree with the executable, the libraries that it needs, and /etc/hosts. */
  function bare(t: TestContext): string {
    const tree = temporaryFolder(t)
    const linked = execFileSync('ldd', [made], { encoding: 'utf8' })
    for (const [, path] of linked.matchAll(/(\/\S+) \(0x/g)) {
      assert.match(path!.split('/').at(-1)!, libraries)
      mkdirSync(join(tree, dirname(path!)), { recursive: true })
      copyFileSync(path!, join(tree, path!))
    }
    for (const name of ['etc', 'proc']) mkdirSync(join(tree, name))
    writeFileSync(join(tree, 'etc', 'hosts'), '127.0.0.1 localhost\n')
    copyFileSync(made, join(tree, 'waitlist'))
    return tree
  }

  /** Runs a command where there is nothing else, but for what the kernel tells. */
  const CHANGE = 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'
  const within = (tree: string) => ({
    cwd: tree,
    executable: '/waitlist',
    through: ['unshare', '-rm', 'sh', '-c', CHANGE, tree],
  })
  // In a mount namespace of its own, so that nothing is there when it has ended.
  const mayChange = spawnSync('unshare', ['-rm', 'mount', '--rbind', '/proc', tmpdir()]).status === 0
  const noChange = !mayChange && 'this user may not change the root folder'

  const env = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', SHUTDOWN_DELAY: '0' }
  const serve = (t: TestContext, tree: string, more: Record<string, string> = {}): Promise<Program> =>
    runProgram(t, { ...env, ...more }, within(tree))
  async function run(t: TestContext, tree: string, command: string, more: Record<string, string> = {}) {
    const { process, exited, stdout, stderr } = spawnProgram(t, more, { ...within(tree), args: command.split(' ') })
    process.stdin!.end('email,name\ngrace@example.com,Grace\n')
    assert.equal(await exited, 0, `${command}: ${stdout()}${stderr()}`)
    return stdout()
  }

  test('every command works where there is nothing but glibc', { skip: noChange }, async t => {
    const tree = bare(t)
    const program = await serve(t, tree, { ADMIN_PORT: '0' })
    const client = await clientOf(program)
    assert.equal((await client.signUp({ name: 'Ada', email: 'ada@example.com' })).json.alreadyExisted, false)
    assert.match((await client.request('/docs/api')).text, /<style>/)
    const { admin } = logOf(program).find(({ msg }) => msg === 'waitlist is ready') as { admin: string }
    assert.match(await (await fetch(admin)).text(), /<style>/)
    await until(async () => /^waitlist_contacts.* 1$/m.test(await (await fetch(`${admin}/metrics`)).text()))

    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    assert.equal(await run(t, tree, '--version'), `${version}\n`)
    assert.match(await run(t, tree, 'import -'), /1/)
    assert.match(await run(t, tree, 'export'), /,Ada,ada@example\.com,listed,/)
    for (const command of ['--help', 'stats', 'list', 'show ada@example.com', 'person ada@example.com', 'check']) {
      assert.match(await run(t, tree, command), /\w/, command)
    }
    for (const command of ['deliveries', 'backup backup.db', 'remove --yes grace@example.com']) {
      await run(t, tree, command)
    }
    assert.equal(await program.end('SIGTERM'), 0)
    assert.match(program.stderr(), /Export the list: {4}\/waitlist export$/m)
    await run(t, tree, 'restore backup.db')
    assert.deepEqual(
      contactsIn(join(tree, 'data', 'waitlist.db')).map(({ email }) => email),
      ['ada@example.com'],
    )
  })

  test('it brings the drivers of PostgreSQL, Redis, mail, chats and webhooks', { skip: noChange }, async t => {
    const tree = bare(t)
    const heard: string[] = []
    const server = createServer((request, response) => {
      heard.push(request.url!)
      request.resume()
      request.on('end', () => response.end('{"success":true,"id":"1"}'))
    })
    const url = (await listening(t, server)).replace('localhost', '127.0.0.1')
    const mails = await startMailServer(t)
    const postgres = await startPostgres({ settings: unsynced })
    t.after(() => postgres.remove())
    const redis = redisProgram === undefined ? null : await startRedis()
    t.after(() => redis?.remove())
    const database = await postgres.database()

    const embedded = await serve(t, tree)
    await (await clientOf(embedded)).signUp({ name: 'Ada', email: 'ada@example.com' })
    await embedded.end('SIGTERM')
    await run(t, tree, `move --to ${database}`)

    const program = await serve(t, tree, {
      DATABASE_URL: database,
      WEBHOOK_URL: `${url}/webhook`,
      WEBHOOK_SECRET: 'whsec_Zm9yLXRoZS1yZWFkbWUtYW5kLW5vdGhpbmctZWxzZQ==',
      SLACK_WEBHOOK_URL: `${url}/slack`,
      SMTP_URL: `smtp://127.0.0.1:${mails.port}`,
      MAIL_FROM: 'hello@example.com',
      ...(redis === null ? {} : { REDIS_URL: redis.url }),
    })
    const client = await clientOf(program)
    assert.equal((await client.signUp({ name: 'Ada', email: 'ada@example.com' })).json.alreadyExisted, true)
    assert.equal((await client.signUp({ name: 'Grace', email: 'grace@example.com' })).json.alreadyExisted, false)
    await until(() => heard.includes('/webhook') && heard.includes('/slack') && mails.mails.length === 1)
    assert.equal((await contactsAt(database)).length, 2)
    if (redis !== null) assert.match(String(await redis.command('info', 'commandstats')), /cmdstat_(?:eval|fcall)/)
    assert.equal(await program.end('SIGTERM'), 0)
  })

  test('the commands of docs/deploy.md', async t => {
    const cwd = temporaryFolder(t)
    copyFileSync(made, join(cwd, 'waitlist'))
    const program = await runProgram(t, env, { cwd, args: [], executable: start! })
    await (await clientOf(program)).signUp({ name: 'Ada', email: 'ada@example.com' })
    for (const command of others) await promisify(execFile)('sh', ['-c', command], { cwd, env: {} })
    assert.match(readFileSync(join(cwd, 'contacts.csv'), 'utf8'), /,Ada,ada@example\.com,listed,/)
    assert.equal(await program.end('SIGTERM'), 0)
    assert.match(program.stderr(), /Export the list: {4}\.\/waitlist export$/m)
    assert.ok(existsSync(join(dirname(made), 'LICENSES.txt')))
  })
})
