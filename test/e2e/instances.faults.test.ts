import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Fault, startFaultProxy } from '../harness/fault-proxy.ts'
import { isHealthy, stageInstances } from '../harness/instances.ts'
import { Ledger } from '../harness/ledger.ts'
import { load, signUp } from '../harness/load.ts'
import { type PostgresServer, startPostgres } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-contacts.ts'
import { endLeasesAt } from '../harness/postgres-database.ts'
import { type Program, until } from '../harness/program.ts'
import { noRedis, redisProgram, startRedis } from '../harness/redis.ts'
import { seedOf } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'
import { seeded } from '../harness/vendor.ts'

const INSTANCES = 3
const CLIENTS = 18
const KILLS = isSlow ? 20 : 4
/** Milliseconds between an answer and the next signup of a client. */
const REST = isSlow ? 10 : 40
/** Milliseconds that a fault lasts: longer than one statement may take. */
const LASTING = isSlow ? 12_000 : 3_000

const servers = await Promise.all([startPostgres(), startPostgres()])
after(() => Promise.all(servers.map(server => server.remove())))
const [steady, troubled] = servers as [PostgresServer, PostgresServer]

interface Scene {
  /** Those that run now. */
  readonly programs: Program[]
  /** Kills the one at this place and starts another one there. */
  replace(place: number): Promise<void>
  /** Brings trouble, then waits until every instance takes signups as if nothing had been. */
  during(trouble: () => Promise<unknown>): Promise<void>
  /** Everybody who was not told tries again, as visitors do; then all that was told is true of what is stored. */
  assertNothingLost(): Promise<void>
}

/** Instances under load. Each client asks one of them, without a balancer, which would hide what it says. */
async function stage(t: TestContext, database: string, envOf: (place: number) => Record<string, string>) {
  const instances = await stageInstances(t, database, {})
  const run = (place: number) => instances.run(envOf(place))
  const programs = await Promise.all(Array.from({ length: INSTANCES }, (_, place) => run(place)))
  const ledger = new Ledger()
  const acknowledged = new Map<Program, number>()
  const killed = new Set<Program>()
  const asked: Program[] = []
  const statuses: Record<string, number> = {}
  let isOver = false
  const loading = load({
    ledger,
    clients: CLIENTS,
    round: 0,
    rest: REST,
    to(client) {
      const running = programs.filter(program => !killed.has(program))
      asked[client] = running[client % running.length]!
      return asked[client].baseUrl
    },
    goesOn(answer, client) {
      const program = asked[client]!
      const status = answer?.status ?? 'none'
      statuses[status] = (statuses[status] ?? 0) + 1
      if (status === 'none') assert.ok(killed.has(program), 'an instance that nobody killed did not answer')
      else assert.ok(status === 200 || status === 500, `answered with ${status}`)
      if (status === 200) acknowledged.set(program, (acknowledged.get(program) ?? 0) + 1)
      return !isOver
    },
  })
  let hasFailed = false
  loading.catch(() => {
    hasFailed = true
  })

  const scene: Scene = {
    programs,
    async replace(place) {
      const program = programs[place]!
      killed.add(program)
      assert.equal(await program.end('SIGKILL'), null)
      programs[place] = await run(place)
    },
    async during(trouble) {
      await trouble()
      const isBack = async (program: Program) => {
        await until(async () => hasFailed || (await isHealthy(program)))
        const before = acknowledged.get(program) ?? 0
        await until(() => hasFailed || (acknowledged.get(program) ?? 0) > before)
      }
      await Promise.all(programs.map(isBack))
      if (hasFailed) await loading
    },
    async assertNothingLost() {
      isOver = true
      await loading
      t.diagnostic(`answers by status: ${JSON.stringify(statuses)}`)
      const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
      t.after(() => agent.destroy())
      const again = ledger.unclear().map(async (email, number) => {
        const answer = await signUp(programs[number % INSTANCES]!.baseUrl, agent, email)
        assert.equal(answer?.status, 200)
        ledger.note(email, answer)
      })
      await Promise.all(again)
      ledger.assertTrueOf(await contactsIn(database))
      await endLeasesAt(database)
      await instances.assertAllDelivered()
      assert.deepEqual(await Promise.all(programs.map(program => program.end('SIGTERM'))), [0, 0, 0])
    },
  }
  return scene
}

