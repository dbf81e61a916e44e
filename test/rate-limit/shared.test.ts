import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import pg from 'pg'
import { memoryLimiter, type Quota } from '../../src/rate-limit/memory.ts'
import { deleteAttempts, sharedLimiter } from '../../src/rate-limit/shared.ts'
import type { Statement, Value } from '../../src/store/database.ts'
import { postgresDatabase } from '../../src/store/postgres/database.ts'
import { cleaning } from '../../src/waitlist/upkeep/clean.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'

const server = await sharedPostgres()
const silent = recordingLog().log

/** Makes limiters over one database, as instances have them. They wait long, since the machine may be slow. */
async function instances() {
  const url = await server.database()
  const open = () => postgresDatabase({ url, log: silent })
  const [database, ...others] = await Promise.all([open(), open(), open()])
  after(() => Promise.all([database, ...others].map(each => each.close())))
  let asked = 0
  return {
    url,
    database,
    run: (text: string, values: Value[] = []) => database.statement!<{ n: number }>(text, values),
    asked: () => asked,
    limiter(quota: Quota, instance = 0) {
      const statement: Statement = (...all) => {
        asked++
        return [database, ...others][instance]!.statement!(...all)
      }
      return sharedLimiter({ ...quota, statement, log: silent, timeout: 10_000 })
    },
  }
}

const client = '192.0.2.1'
const admittedOf = (all: readonly { readonly admitted: boolean }[]) => all.filter(({ admitted }) => admitted).length

describe('the limiter that instances share', () => {
  // An interval is at least 30 seconds, so that it makes no difference how long the test takes.
  test('every answer is that of the limiter in memory, one by one or in a batch', async () => {
    const { limiter, run } = await instances()
    // A pause in quarters of an interval, how many then try, and how often each.
    const steps = fc.array(fc.tuple(fc.nat(12), fc.integer({ min: 1, max: 3 }), fc.nat(6)), { maxLength: 6 })
    const quotas = fc.constantFrom({ limit: 1, window: 60 }, { limit: 3, window: 7_200 }, { limit: 20, window: 600 })
    await fc.assert(
      fc.asyncProperty(quotas, steps, fc.boolean(), async (quota, steps, atOnce) => {
        await run('truncate attempt')
        const clock = { now: 0 }
        const memory = memoryLimiter({ ...quota, now: () => clock.now })
        for (const [pause, clients, times] of steps) {
          // Time passes for the server when what it knows is moved back.
          const ms = (pause * quota.window * 1_000) / quota.limit / 4
          clock.now += ms
          await run('update attempt set tat = tat - $1', [ms * 1_000])
          const names = Array.from({ length: clients * times }, (_, i) => `client ${i % clients}`)
          // An instance that remembers nobody.
          const shared = limiter(quota)
          const ours = atOnce ? await Promise.all(names.map(shared.take)) : []
          if (!atOnce) for (const name of names) ours.push(await shared.take(name))
          for (const [i, { seconds, ...rest }] of ours.entries()) {
            const theirs = await memory.take(names[i]!)
            assert.deepEqual(rest, { admitted: theirs.admitted, remaining: theirs.remaining })
            // In a batch this instance refuses some before it knows.
            assert.ok(atOnce || Math.abs(seconds - theirs.seconds) <= 5, `${seconds} s, in memory ${theirs.seconds} s`)
          }
        }
      }),
      { numRuns: 40 },
    )
  })

  test('three instances admit the quota together, one by one and in a crowd, and nobody waits longer than it is said', async () => {
    const { limiter, run } = await instances()
    const three = (quota: Quota) => [limiter(quota, 0), limiter(quota, 1), limiter(quota, 2)] as const
    const all = three({ limit: 10, window: 600 })
    for (let i = 0; i < 15; i++) assert.equal((await all[i % 3]!.take(client)).admitted, i < 10)
    assert.equal(admittedOf(await Promise.all(Array.from({ length: 600 }, (_, i) => all[i % 3]!.take('crowd')))), 10)
    const [one, two] = three({ limit: 3, window: 3 })
    // Far ahead, by a clock that was set back since: that is used up, and no more.
    await run("insert into attempt values ('patient', $1, 0)", [(Date.now() + 1e9) * 1_000])
    assert.deepEqual(await one.take('patient'), { admitted: false, remaining: 0, seconds: 1 })
    for (let i = 0; i < 3; i++) await two.take('patient')
    await wait((await two.take('patient')).seconds * 1_000)
    assert.equal((await two.take('patient')).admitted, true)
  })

  test('what memory refuses costs the database nothing, also where another instance used the quota up', async () => {
    const { limiter, asked } = await instances()
    const quota = { limit: 5, window: 600 }
    const [one, two] = [limiter(quota, 0), limiter(quota, 1)]
    const flood = await Promise.all(Array.from({ length: 10_000 }, () => one.take(client)))
    assert.deepEqual([admittedOf(flood), asked()], [5, 1])
    for (let i = 0; i < 1_000; i++) assert.equal((await two.take(client)).admitted, false)
    assert.equal(asked(), 2)
  })

  for (const [how, end, mend] of [
    ['slow', 'begin; lock table attempt', 'commit'],
    ['failing', 'alter table attempt rename to away', 'alter table away rename to attempt'],
  ] as const) {
    test(`a database that is ${how}: memory alone decides, in time; one line says so, and one that it is over`, async () => {
      const { database, url } = await instances()
      const { log, logged } = recordingLog()
      const { take } = sharedLimiter({ limit: 3, window: 600, statement: database.statement!, log })
      const operator = new pg.Client(url)
      after(() => operator.end())
      await operator.connect()
      await operator.query(end)
      for (let i = 0; i < 3; i++) {
        const began = performance.now()
        const crowd = await Promise.all(Array.from({ length: 300 }, (_, n) => take(`${i} ${n % 100}`)))
        assert.equal(admittedOf(crowd), 300)
        assert.ok(performance.now() - began < 1_500, `${performance.now() - began} ms`)
        assert.equal((await take(`${i} 0`)).admitted, false)
      }
      await operator.query(mend)
      await until(async () => (await take(`${Math.random()}`)) && logged.length > 1)
      assert.deepEqual(
        logged.map(({ msg }) => msg),
        ['the shared rate limit is away: each instance counts by itself', 'the shared rate limit is used again'],
      )
    })
  }

  test('clients whose quota is full are deleted in steps, and nobody else', async () => {
    const { database, limiter, run } = await instances()
    const passing = limiter({ limit: 1, window: 1 })
    const lasting = limiter({ limit: 1, window: 600 })
    await Promise.all(Array.from({ length: 50 }, (_, i) => (i < 45 ? passing : lasting).take(`client ${i}`)))
    await wait(1_100)
    assert.equal(await database.transaction(tx => deleteAttempts(tx, 20)), 20)
    const upkeep = cleaning({ store: database, provider: null, log: silent })
    upkeep.start()
    await until(async () => (await run('select count(*) as n from attempt'))[0]!.n === 5)
    await upkeep.stop(0)
  })
})
