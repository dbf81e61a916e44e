import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { balancers } from '../harness/balancers.ts'
import { startFaultProxy } from '../harness/fault-proxy.ts'
import { behind } from '../harness/instances.ts'
import { Ledger } from '../harness/ledger.ts'
import { load } from '../harness/load.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-contacts.ts'
import { until } from '../harness/program.ts'
import { noRedis, redisProgram } from '../harness/redis.ts'
import { seedOf } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'

const server = isSlow ? await startPostgres({ settings: unsynced }) : null
after(() => server?.remove())

/** So many are restarted at the same time, so that the delays of their stops pass together. */
const LANES = 4
/** So many are never restarted: there is always somebody. */
const STEADY = 2
const CLIENTS = 8
/** Milliseconds between an answer and the next signup of a client. */
const REST = 5
const RESTARTS = 20

for (const { name, start, skip: missing } of balancers) {
  const skip = missing || (!isSlow && 'it runs in .ci/run')
  describe(`instances behind ${name}`, { timeout: 180_000, skip }, () => {
    test(`${RESTARTS} rolling restarts under load: no failed request`, async t => {
      const database = await server!.database()
      const { balancer, programs, run, assertAllDelivered } = await behind(t, start, LANES + STEADY, database)
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

    // In `npm test` health.503 shows what a balancer asks.
    test('who cannot reach the database gets no signups, until it can again', async t => {
      const seed = seedOf(t)
      const database = await server!.database()
      const { balancer, run, programs } = await behind(t, start, 2, database)
      const link = await startFaultProxy(server!.port, seed)
      t.after(() => link.close())
      const third = await run({ DATABASE_URL: database.replace(`:${server!.port}/`, `:${link.port}/`) })
      await balancer.add(third.baseUrl)
      const isIn = async () => (await balancer.inRotation()).includes(third.baseUrl)
      assert.equal(await isIn(), true)

      link.set({ is: 'black hole', loses: 'both' })
      assert.equal(await isIn(), true)
      await until(async () => !(await isIn()))
      assert.equal((await fetch(`${third.baseUrl}/api/health`)).status, 503)
      const ledger = new Ledger()
      let left = 60
      const answered = (answer: { status: number } | null) => {
        assert.equal(answer?.status, 200)
        return left-- > 0
      }
      await load({ ledger, clients: 4, round: 0, to: () => balancer.url, goesOn: answered })
      assert.deepEqual((await balancer.inRotation()).toSorted(), programs.map(({ baseUrl }) => baseUrl).toSorted())

      link.set({ is: 'none' })
      await until(isIn)
      left = 60
      await load({ ledger, clients: 4, round: 1, to: () => third.baseUrl, goesOn: answered })
      ledger.assertTrueOf(await contactsIn(database))
    })

    const local = redisProgram === undefined && noRedis
    test('without the shared rate limit all of them are healthy', { skip: local }, async t => {
      const { balancer, programs, redis } = await behind(t, start, 2, await server!.database())
      const haveSaid = (message: string) => programs.every(({ stdout }) => stdout().includes(message))
      const ledger = new Ledger()
      const some = async (round: number) => {
        let left = 60
        await load({
          ledger,
          clients: 4,
          round,
          rest: REST,
          to: () => balancer.url,
          goesOn(answer) {
            assert.equal(answer?.status, 200)
            return left-- > 0
          },
        })
        for (const { baseUrl } of programs) assert.equal((await fetch(`${baseUrl}/api/health`)).status, 200)
        assert.equal((await balancer.inRotation()).length, programs.length)
      }
      await some(0)
      await redis!.stop()
      // It is not missed in the first seconds, when it may just not be connected yet.
      for (let round = 1; !haveSaid('the shared rate limit is away'); round++) await some(round)
      await redis!.start()
      for (let round = 1; !haveSaid('the shared rate limit is used again'); round++) await some(round)
    })
  })
}
