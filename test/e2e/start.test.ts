import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { visit } from '../harness/load.ts'
import { complaintsIn, logOf, runProgram, spawnProgram, until } from '../harness/program.ts'

const common = { PORT: '0', HOST: '127.0.0.1', SHUTDOWN_DELAY: '0' }

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
    const first = await runProgram(t, common, { cwd })
    await until(() => first.stderr().includes('\nand made a new list at sqlite:./data/waitlist.db\n'))
    assert.equal((await visit(first, 'ada@example.com'))?.status, 200)
    assert.equal(await first.end('SIGTERM'), 0)
    const second = await runProgram(t, common, { cwd })
    await until(() => second.stderr().includes('\nand keeps 1 contact in sqlite:./data/waitlist.db\n'))
    const mistyped = runProgram(t, { ...common, DATABASE_URL: 'sqlite:./dta/waitlist.db' }, { cwd })
    await assert.rejects(mistyped, /ended with 1:\n.*There is no folder \S*dta\. Make it, or correct DATABASE_URL\./)
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

  test('C-64: standard output is JSON alone, and no name or address is in it, whatever is sent', async t => {
    const cwd = temporaryFolder(t)
    const program = await runProgram(t, { ...common, LOG_LEVEL: 'debug' }, { cwd })
    const text = JSON.stringify({ name: 'Zebulon Quixote', email: 'zebulon@quixote.example' })
    const bodies = [text, text, text.replace('.example', ''), text.slice(0, -5)]
    const paths = ['/api/waitlist?email=zebulon@quixote.example', '/zebulon@quixote.example', '/api/health?zebulon']
    const identity = {
      'x-forwarded-for': 'zebulon',
      referer: 'https://quixote.example/zebulon',
      'user-agent': 'quixote',
    }
    const headers = { 'content-type': 'application/json', 'x-request-id': 'zebulon', ...identity }
    for (const body of bodies) await fetch(`${program.baseUrl}/api/waitlist`, { method: 'POST', headers, body })
    for (const path of paths) await fetch(program.baseUrl + path, { method: 'POST', headers, body: text })
    assert.equal(await program.end('SIGTERM'), 0)
    const requests = logOf(program).filter(({ msg }) => msg === 'request')
    assert.equal(requests.length, bodies.length + paths.length, 'at the level debug each request has a line')
    assert.ok(requests.every(({ reqId }) => typeof reqId === 'string'))
    assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote/i)
  })
})
