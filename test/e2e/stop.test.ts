import assert from 'node:assert/strict'
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { contactsIn } from '../harness/database.ts'
import { isSlow, seedOf } from '../harness/environment.ts'
import { type FaultProxy, startFaultProxy } from '../harness/fault-proxy.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { freePort } from '../harness/port.ts'
import { type PostgresServer, startPostgres } from '../harness/postgres.ts'
import { exitInTime, hasSaid, logOf, type Program, runProgram, spawnProgram, until } from '../harness/program.ts'
import { handshake, pairIn } from '../harness/tls.ts'

const skip = !isSlow && 'it runs in .ci/run'
const body = (email: string) => JSON.stringify({ name: 'Zebulon Quixote', email })
const json = { 'content-type': 'application/json' }
const fetchSignUp = ({ baseUrl }: Pick<Program, 'baseUrl'>, email: string) =>
  fetch(`${baseUrl}/api/waitlist`, { method: 'POST', headers: json, body: body(email) })

const requests = [
  'GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'GET /api/health HTTP/1.1\r\n\r\n',
  'POST /api/waitlist HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
  'not HTTP\r\n\r\n',
]

interface Running extends Program {
  readonly path: string
}

async function start(t: TestContext, env: Record<string, string> = {}): Promise<Running> {
  const cwd = temporaryFolder(t)
  const program = await runProgram(t, { HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'debug', ...env }, { cwd })
  // Whatever a test does: the log is JSON alone, and no visitor is in it.
  t.after(async () => {
    await program.exited
    for (const line of logOf(program)) assert.equal(typeof line.msg, 'string')
    assert.doesNotMatch(program.stdout(), /zebulon|quixote/i)
  })
  return { ...program, path: join(cwd, 'data', 'waitlist.db') }
}

const open = async (t: TestContext, { baseUrl }: Program) => {
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1')
  socket.setEncoding('latin1').on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

const openSecurely = async (t: TestContext, program: Program) => {
  const socket = await handshake(program, {})
  assert.ok(!(socket instanceof Error), String(socket))
  t.after(() => socket.destroy())
  return socket.on('error', () => {})
}

/** The fatal lines of a log: they say why a process ended itself. */
const fatalIn = (program: Program) => logOf(program).filter(({ level }) => level === 60)

const isRefused = ({ baseUrl }: Program): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1')
    socket.on('connect', () => resolve(false)).on('error', () => resolve(true))
    socket.on('connect', () => socket.destroy())
  })

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
      posted.end(body(email))
    })
  const clients = Array.from({ length: 20 }, async (_, client) => {
    for (let i = 0; await send(`v${client}-${i}@quixote.example`); i++);
  })
  return { answers, unanswered: () => unanswered, over: () => Promise.all(clients) }
}