const through = (url: string, port: number): string => {
  const changed = new URL(url)
  changed.port = String(port)
  return changed.href
}

/** One round of trouble: what each of the instances has on its links. */
const rounds: readonly (readonly Fault[])[] = [
  [
    { is: 'reset', most: 4_000 },
    { is: 'slice', most: 5 },
    { is: 'black hole', loses: 'requests' },
  ],
  [
    { is: 'delay', most: 150 },
    { is: 'slow', bytesPerSecond: 20_000 },
    { is: 'black hole', loses: 'answers' },
  ],
  [{ is: 'pause' }, { is: 'reset', most: 400 }, { is: 'black hole', loses: 'both' }],
]

describe(`${INSTANCES} instances under load`, { concurrency: true, timeout: 180_000 }, () => {
  test('their links to the engines are cut, slow, mute: every answer is true, and all of them come back', async t => {
    const seed = seedOf(t)
    const random = seeded(seed)
    const redis = redisProgram === undefined ? undefined : await startRedis()
    t.after(() => redis?.remove())
    const linksTo = (port: number) =>
      Promise.all(Array.from({ length: INSTANCES }, () => startFaultProxy(port, Math.floor(random() * 2 ** 32))))
    const database = await steady.database()
    const postgresLinks = await linksTo(steady.port)
    const redisLinks = redis === undefined ? [] : await linksTo(redis.port)
    t.after(() => Promise.all([...postgresLinks, ...redisLinks].map(link => link.close())))
    const scene = await stage(t, database, place => ({
      DATABASE_URL: through(database, postgresLinks[place]!.port),
      ...(redis === undefined ? {} : { REDIS_URL: through(redis.url, redisLinks[place]!.port) }),
    }))
    for (const faults of rounds) {
      await scene.during(async () => {
        postgresLinks.forEach((link, place) => {
          link.set(faults[place]!)
        })
        // At the limiter it is another one's turn, so that no instance has all of it.
        redisLinks.forEach((link, place) => {
          link.set(faults[(place + 1) % INSTANCES]!)
        })
        await wait(LASTING)
        for (const link of [...postgresLinks, ...redisLinks]) link.set({ is: 'none' })
      })
    }
    await scene.during(async () => {
      for (let cuts = 0; cuts < 40; cuts++) {
        for (const link of postgresLinks) if (random() < 0.5) link.cut()
        await wait(random() * 100)
      }
    })
    if (redis !== undefined) {
      // Without a restart the limit is shared again.
      const log = (program: Program) => program.stdout()
      for (const program of scene.programs) {
        const last = (message: string) => log(program).lastIndexOf(message)
        await until(() => last('the shared rate limit is used again') >= last('the shared rate limit is away'))
      }
    }
    await scene.assertNothingLost()
  })

  test('PostgreSQL ends like a crash, is restarted, and stands still', async t => {
    const scene = await stage(t, await troubled.database(), () => ({}))
    for (const pause of [0, 1_000]) {
      await scene.during(async () => {
        await troubled.stop('immediate')
        await wait(pause)
        await troubled.start()
      })
    }
    await scene.during(async () => {
      troubled.pause()
      await wait(LASTING)
      troubled.goOn()
    })
    await scene.during(async () => {
      await troubled.stop('fast')
      await wait(LASTING)
      await troubled.start()
    })
    await scene.assertNothingLost()
  })

  test('Redis ends, is restarted, and stands still', { skip: redisProgram === undefined && noRedis }, async t => {
    const redis = await startRedis()
    t.after(() => redis.remove())
    const scene = await stage(t, await steady.database(), () => ({ REDIS_URL: redis.url }))
    await scene.during(async () => {
      await redis.stop()
      await wait(LASTING / 2)
      await redis.start()
    })
    await scene.during(async () => {
      redis.pause()
      await wait(LASTING / 2)
      redis.goOn()
    })
    await scene.assertNothingLost()
  })

  test(`${KILLS} times one of them is killed`, async t => {
    const random = seeded(seedOf(t))
    const scene = await stage(t, await steady.database(), () => ({}))
    for (let kill = 0; kill < KILLS; kill++) {
      await scene.during(async () => {
        await wait(random() * 250)
        await scene.replace(kill % INSTANCES)
      })
    }
    await scene.assertNothingLost()
  })
})
