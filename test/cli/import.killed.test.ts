import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { operatorOf } from '../../src/app/database.ts'
import { readConfig } from '../../src/config/config.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { signUp } from '../harness/load.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { runProgram, spawnProgram, until } from '../harness/program.ts'
import { seeded, seedOf } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'

const skip = !isSlow && 'it takes a minute; it runs in .ci/run'
const LINES = 30_000
const KILLS = 3

const server = skip ? undefined : await startPostgres({ settings: unsynced })
after(() => server?.remove())

for (const engine of ['sqlite', 'postgres'] as const) {
  test(`killed again and again beside a service on ${engine}, an import ends with the whole list, in order`, {
    skip,
    timeout: 240_000,
  }, async t => {
    const random = seeded(seedOf(t))
    const cwd = temporaryFolder(t)
    const url = engine === 'sqlite' ? `sqlite:${join(cwd, 'waitlist.db')}` : await server!.database()
    const env = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', DATABASE_URL: url }
    const service = await runProgram(t, env, { cwd })
    const emails = Array.from({ length: LINES }, (_, i) => `${(i * 7_919) % LINES}@example.com`)
    writeFileSync(join(cwd, 'list.csv'), `name,email\n${emails.map((email, i) => `Visitor ${i},${email}\n`).join('')}`)

    const agent = new Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    const acknowledged: string[] = []
    let goesOn = true
    const visitors = (async () => {
      for (let i = 0; goesOn; i++) {
        const answer = await signUp(service.baseUrl, agent, `visitor-${i}@example.com`)
        assert.deepEqual(answer, { status: 200, alreadyExisted: false })
        acknowledged.push(`visitor-${i}@example.com`)
      }
    })()

    const start = () => spawnProgram(t, env, { cwd, args: ['import', '--json', 'list.csv'] })
    let killed = 0
    for (let i = 0; i < KILLS; i++) {
      const importing = start()
      // It says what it guesses when it begins.
      await until(() => importing.stderr() !== '' || importing.process.exitCode !== null)
      await Promise.race([wait(random() * 1_500), importing.exited])
      importing.process.kill('SIGKILL')
      if ((await importing.exited) === null) killed++
    }
    const last = start()
    assert.equal(await last.exited, 0, last.stderr())
    const { added, existing } = JSON.parse(last.stdout()) as Record<string, number>
    t.diagnostic(`killed ${killed} times; the last run added ${added} and found ${existing}`)
    assert.ok(killed > 0)
    goesOn = false
    await visitors

    const settings = await readConfig({ DATABASE_URL: url })
    assert.ok('config' in settings)
    const contacts = await Array.fromAsync(await (await operatorOf(settings.config)).contacts())
    const isVisitor = (email: string) => email.startsWith('visitor-')
    const stored = contacts.map(({ email }) => email)
    assert.deepEqual(
      stored.filter(email => !isVisitor(email)),
      emails,
    )
    assert.deepEqual(stored.filter(isVisitor), acknowledged)
    assert.equal(await service.end('SIGTERM'), 0)
  })
}
