import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { after, describe, type TestContext, test } from 'node:test'
import { balancers } from '../harness/balancers.ts'
import { behind } from '../harness/instances.ts'
import { Ledger } from '../harness/ledger.ts'
import { signUp } from '../harness/load.ts'
import { startPostgres } from '../harness/postgres.ts'
import { contactsAt } from '../harness/postgres-database.ts'
import { noRedis, type RedisServer, redisProgram } from '../harness/redis.ts'

const server = await startPostgres()
after(() => server.remove())

const INSTANCES = 3
const VISITORS = 200
const QUOTA = 37
const ATTEMPTS = 500

/** Attempts of one client, all at once. */
async function attempts(t: TestContext, count: number, attempt: (number: number, agent: Agent) => Promise<number>) {
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  const statuses = await Promise.all(Array.from({ length: count }, (_, number) => attempt(number, agent)))
  const sum: Record<number, number> = {}
  for (const status of statuses) sum[status] = (sum[status] ?? 0) + 1
  return sum
}

/**
 * What comes of a burst on a full quota. Where Redis does not answer an instance in its 50 ms, that one counts by
 * itself, as it should: on a machine that is too busy for the moment the burst is repeated.
 */
async function counted(redis: RedisServer, burst: () => Promise<Record<number, number>>) {
  for (let left = 5; ; left--) {
    await redis.command('flushall')
    const sum = await burst()
    if (sum[200] === QUOTA || left === 1) return sum
  }
}

for (const { name, start, skip, hasAll } of balancers) {
  const rounds = hasAll ? 200 : 20
  describe(`${INSTANCES} instances behind ${name}`, { timeout: 180_000, skip }, () => {
    test(`${VISITORS} simultaneous equal addresses, ${rounds} times: one contact and one event each`, async t => {
      const { balancer, database, assertAllDelivered } = await behind(t, start, INSTANCES, await server.database())
      const agent = new Agent({ keepAlive: true, maxSockets: VISITORS })
      t.after(() => agent.destroy())
      const ledger = new Ledger()
      for (let round = 0; round < rounds; round++) {
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
      const contacts = await contactsAt(database)
      assert.equal(contacts.length, rounds)
      ledger.assertTrueOf(contacts)
      await assertAllDelivered()
    })

    const local = redisProgram === undefined && noRedis
    test(`${ATTEMPTS} concurrent attempts of one client: exactly the quota is admitted`, { skip: local }, async t => {
      // Nothing is refilled while the test runs.
      const env = { RATE_LIMIT: String(QUOTA), RATE_LIMIT_WINDOW: '86400' }
      const { balancer, programs, redis } = await behind(t, start, INSTANCES, await server.database(), env)
      const post = async (url: string, client: string, agent: Agent) =>
        (await signUp(url, agent, 'sancho@quixote.example', { 'x-forwarded-for': client }))?.status ?? 0
      // The balancer adds who really asks; what else a client tells of itself does not count.
      const liar = (number: number) => `198.51.100.${number % 250}`
      const all = () => attempts(t, ATTEMPTS, (number, agent) => post(balancer.url, liar(number), agent))
      assert.deepEqual(await counted(redis!, all), { 200: QUOTA, 429: ATTEMPTS - QUOTA })
      // Another client has a quota of its own, whichever instance counts it.
      const direct = (number: number, agent: Agent) => post(programs[number % 3]!.baseUrl, '203.0.113.7', agent)
      const other = () => attempts(t, 2 * QUOTA, direct)
      assert.deepEqual(await counted(redis!, other), { 200: QUOTA, 429: QUOTA })
    })
  })
}
