import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { exitInTime } from '../harness/exit.ts'
import { type FaultProxy, startFaultProxy } from '../harness/fault-proxy.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { type PostgresServer, startPostgres } from '../harness/postgres.ts'
import { hasSaid, type Program, runProgram, until } from '../harness/program.ts'
import { seedOf } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'

interface Answer {
  readonly status: number
  readonly connection: string | undefined
}

/** Clients that send one signup after the other, on connections that they keep as long as they may. */
function crowd(t: TestContext, { baseUrl }: Program) {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 })
  t.after(() => agent.destroy())
  const answers: Answer[] = []
  /** Requests that were sent and got no answer. */
  let unanswered = 0
  const send = (email: string) =>
    new Promise<boolean>(resolve => {
      const headers = { 'content-type': 'application/json' }
      const posted = request(`${baseUrl}/api/waitlist`, { method: 'POST', agent, headers }, response => {
        answers.push({ status: response.statusCode!, connection: response.headers.connection })
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

/** Within the 10 seconds that orchestrators wait before they kill. */
function stop(program: Program): Promise<number | null | 'late'> {
  program.process.kill('SIGTERM')
  return exitInTime(program)
}

type Gone = (server: PostgresServer, proxy: FaultProxy) => unknown

const ways: Readonly<Record<string, Gone>> = {
  'is shut down': server => server.stop('immediate'),
  'answers nothing': server => server.pause(),
  'is cut off': (_, proxy) => proxy.set({ is: 'black hole', loses: 'both' }),
}

const skip = !isSlow && 'each takes seconds; .ci/run does it'

describe('SIGTERM while PostgreSQL', { timeout: 120_000, skip }, () => {
  for (const [what, leave] of Object.entries(ways)) {
    test(`${what}: everybody is told so and asked to leave, and it ends in time with 0`, async t => {
      const server = await startPostgres()
      t.after(server.remove)
      const proxy = await startFaultProxy(server.port, seedOf(t))
      t.after(proxy.close)
      const url = new URL(await server.database())
      url.port = String(proxy.port)
      const env = { HOST: '127.0.0.1', PORT: '0', DATABASE_URL: url.href, RATE_LIMIT: '1000000' }
      const program = await runProgram(t, env, { cwd: temporaryFolder(t) })
      const clients = crowd(t, program)
      await until(() => clients.answers.length > 100)
      await leave(server, proxy)
      await wait(500)
      const before = clients.answers.length
      assert.equal(await stop(program), 0)
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
