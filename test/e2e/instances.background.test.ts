import assert from 'node:assert/strict'
import { Agent, type ServerResponse } from 'node:http'
import { after, describe, type TestContext, test } from 'node:test'
import { LEASE } from '../../src/waitlist/ports/outbox.ts'
import { stageInstances } from '../harness/instances.ts'
import { type SignupAnswer, signUp } from '../harness/load.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn, endLeasesAt } from '../harness/postgres-database.ts'
import { type Program, until } from '../harness/program.ts'
import type { Said } from '../harness/receiver.ts'
import { type Deed, type Received, say, startReceiver } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'
import { CREATE } from './provider.scene.ts'

/** The contract of the stores shows the same of two stores on one database. */
const skip = !isSlow && 'it runs in .ci/run'

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

const INSTANCES = 3
/** As many as Loops may be called in a second, with their automations. */
const FEW = 5
type Effect = 'before the effect' | 'after the effect'

/** Answers, or on wish not before it is released. */
function holdable(answer: (received: Received) => Said) {
  let effect: Effect | undefined
  const held: (readonly [ServerResponse, Received])[] = []
  return {
    answer(received: Received): Said | Deed {
      if (effect === undefined || (received.path !== CREATE && received.path !== '/hook')) return answer(received)
      if (effect === 'after the effect') answer(received)
      return response => void held.push([response, received])
    },
    held: () => held.length,
    hold(which: Effect) {
      effect = which
    },
    /** Those who are still there are answered, so that no attempt must time out first. */
    release() {
      effect = undefined
      for (const [response, received] of held) if (!response.destroyed) say(answer(received))(response, received)
    },
  }
}

function visitorsOf(t: TestContext) {
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  /** So many at once. */
  return ({ baseUrl }: Program, count: number): Promise<(SignupAnswer | null)[]> =>
    Promise.all(Array.from({ length: count }, (_, i) => signUp(baseUrl, agent, `sancho${i}@quixote.example`)))
}

const statuses = (answers: readonly (SignupAnswer | null)[]) => answers.map(answer => answer?.status ?? null)
const all = <T>(count: number, each: T): T[] => new Array<T>(count).fill(each)

/** Instances before one vendor, who lives on when they die. */
async function stage(t: TestContext, more: Record<string, string> = {}) {
  const fake = loopsFake()
  const vendor = holdable(fake.answer)
  const { url, received } = await startReceiver(t, vendor.answer)
  const database = await server.database()
  const env = { PROVIDER: 'loops', ...loopsSettings(url), PROVIDER_TIMEOUT: '20s', ...more }
  const instances = await stageInstances(t, database, env)
  return {
    database,
    fake,
    vendor,
    instances,
    url,
    visit: visitorsOf(t),
    asked: (path: string) => received.filter(received => received.path === path),
    /** Nothing is left to do, and everybody is on the list here and at the vendor once, and heard of once. */
    async assertOnce(count: number) {
      await instances.assertAllDelivered(2)
      const contacts = await contactsIn(database)
      assert.equal(contacts.length, count)
      for (const { email, state } of contacts) {
        assert.deepEqual([email, state, fake.count(email), fake.starts(email)], [email, 'listed', 1, 1])
      }
    },
  }
}

/** What is taken over is not waited for until its lease ends. `since`: before it was leased. */
const assertTakenOver = (since: number) => assert.ok(performance.now() - since < LEASE, 'a lease was waited for')

describe('what is pending at a vendor is shared', { concurrency: true, timeout: 180_000 }, () => {
  for (const effect of ['before the effect', 'after the effect'] as const) {
    test(`one of ${INSTANCES} is killed while it asks, ${effect}: the others complete its contacts`, {
      skip: effect === 'before the effect' && skip,
    }, async t => {
      const { database, vendor, instances, visit, assertOnce } = await stage(t)
      const [first, ...others] = await Promise.all([instances.run(), instances.run(), instances.run()])
      vendor.hold(effect)
      const since = performance.now()
      const visitors = visit(first, FEW)
      await until(() => vendor.held() === FEW)
      assert.equal(await first.end('SIGKILL'), null)
      assert.deepEqual(statuses(await visitors), all(FEW, null))
      vendor.release()
      await endLeasesAt(database)
      await assertOnce(FEW)
      assertTakenOver(since)
      for (const other of others) {
        assert.deepEqual(await visit(other, FEW), all(FEW, { status: 200, alreadyExisted: true }))
      }
    })
  }
})
