import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { complaintsIn, logOf, type Program, runProgram, spawnProgram, until } from '../harness/program.ts'

const common = { PORT: '0', HOST: '127.0.0.1', SHUTDOWN_DELAY: '0' }

const noCurl = spawnSync('curl', ['--version']).error !== undefined && 'curl is not installed'

describe('the start', { concurrency: true }, () => {
  test('one line says where it listens, and each unsafe setting has a warning; no secret is in any', async t => {
    const cwd = temporaryFolder(t)
    const BASE_URL = 'https://waitlist.example.com'
    const WEBHOOK_URL = 'http://127.0.0.1:9/hunter2?key=hunter2'
    const program = await runProgram(
      t,
      {
        ...{ ...common, BASE_URL, TRUST_PROXY: '0.0.0.0/0', ADMIN_LISTEN: '127.0.0.1:0', TZ: '' },
        ...{ WEBHOOK_URL, WEBHOOK_SECRET: webhookSecret },
      },
      { cwd },
    )
    const [ready, ...more] = logOf(program).filter(({ msg }) => msg === 'waitlist is ready')
    assert.deepEqual(more, [])
    const { url, listening, admin } = ready!
    assert.equal(url, BASE_URL)
    for (const address of [listening, admin]) assert.match(String(address), /^http:\/\/127\.0\.0\.1:\d+$/)

    // A person who starts it is told where; an empty TZ names no time zone.
    await until(() => program.stderr().includes(`  Watch it:           ${admin}\n`))
    assert.ok(program.stderr().includes(`listening on ${listening}, for ${BASE_URL},\nand made a new list at sqlite:`))
    assert.equal((await fetch(`${admin}/metrics`)).status, 200)
    assert.match(await (await fetch(String(admin))).text(), /Times are in UTC\./)
    assert.equal(await program.end('SIGTERM'), 0)
    assert.equal(complaintsIn(logOf(program)).length, 1, 'everybody is trusted')
    for (const text of [program.stdout(), program.stderr()])
      assert.ok(!text.includes('hunter2') && !text.includes(webhookSecret))
  })

  test('a list that is there is counted; a folder that is not is refused, but for ./data', async t => {
    const cwd = temporaryFolder(t)
    const greeting = async (program: Pick<Program, 'stderr'>) => {
      await until(() => program.stderr().includes('Export the list'))
      return program.stderr().split('\n')[1]
    }
    const first = await runProgram(t, common, { cwd })
    assert.equal(await greeting(first), 'and made a new list at sqlite:./data/waitlist.db')
    const body = JSON.stringify({ name: 'Ada', email: 'ada@example.com' })
    const headers = { 'content-type': 'application/json' }
    assert.equal((await fetch(`${first.baseUrl}/api/waitlist`, { method: 'POST', headers, body })).status, 200)
    assert.equal(await first.end('SIGTERM'), 0)
    const second = await runProgram(t, common, { cwd })
    assert.equal(await greeting(second), 'and keeps 1 contact in sqlite:./data/waitlist.db')
    const mistyped = runProgram(t, { ...common, DATABASE_URL: 'sqlite:./dta/waitlist.db' }, { cwd })
    await assert.rejects(mistyped, /ended with 1:\n.*There is no folder \S+dta\. Make it, or correct DATABASE_URL\./)
  })

  test('a Node.js that is older than package.json allows is told so', async t => {
    const cwd = temporaryFolder(t)
    const entry = join(cwd, 'bin/waitlist.js')
    mkdirSync(join(cwd, 'bin'))
    copyFileSync(new URL('../../bin/waitlist.js', import.meta.url), entry)
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ type: 'module', engines: { node: '>=99' } }))
    const { exited, stderr } = spawnProgram(t, {}, { cwd, entry })
    assert.equal(await exited, 1)
    assert.equal(stderr(), `waitlist: this is Node.js ${process.versions.node}; 99 or newer is needed\n`)
  })

  test('the curl line that it prints signs somebody up', { skip: noCurl }, async t => {
    const cwd = temporaryFolder(t)
    const program = await runProgram(t, common, { cwd })
    // A person who starts it is shown what to do next.
    await until(() => /curl .*\n/.test(program.stderr()))
    const line = /curl .*/.exec(program.stderr())![0]
    const { status, stdout } = spawnSync('bash', ['-c', `${line} --silent --show-error --fail`], { encoding: 'utf8' })
    assert.equal(status, 0)
    const answer = JSON.parse(stdout) as Record<string, unknown>
    assert.equal(answer.alreadyExisted, false)
    await program.end('SIGKILL')
    assert.deepEqual(
      contactsIn(join(cwd, 'data', 'waitlist.db')).map(({ id, name, email }) => ({ id, name, email })),
      [{ id: answer.contactId, name: 'Ada Lovelace', email: 'ada@example.com' }],
    )
  })

  test('standard output is JSON alone, and no name or address is in it, whatever is sent', async t => {
    const cwd = temporaryFolder(t)
    const program = await runProgram(t, { ...common, LOG_LEVEL: 'debug' }, { cwd })
    const send = (body: string, path = '/api/waitlist', headers: Record<string, string> = {}) =>
      fetch(program.baseUrl + path, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', ...headers },
      })
    const visitor = { name: 'Zebulon Quixote', email: 'zebulon@quixote.example' }
    const text = JSON.stringify(visitor)
    await send(text)
    await send(text)
    await send(JSON.stringify({ ...visitor, email: 'zebulon-quixote' }))
    await send(text.slice(0, -5))
    await send(text, '/api/waitlist?email=zebulon@quixote.example')
    await send(text, '/zebulon@quixote.example')
    await send(text, '/api/waitlist', { 'x-forwarded-for': 'zebulon', referer: 'https://quixote.example/zebulon' })
    await fetch(`${program.baseUrl}/api/health?zebulon`, {
      headers: { 'user-agent': 'quixote', 'x-request-id': 'zebulon' },
    })
    assert.equal(await program.end('SIGTERM'), 0)
    const lines = logOf(program)
    assert.ok(lines.filter(({ msg }) => msg === 'request').length >= 8, 'at the level debug each request has a line')
    assert.ok(lines.every(line => line.msg !== 'request' || typeof line.reqId === 'string'))
    assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote/i)
  })
})
