import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { memoryLimiter, type Quota } from '../../src/rate-limit/memory.ts'
import { deleteAttempts, sharedLimiter } from '../../src/rate-limit/shared.ts'
import type { Database } from '../../src/store/database.ts'
import { postgresDatabase } from '../../src/store/postgres/open.ts'
import { recordingLog } from '../harness/log.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { until } from '../harness/program.ts'

const server = await sharedPostgres()

/** Makes limiters over one database, as instances have them. */
async function instances() {
  const { log, logged } = recordingLog()
  const database = await postgresDatabase({ url: await server.database(), log })
  after(database.close)
  const state = { asked: 0, isAway: false }
  const transaction: Database['transaction'] = async (...all) => {
    state.asked++
    if (state.isAway) throw new Error('away')
    return database.transaction(...all)
  }
  return { database, state, logged, limiter: (quota: Quota) => sharedLimiter(quota, { transaction }, log) }
}

const admittedOf = (all: readonly { readonly admitted: boolean }[]) => all.filter(({ admitted }) => admitted).length

describe('the limiter that instances share', () => {
  test('three instances admit the quota together, one by one and in a crowd, and answer as one in memory does', async () => {
    const { limiter } = await instances()
    const quota = { limit: 10, window: 36_000 }
    const three = [limiter(quota), limiter(quota), limiter(quota)] as const
    const { take } = memoryLimiter(quota)
    for (let i = 0; i < 15; i++) {
      const [ours, theirs] = [await three[i % 3]!.take('one by one'), await take('one by one')]
      assert.deepEqual([ours.admitted, ours.remaining], [theirs.admitted, theirs.remaining])
      assert.ok(Math.abs(ours.seconds - theirs.seconds) <= 60, `${ours.seconds} s, in memory ${theirs.seconds} s`)
    }
    assert.equal(admittedOf(await Promise.all(Array.from({ length: 600 }, (_, i) => three[i % 3]!.take('crowd')))), 10)
  })

  test('to wait as long as a refusal says is enough, also for one that a clock left far ahead', async () => {
    const { limiter, database } = await instances()
    const [one, two] = [limiter({ limit: 3, window: 3 }), limiter({ limit: 3, window: 3 })]
    const ahead = (Date.now() + 1e9) * 1_000
    await database.transaction(tx => tx.insert('attempt', [{ client: 'patient', tat: ahead, admitted: 0 }]))
    assert.deepEqual(await one.take('patient'), { admitted: false, remaining: 0, seconds: 1 })
    for (let i = 0; i < 3; i++) await two.take('patient')
    await wait((await two.take('patient')).seconds * 1_000)
    assert.equal((await two.take('patient')).admitted, true)
  })

  test('a flood from one client costs the database nothing once memory refuses', async () => {
    const { limiter, state } = await instances()
    const { take } = limiter({ limit: 5, window: 600 })
    const flood = await Promise.all(Array.from({ length: 10_000 }, () => take('flood')))
    assert.deepEqual([admittedOf(flood), state.asked], [5, 1])
  })

  test('while the database is away, memory alone decides; one line says so, and one that it is over', async () => {
    const { limiter, state, logged } = await instances()
    const { take } = limiter({ limit: 3, window: 600 })
    state.isAway = true
    const crowd = await Promise.all(Array.from({ length: 300 }, (_, i) => take(`client ${i % 75}`)))
    assert.equal(admittedOf(crowd), 225)
    const asked = state.asked
    await take('another')
    assert.equal(state.asked, asked, 'it is left alone for a while')
    state.isAway = false
    await until(async () => (await take(`${Math.random()}`)) && logged.length > 1)
    assert.deepEqual(
      logged.map(({ msg }) => msg),
      ['the shared rate limit is away: each instance counts by itself', 'the shared rate limit is used again'],
    )
  })

  test('a database that is slow holds nobody up', async () => {
    const slow = Promise.withResolvers<never[]>()
    const { take } = sharedLimiter(
      { limit: 3, window: 600 },
      { transaction: () => slow.promise as Promise<never> },
      recordingLog().log,
    )
    assert.equal(admittedOf(await Promise.all(Array.from({ length: 9 }, (_, i) => take(`${i % 2}`)))), 6)
    slow.resolve([])
  })

  test('clients whose quota is full are deleted in steps, and nobody else', async () => {
    const { database, limiter } = await instances()
    const [passing, lasting] = [limiter({ limit: 1, window: 1 }), limiter({ limit: 1, window: 600 })]
    await Promise.all(Array.from({ length: 50 }, (_, i) => (i < 45 ? passing : lasting).take(`client ${i}`)))
    await wait(1_100)
    for (const deleted of [20, 20, 5, 0]) {
      assert.equal(await database.transaction(tx => deleteAttempts(tx, 20)), deleted)
    }
  })
})
