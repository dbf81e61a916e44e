/** Identical instances over one PostgreSQL. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSlow } from '../harness/environment.ts'
import { isHealthy, openInstances } from '../harness/instances.ts'
import { Ledger, load, visit } from '../harness/load.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'

const server = await sharedPostgres()

test('three instances share one rate limit', async t => {
  const { run } = await openInstances(t, await server.database(), { RATE_LIMIT: '4', SHUTDOWN_DELAY: '0' })
  const programs = await Promise.all([run(), run(), run()])
  for (let i = 0; i < 9; i++) {
    assert.equal((await visit(programs[i % 3]!, `quixote${i}@quixote.example`))?.status, i < 4 ? 200 : 429)
  }
})

const CLIENTS = 8
const RESTARTS = 4

test('rolling restarts under load: no request fails that goes where health is green', {
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const database = await server.database()
  const { run, assertAllDelivered } = await openInstances(t, database, { SHUTDOWN_DELAY: '2s' })
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
