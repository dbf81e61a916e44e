import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type TtlCacheOptions, ttlCache } from '../../src/admin/ttl-cache.ts'

/** Values that take as long to make as the test says, by a clock that it moves. */
function made(options: Partial<TtlCacheOptions>) {
  const state = { now: 0, takes: 0, times: 0, fails: false }
  const get = ttlCache(
    async () => {
      state.now += state.takes
      if (state.fails) throw new Error('a failure of the test')
      return ++state.times
    },
    { fresh: 100, patience: 60_000, clock: () => state.now, ...options },
  )
  return { state, get: async () => (await get()).value, failed: async () => (await get()).failed }
}

test('a value is made once while it is fresh, and once for all who ask at the same time', async () => {
  const { state, get } = made({})
  assert.deepEqual(await Promise.all([get(), get(), get()]), [1, 1, 1])
  state.now += 99
  assert.equal(await get(), 1)
  state.now += 1
  assert.deepEqual(await Promise.all([get(), get()]), [2, 2])
})

test('a failure is remembered like a value, which stays, and is forgotten when the next attempt succeeds', async () => {
  const { state, get, failed } = made({})
  assert.equal(await get(), 1)
  state.fails = true
  state.now += 100
  assert.equal(await failed(), 'a failure of the test')
  assert.equal(await get(), 1)
  state.fails = false
  assert.equal(await failed(), 'a failure of the test')
  state.now += 100
  assert.equal(await failed(), null)
  assert.equal(await get(), 2)
})

test('nobody waits for longer than they have patience: they get the last value', async () => {
  const first = Promise.withResolvers<string>()
  const get = ttlCache(() => first.promise, { fresh: 0, patience: 10 })
  assert.deepEqual(await get(), { value: null, at: null, failed: null })
  first.resolve('made')
  assert.equal((await get()).value, 'made')
})
