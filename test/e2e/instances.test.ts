/** Identical instances over one PostgreSQL: the contract of the stores shows the same of stores on one database. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { discordFake, slackFake } from '../destinations/chat.ts'
import { balancers } from '../harness/balancers.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { behind } from '../harness/instances.ts'
import { Ledger } from '../harness/ledger.ts'
import { load, visit } from '../harness/load.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { completedAt, contactsIn, endLeasesAt } from '../harness/postgres-database.ts'
import { type Program, runProgram, until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
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
    for (const secret of ['Zebulon', 'quixote', ...slackFake.secrets, ...discordFake.secrets]) {
      assert.ok(!said.includes(secret), secret)
    }
  })
  return program
}

/** So many are restarted at the same time, so that the delays of their stops pass together. */
const LANES = 4
/** So many are never restarted: there is always somebody. */
const STEADY = 2
const CLIENTS = 8
/** Milliseconds between an answer and the next signup of a client. */
const REST = 5
const RESTARTS = 8

for (const { name, start, skip: missing } of balancers) {
  describe(`instances behind ${name}`, { skip: missing || skip }, () => {
    test(`${RESTARTS} rolling restarts under load: no failed request`, async t => {
      const database = await server.database()
      const { balancer, programs, run, assertAllDelivered } = await behind(t, start, LANES + STEADY, database, {
        // As long as may be, for a balancer on a busy machine.
        SHUTDOWN_DELAY: '2s',
      })
      const ledger = new Ledger()
      let isOver = false
      const loading = load({
        ledger,
        clients: CLIENTS,
        round: 0,
        rest: REST,
        to: () => balancer.url,
        goesOn(answer) {
          assert.equal(answer?.status, 200)
          return !isOver
        },
      }).finally(() => {
        isOver = true
      })
      // Told below, when nothing is being restarted any more.
      loading.catch(() => {})
      const lanes = Array.from({ length: LANES }, async (_, lane) => {
        for (let left = RESTARTS / LANES; left > 0 && !isOver; left--) {
          const before = ledger.acknowledged
          const old = programs[lane]!
          assert.equal(await old.end('SIGTERM'), 0)
          await balancer.remove(old.baseUrl)
          const fresh = await run()
          programs[lane] = fresh
          await balancer.add(fresh.baseUrl)
          assert.ok(ledger.acknowledged > before, 'signups went on meanwhile')
        }
      })
      await Promise.allSettled(lanes)
      isOver = true
      await loading
      await Promise.all(lanes)
      t.diagnostic(`${ledger.acknowledged} signups`)
      ledger.assertTrueOf(await contactsIn(database))
      await assertAllDelivered()
    })
  })
}