describe('SIGTERM', { concurrency: true }, () => {
  test('health says 503 during the delay, signups go on; then it listens no more and ends with 0', async t => {
    const program = await start(t, { SHUTDOWN_DELAY: '2s' })
    const agent = new Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    assert.equal((await fetchSignUp(program, 'first@quixote.example')).status, 200)
    program.process.kill('SIGTERM')
    await until(async () => (await fetch(`${program.baseUrl}/api/health`)).status === 503)
    const health = await fetch(`${program.baseUrl}/api/health`)
    assert.deepEqual(Object.keys((await health.json()) as object), ['error'])
    const late = await fetchSignUp(program, 'late@quixote.example')
    assert.equal(late.status, 200)
    assert.equal(late.headers.get('connection'), 'close')
    assert.equal(await exitInTime(program), 0)
    assert.equal(await isRefused(program), true)
    assert.deepEqual(
      contactsIn(program.path).map(({ email, events }) => [email, events]),
      [
        ['first@quixote.example', 1],
        ['late@quixote.example', 1],
      ],
    )
    const said = logOf(program).map(({ msg }) => msg)
    assert.ok(said.includes('stopping') && said.includes('stopped'))
  })

  test('whatever is asked during the delay, the answer ends its connection', async t => {
    const program = await start(t, { SHUTDOWN_DELAY: '2s' })
    const connections = await Promise.all(requests.map(() => open(t, program)))
    const answers = connections.map(async socket => {
      let received = ''
      socket.on('data', text => {
        received += text
      })
      await once(socket, 'close')
      return received
    })
    program.process.kill('SIGTERM')
    await until(() => logOf(program).some(({ msg }) => msg === 'stopping'))
    for (const [i, sent] of requests.entries()) connections[i]!.write(sent)
    for (const [i, received] of (await Promise.all(answers)).entries()) {
      assert.match(received, /^HTTP\/1\.1 \d{3} [\s\S]*\r\nconnection: close\r\n/i, requests[i]!)
    }
    assert.equal(await exitInTime(program), 0)
  })

  test('of a burst in progress every answer that arrives is true', async t => {
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

  test('clients that do not close hold it up for less than 10 seconds', { skip }, async t => {
    const { env } = pairIn(t)
    const clear = await start(t)
    const idle = await open(t, clear)
    idle.write('GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(idle, 'data')
    const half = await open(t, clear)
    half.write(
      'POST /api/waitlist HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
    )
    const silent = await open(t, clear)
    const tls = await start(t, env)
    const secure = await openSecurely(t, tls)
    secure.write(
      'POST /api/waitlist HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
    )
    const unsecured = await open(t, tls)

    for (const program of [clear, tls]) program.process.kill('SIGTERM')
    assert.deepEqual(await Promise.all([exitInTime(clear), exitInTime(tls)]), [0, 0])
    for (const socket of [idle, half, silent, secure, unsecured]) if (!socket.closed) await once(socket, 'close')
  })

  test('a second signal ends it at once, with a failure', async t => {
    const program = await start(t, { SHUTDOWN_DELAY: '2s' })
    program.process.kill('SIGTERM')
    await until(() => logOf(program).some(({ msg }) => msg === 'stopping'))
    program.process.kill('SIGINT')
    assert.equal(await program.exited, null)
    const [fatal, ...others] = fatalIn(program)
    assert.deepEqual([fatal?.msg, fatal?.signal, others], ['stopped at once', 'SIGINT', []])
  })
})

describe('SIGHUP', { concurrency: true }, () => {
  test('without TLS, as from a terminal that is closed, stops it like SIGTERM; another one changes nothing', async t => {
    const program = await start(t, { SHUTDOWN_DELAY: '2s' })
    assert.equal((await fetchSignUp(program, 'first@quixote.example')).status, 200)
    program.process.kill('SIGHUP')
    await until(async () => (await fetch(`${program.baseUrl}/api/health`)).status === 503)
    program.process.kill('SIGHUP')
    assert.equal((await fetchSignUp(program, 'late@quixote.example')).status, 200)
    assert.equal(await exitInTime(program), 0)
    assert.ok(hasSaid(program, 'stopped'))
    assert.equal(contactsIn(program.path).length, 2)
  })
})

test('a log that nobody reads any more: it starts, stores, and a stop ends it with 0', async t => {
  const cwd = temporaryFolder(t)
  const baseUrl = `http://127.0.0.1:${await freePort()}`
  const env = { HOST: '127.0.0.1', PORT: new URL(baseUrl).port, SHUTDOWN_DELAY: '0', LOG_LEVEL: 'debug' }
  const program = spawnProgram(t, env, { cwd, args: ['serve'] })
  for (const each of ['stdout', 'stderr'] as const) program.process[each]!.destroy()
  const health = () => fetch(`${baseUrl}/api/health`).catch(() => null)
  await until(async () => program.process.exitCode !== null || (await health())?.status === 200)
  assert.equal((await fetchSignUp({ baseUrl }, 'a@b.example')).status, 200)
  program.process.kill('SIGTERM')
  assert.equal(await exitInTime(program), 0)
  assert.equal(contactsIn(join(cwd, 'data', 'waitlist.db')).length, 1)
})

describe('a signal during the start', { concurrency: true }, () => {
  /** Says when the program begins to load its own code, and holds that up until it is told to go on. */
  const slowStart = (folder: string) => {
    const hook = join(folder, 'slow.mjs')
    writeFileSync(
      hook,
      `import { existsSync } from 'node:fs'
      import { registerHooks } from 'node:module'
      registerHooks({ load(url, context, next) {
        if (url.endsWith('/src/main.ts')) {
          process.stderr.write('loading')
          const wait = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
          for (let i = 0; i < 1_000 && !existsSync('go on'); i++) wait()
        }
        return next(url, context)
      } })`,
    )
    return { HOST: '127.0.0.1', PORT: '0', NODE_OPTIONS: `--import=${pathToFileURL(hook)}` }
  }
  const goOn = (folder: string) => writeFileSync(join(folder, 'go on'), '')

  /** The signal may be heard only when the service is up, which then stops as it should. */
  function assertStopped(program: Pick<Program, 'stdout'>): void {
    const told = logOf(program)
    assert.ok(told.length === 0 || told.some(({ msg }) => msg === 'stopped'), program.stdout())
  }

  test('SIGTERM before its code is loaded ends it with 0', async t => {
    const cwd = temporaryFolder(t)
    const program = spawnProgram(t, slowStart(cwd), { cwd, args: ['serve'] })
    await until(() => program.stderr().includes('loading'))
    program.process.kill('SIGTERM')
    goOn(cwd)
    assert.equal(await program.exited, 0)
    assertStopped(program)
  })

  test('another command is ended by it, and does not seem to have done its work', async t => {
    const cwd = temporaryFolder(t)
    const program = spawnProgram(t, slowStart(cwd), { cwd, args: ['export'] })
    await until(() => program.stderr().includes('loading'))
    program.process.kill('SIGTERM')
    assert.equal(await program.exited, null)
  })
})

describe('a failure', { concurrency: true }, () => {
  test('a database that is moved away ends the process, and nobody is told that they are stored', async t => {
    const program = await start(t)
    assert.equal((await fetchSignUp(program, 'ada@quixote.example')).status, 200)
    renameSync(program.path, `${program.path}.moved`)
    assert.notEqual((await fetchSignUp(program, 'late@quixote.example').catch(() => null))?.status, 200)
    assert.equal(await program.exited, null)
    const [fatal, ...others] = fatalIn(program)
    assert.match(JSON.stringify(fatal), /waitlist\.db: it was moved or deleted/)
    assert.deepEqual(others, [])
  })
})

type Gone = (server: PostgresServer, proxy: FaultProxy) => unknown

const ways: Readonly<Record<string, Gone>> = {
  'answers nothing': server => server.pause(),
  'is cut off': (_, proxy) => proxy.set({ is: 'black hole', loses: 'both' }),
}

describe('SIGTERM while PostgreSQL', { skip }, () => {
  for (const [what, leave] of Object.entries(ways)) {
    test(`${what}: everybody is told so and asked to leave, and it ends in time with 0`, async t => {
      const server = await startPostgres()
      t.after(server.remove)
      const proxy = await startFaultProxy(server.port, seedOf(t))
      t.after(proxy.close)
      const url = new URL(await server.database())
      url.port = String(proxy.port)
      const program = await start(t, { DATABASE_URL: url.href, RATE_LIMIT: '1000000' })
      const clients = crowd(t, program)
      await until(() => clients.answers.length > 100)
      await leave(server, proxy)
      await wait(500)
      const before = clients.answers.length
      program.process.kill('SIGTERM')
      assert.equal(await exitInTime(program), 0)
      await clients.over()
      if (what === 'answers nothing') server.goOn()
      assert.ok(hasSaid(program, 'stopped'))
      assert.equal(clients.unanswered(), 0)
      const told = clients.answers.slice(before)
      assert.ok(told.length >= 20)
      assert.deepEqual([...new Set(told.map(({ status, connection }) => `${status} ${connection}`))], ['500 close'])
    })
  }
})
