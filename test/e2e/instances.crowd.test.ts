import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { after, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { balancers } from '../harness/balancers.ts'
import { behind } from '../harness/instances.ts'
import { Ledger } from '../harness/ledger.ts'
import { signUp } from '../harness/load.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-contacts.ts'
import { logOf, type Program, until } from '../harness/program.ts'
import { noRedis, type RedisServer, redisProgram } from '../harness/redis.ts'
import { isSlow } from '../harness/slow.ts'

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

const INSTANCES = 3
const VISITORS = 200
const QUOTA = 37
const ATTEMPTS = 500
const ROUNDS = isSlow ? 100 : 5

/** One attempt, of the client that the balancer is told of; gives the status. */
type Attempt = (url: string, client: string) => Promise<number>

/** Attempts all at once, and how often each status was the answer. */
async function sum(count: number, attempt: (number: number) => Promise<number>): Promise<Record<number, number>> {
  const sum: Record<number, number> = {}
  for (const status of await Promise.all(Array.from({ length: count }, (_, number) => attempt(number)))) {
    sum[status] = (sum[status] ?? 0) + 1
  }
  return sum
}

/** Whether one of them said that it counted by itself. Then it is right that more than the quota was admitted. */
const wasAway = (programs: readonly Program[]): boolean =>
  programs.some(program => logOf(program).some(({ msg }) => String(msg).startsWith('the shared rate limit is away')))

/** Waits until all of them count in Redis, and would say so if one no longer did: not before they are 2 seconds old. */
async function allCountThere(redis: RedisServer, programs: readonly Program[], attempt: Attempt): Promise<void> {
  await wait(2_000)
  await until(async () => {
    await redis.command('flushall')
    await Promise.all(programs.map(({ baseUrl }, number) => attempt(baseUrl, `192.0.2.${number}`)))
    return Number(await redis.command('dbsize')) === programs.length
  })
}

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

    // In `npm test` redis.test shows it, with limiters of several instances in one process.
    const local = (!isSlow && 'it runs in .ci/run') || (redisProgram === undefined && noRedis)
    test(`${ATTEMPTS} concurrent attempts of one client: exactly the quota is admitted`, { skip: local }, async t => {
      // Nothing is refilled while the test runs.
      const env = { RATE_LIMIT: String(QUOTA), RATE_LIMIT_WINDOW: '1d', SHUTDOWN_DELAY: '0' }
      const agent = new Agent({ keepAlive: true })
      t.after(() => agent.destroy())
      const attempt: Attempt = async (url, client) =>
        (await signUp(url, agent, 'sancho@quixote.example', { 'x-forwarded-for': client }))?.status ?? 0

      // Where Redis does not answer an instance in its 50 ms, that one counts by itself, and says so. Only then, since
      // the machine is too busy for the moment, other instances try again, for as long as the test may take.
      for (;;) {
        const { balancer, programs, redis } = await behind(t, start, INSTANCES, await server.database(), env)
        await allCountThere(redis!, programs, attempt)
        // The balancer adds who really asks; what else a client tells of itself does not count.
        const all = await sum(ATTEMPTS, number => attempt(balancer.url, `198.51.100.${number % 250}`))
        // Another client has a quota of its own, whichever instance counts it.
        const other = await sum(2 * QUOTA, number => attempt(programs[number % INSTANCES]!.baseUrl, '203.0.113.7'))
        // Their logs are complete when they have ended.
        await Promise.all(programs.map(program => program.end('SIGTERM')))
        if (wasAway(programs)) continue
        assert.deepEqual(all, { 200: QUOTA, 429: ATTEMPTS - QUOTA })
        assert.deepEqual(other, { 200: QUOTA, 429: QUOTA })
        return
      }
    })
  })
}
