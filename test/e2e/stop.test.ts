/** What ends the service, and what its clients are answered meanwhile. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { contactsIn } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { checkout, npmStart } from '../harness/npm.ts'
import { freePort } from '../harness/port.ts'
import { startPostgres } from '../harness/postgres.ts'
import { exitInTime, hasSaid, logOf, type Program, runProgram, spawnProgram, until } from '../harness/program.ts'
import { handshake, pairIn } from '../harness/tls.ts'

const skip = !isSlow && 'it runs in .ci/run'
const json = { 'content-type': 'application/json' }
const common = { HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'debug' }

async function start(t: TestContext, env: Record<string, string> = {}) {
  const cwd = temporaryFolder(t)
  const program = await runProgram(t, { ...common, ...env }, { cwd })
  // Whatever a test does: the log is JSON alone, and no visitor is in it.
  t.after(async () => {
    await program.exited
    for (const line of logOf(program)) assert.equal(typeof line.msg, 'string')
    assert.doesNotMatch(program.stdout(), /zebulon|quixote/i)
  })
  return { ...program, path: join(cwd, 'data', 'waitlist.db') }
}

async function open(t: TestContext, { baseUrl }: Pick<Program, 'baseUrl'>) {
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1')
  socket.setEncoding('latin1').on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

const health = ({ baseUrl }: Pick<Program, 'baseUrl'>) =>
  fetch(`${baseUrl}/api/health`).then(
    ({ status }) => status,
    () => null,
  )

/** Clients that send one signup after the other, on connections that they keep as long as they may. */
function crowd(t: TestContext, { baseUrl }: Program) {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 })
  t.after(() => agent.destroy())
  const answers: { readonly email: string; readonly status: number; readonly connection: string | undefined }[] = []
  /** Requests that were sent and got no answer. */
  let unanswered = 0
  const send = (email: string) =>
    new Promise<boolean>(resolve => {
      const posted = request(`${baseUrl}/api/waitlist`, { method: 'POST', agent, headers: json }, response => {
        answers.push({ email, status: response.statusCode!, connection: response.headers.connection })
        response.resume().on('close', () => resolve(true))
      })
      posted.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ECONNREFUSED') unanswered++
        resolve(false)
      })
      posted.end(JSON.stringify({ name: 'Zebulon Quixote', email }))
    })
  const clients = Array.from({ length: 20 }, async (_, client) => {
    for (let i = 0; await send(`v${client}-${i}@quixote.example`); i++);
  })
  return { answers, unanswered: () => unanswered, over: () => Promise.all(clients) }
}

const requests = [
  'GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'GET /api/health HTTP/1.1\r\n\r\n',
  'POST /api/waitlist HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
  'not HTTP\r\n\r\n',
]

