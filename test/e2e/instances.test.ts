/** Identical instances over one PostgreSQL: the contract of the stores shows the same of stores on one database. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { isHealthy, stageInstances } from '../harness/instances.ts'
import { Ledger, load, visit } from '../harness/load.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { completedAt, contactsIn, endLeasesAt } from '../harness/postgres-database.ts'
import { type Program, runProgram, until } from '../harness/program.ts'
import { assertOnce, CREATE, stage } from './provider.scene.ts'

const skip = !isSlow && 'it runs in .ci/run'

const server = await sharedPostgres()

/** As many as Loops may be called in a second, with their automations. */
const FEW = 5

describe('what is pending at a vendor is shared', { concurrency: true }, () => {
  for (const effect of ['before the effect', 'after the effect'] as const) {
    test(`one of three is killed while it asks, ${effect}: the others complete its contacts`, {
      skip: effect === 'before the effect' && skip,
    }, async t => {
      const database = await server.database()
      const scene = await stage(t, { DATABASE_URL: database })
      const [first, ...others] = [await scene.run(), await scene.run(), await scene.run()]
      const joins = (program: Program) =>
        Promise.all(Array.from({ length: FEW }, (_, i) => visit(program, `sancho${i}@quixote.example`)))
      scene.hold(CREATE, effect)
      const visitors = joins(first!)
      await until(() => scene.held() === FEW)
      assert.equal(await first!.end('SIGKILL'), null)
      assert.deepEqual(await visitors, Array(FEW).fill(null))
      scene.release()
      await endLeasesAt(database)
      await completedAt(database)
      assertOnce(scene, await contactsIn(database))
      for (const other of others) assert.ok((await joins(other)).every(answer => answer?.alreadyExisted))
    })
  }
})

test('three instances admit one quota together', async t => {
  const env = { DATABASE_URL: await server.database(), RATE_LIMIT: '4' }
  const programs = await Promise.all([run(t, env), run(t, env), run(t, env)])
  for (let i = 0; i < 9; i++) {
    assert.equal((await visit(programs[i % 3]!, `sancho${i}@quixote.example`))?.status, i < 4 ? 200 : 429)
  }
})

const basics = {
  HOST: '127.0.0.1',
  PORT: '0',
  SHUTDOWN_DELAY: '0',
  RATE_LIMIT: '100000',
}

/** However it ends: the log has neither visitors nor the secret of an address. */
async function run(t: TestContext, env: Record<string, string>): Promise<Program> {
  const program = await runProgram(t, { ...basics, ...env }, { cwd: temporaryFolder(t) })
  t.after(async () => {
    await program.exited
    const said = program.stdout() + program.stderr()
    for (const secret of ['Zebulon', 'quixote']) {
      assert.ok(!said.includes(secret), secret)
    }
  })
  return program
}

const CLIENTS = 8
const RESTARTS = 4

test('rolling restarts under load: no request fails that goes where the health report is green', { skip }, async t => {
  const database = await server.database()
  const { run, assertAllDelivered } = await stageInstances(t, database, { SHUTDOWN_DELAY: '2s' })
  const steady = await run()
  const rotation = new Set([steady.baseUrl])
  const ledger = new Ledger()
  let isOver = false
  const loading = load({
    ledger,
    clients: CLIENTS,
    round: 0,
    rest: 5,
    to: client => [...rotation][client % rotation.size]!,
    goesOn(answer) {
      assert.equal(answer?.status, 200)
      return !isOver
    },
  }).finally(() => {
    isOver = true
  })
  // It is awaited below.
  loading.catch(() => {})
  for (let left = RESTARTS; left > 0 && !isOver; left--) {
    const before = ledger.acknowledged
    const program = await run()
    rotation.add(program.baseUrl)
    await until(() => isOver || ledger.acknowledged > before + CLIENTS)
    const ended = program.end('SIGTERM')
    await until(async () => !(await isHealthy(program)))
    rotation.delete(program.baseUrl)
    assert.equal(await ended, 0)
  }
  isOver = true
  await loading
  ledger.assertTrueOf(await contactsIn(database))
  await assertAllDelivered()
})
