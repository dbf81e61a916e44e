import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { after, describe, test } from 'node:test'
import { balancers } from '../harness/balancers.ts'
import { behind } from '../harness/instances.ts'
import { Ledger } from '../harness/ledger.ts'
import { signUp } from '../harness/load.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-database.ts'
import { isSlow } from '../harness/slow.ts'

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

const INSTANCES = 3
const VISITORS = 200
const ROUNDS = isSlow ? 30 : 5

for (const { name, start, skip } of balancers) {
  describe(`${INSTANCES} instances behind ${name}`, { timeout: 180_000, skip }, () => {
    test(`${VISITORS} simultaneous equal addresses, ${ROUNDS} times: one contact and one event each`, async t => {
      const { balancer, database, assertAllDelivered } = await behind(t, start, INSTANCES, await server.database())
      const agent = new Agent({ keepAlive: true, maxSockets: VISITORS })
      t.after(() => agent.destroy())
      const ledger = new Ledger()
      for (let round = 0; round < ROUNDS; round++) {
        const emails = Array.from({ length: VISITORS }, (_, number) => {
          return number % 2 ? `crowd-${round}@quixote.example` : `Crowd-${round}@Quixote.Example`
        })
        const answers = await Promise.all(
          emails.map(async email => {
            const answer = await signUp(balancer.url, agent, email)
            ledger.note(email, answer)
            return answer
          }),
        )
        assert.deepEqual(
          answers.filter(answer => answer?.status !== 200),
          [],
        )
        assert.equal(answers.filter(answer => answer?.alreadyExisted === false).length, 1)
      }
      const contacts = await contactsIn(database)
      assert.equal(contacts.length, ROUNDS)
      ledger.assertTrueOf(contacts)
      await assertAllDelivered()
    })
  })
}
