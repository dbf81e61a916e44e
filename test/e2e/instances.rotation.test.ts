import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { balancers } from '../harness/balancers.ts'
import { behind } from '../harness/instances.ts'
import { Ledger } from '../harness/ledger.ts'
import { load } from '../harness/load.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-database.ts'
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
  })
}