describe('a signal', { concurrency: true }, () => {
  // Without TLS there is nothing for SIGHUP to reload: the terminal was closed.
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
    test(`${signal}: health is 503 during the delay and signups are taken; then it ends with 0`, async t => {
      const program = await start(t, { SHUTDOWN_DELAY: '2s' })
      assert.equal((await visit(program, 'first@quixote.example'))?.status, 200)
      program.process.kill(signal)
      await until(async () => (await health(program)) === 503)
      program.process.kill('SIGHUP')
      assert.equal((await visit(program, 'late@quixote.example'))?.status, 200)
      assert.equal(await exitInTime(program), 0)
      assert.equal(await health(program), null)
      assert.deepEqual(
        contactsIn(program.path).map(({ email, events }) => [email, events]),
        [
          ['first@quixote.example', 1],
          ['late@quixote.example', 1],
        ],
      )
      assert.ok(hasSaid(program, 'stopping') && hasSaid(program, 'stopped'))
    })
  }

  test('during the delay every answer closes its connection', async t => {
    const program = await start(t, { SHUTDOWN_DELAY: '2s' })
    const connections = await Promise.all(requests.map(() => open(t, program)))
    const answers = connections.map(socket => socket.toArray())
    program.process.kill('SIGTERM')
    await until(() => hasSaid(program, 'stopping'))
    for (const [i, sent] of requests.entries()) connections[i]!.write(sent)
    for (const [i, received] of (await Promise.all(answers)).entries()) {
      assert.match(received.join(''), /^HTTP\/1\.1 \d{3} [\s\S]*\r\nconnection: close\r\n/i, requests[i]!)
    }
    assert.equal(await exitInTime(program), 0)
  })

  test('in the middle of a burst: every answer that arrives is true', async t => {
    const program = await start(t, { SHUTDOWN_DELAY: '0', RATE_LIMIT: '100000' })
    const clients = crowd(t, program)
    await until(() => clients.answers.length > 200)
    program.process.kill('SIGTERM')
    await clients.over()
    assert.equal(await exitInTime(program), 0)
    const stored = contactsIn(program.path)
    const emails = new Set(stored.map(({ email }) => email))
    assert.ok(clients.answers.every(({ status, email }) => status !== 200 || emails.has(email)))
    assert.ok(stored.every(({ events }) => events === 1))
  })

  test('clients that do not close delay the end by less than 10 seconds', { skip }, async t => {
    const half =
      'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{'
    const plain = await start(t)
    const idle = await open(t, plain)
    idle.write(requests[0]!)
    await once(idle, 'data')
    const halfSent = await open(t, plain)
    halfSent.write(half)
    const secured = await start(t, pairIn(t).env)
    const secure = await handshake(secured, {})
    assert.ok(!(secure instanceof Error), String(secure))
    secure.on('error', () => {}).write(half)
    const sockets = [idle, halfSent, await open(t, plain), secure, await open(t, secured)]

    for (const program of [plain, secured]) program.process.kill('SIGTERM')
    assert.deepEqual(await Promise.all([exitInTime(plain), exitInTime(secured)]), [0, 0])
    for (const socket of sockets) if (!socket.closed) await once(socket, 'close')
  })

  test('before the code is loaded it ends with 0', async t => {
    const cwd = temporaryFolder(t)
    const hook = join(cwd, 'slow.mjs')
    writeFileSync(
      hook,
      `import { existsSync } from 'node:fs'
      import { registerHooks } from 'node:module'
      registerHooks({ load(url, context, next) {
        if (url.endsWith('/src/main.ts')) {
          process.stderr.write('loading')
          while (!existsSync('resume')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
        }
        return next(url, context)
      } })`,
    )
    const env = { ...common, NODE_OPTIONS: `--import=${pathToFileURL(hook)}` }
    const program = spawnProgram(t, env, { cwd, args: ['serve'] })
    await until(() => program.stderr().includes('loading'))
    program.process.kill('SIGTERM')
    writeFileSync(join(cwd, 'resume'), '')
    assert.equal(await program.exited, 0)
  })

  test('while PostgreSQL answers nothing: each client gets a 500 that closes, and it ends with 0', {
    skip,
  }, async t => {
    const server = await startPostgres()
    t.after(server.remove)
    const program = await start(t, { DATABASE_URL: await server.database(), RATE_LIMIT: '1000000' })
    const clients = crowd(t, program)
    await until(() => clients.answers.length > 100)
    server.pause()
    await wait(500)
    const before = clients.answers.length
    program.process.kill('SIGTERM')
    assert.equal(await exitInTime(program), 0)
    await clients.over()
    server.goOn()
    assert.ok(hasSaid(program, 'stopped'))
    assert.equal(clients.unanswered(), 0)
    const late = clients.answers.slice(before)
    assert.ok(late.length >= 20)
    assert.deepEqual([...new Set(late.map(({ status, connection }) => `${status} ${connection}`))], ['500 close'])
  })

  // A terminal signals the whole process group, and npm passes on its own signal.
  for (const [signal, to] of [
    ['SIGTERM', 'npm'],
    ['SIGINT', 'group'],
  ] as const) {
    test(`${signal} to ${to} stops npm start, after the request in progress`, async t => {
      const folder = checkout(t)
      const npm = await npmStart(t, folder)
      const pid = Number(/"pid":(\d+)/.exec(npm.stdout())![1])
      const headers = { ...json, expect: '100-continue' }
      const posted = request(`${npm.baseUrl}/api/waitlist`, { method: 'POST', headers })
      const answered = once(posted, 'response')
      posted.flushHeaders()
      await once(posted, 'continue')
      npm.send(signal, to)
      await until(async () => (await health(npm)) === null)
      posted.end('{"name":"Ada","email":"ada@example.com"}')
      const [response] = await answered
      response.resume()
      assert.equal(response.statusCode, 200)
      assert.equal(await npm.ended, 0)
      assert.match(npm.stdout(), /"msg":"stopped"/)
      assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
      assert.equal(contactsIn(join(folder, 'data', 'waitlist.db')).length, 1)
    })
  }
})

test('with a log that nobody reads it starts, stores and stops', async t => {
  const cwd = temporaryFolder(t)
  const baseUrl = `http://127.0.0.1:${await freePort()}`
  const env = { ...common, PORT: new URL(baseUrl).port, SHUTDOWN_DELAY: '0' }
  const program = spawnProgram(t, env, { cwd, args: ['serve'] })
  for (const each of ['stdout', 'stderr'] as const) program.process[each]!.destroy()
  await until(async () => program.process.exitCode !== null || (await health({ baseUrl })) === 200)
  assert.equal((await visit({ baseUrl }, 'ada@example.com'))?.status, 200)
  program.process.kill('SIGTERM')
  assert.equal(await exitInTime(program), 0)
  assert.equal(contactsIn(join(cwd, 'data', 'waitlist.db')).length, 1)
})
