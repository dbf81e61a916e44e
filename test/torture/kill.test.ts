import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { isSlow, seeded, seedOf } from '../harness/environment.ts'
import { underLoad, webhookSecret } from '../harness/instances.ts'
import { killUnderLoad } from '../harness/kill.ts'
import { signUp } from '../harness/load.ts'
import { startPostgres } from '../harness/postgres.ts'
import { spawnProgram } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { answersEarly, changedCopy } from './builds.ts'
import { allDelivered, assertKept, makeDue, openScene } from './scene.ts'

/** Milliseconds, more than a start takes. */
const START = 400

/** Kills a service on SQLite again and again, every sixth time while it starts. */
async function killRepeatedly(t: TestContext, kills: number, entry?: string): Promise<void> {
  const scene = openScene(t)
  const { folder, ledger, random } = scene
  let answersAll = false
  const receiver = await startReceiver(t, () => ({ status: answersAll || random() < 0.9 ? 204 : 503 }))
  const env = { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret, LOG_LEVEL: 'debug' }
  const options = entry === undefined ? {} : { entry }
  for (let round = 0; round < kills; round++) {
    if (round % 6 === 5) {
      const starting = spawnProgram(t, { ...env, PORT: '0' }, { cwd: folder, args: ['serve'], ...options })
      await wait(random() * START)
      starting.process.kill('SIGKILL')
      await starting.exited
      continue
    }
    const program = await scene.start(env, options)
    await killUnderLoad(program, { ledger, round, random, most: 200 })
    assert.doesNotMatch(program.stdout(), /zebulon|quixote/i, 'no name and no address in the log')
    assertKept(scene)
  }
  answersAll = true
  makeDue(scene)
  const last = await scene.start(env, options)
  const agent = new Agent()
  assert.deepEqual(await signUp(last.baseUrl, agent, ledger.some()), { status: 200, alreadyExisted: true })
  await allDelivered(scene)
  assertKept(scene, receiver.received)
  assert.equal(await last.end('SIGTERM'), 0)
}

const KILLS = isSlow ? 18 : 2

test(`killed ${KILLS} times under load, it keeps every acknowledged signup, once, with one event under one id`, t =>
  killRepeatedly(t, KILLS))

test('a build that answers before it commits is caught by the same test', {
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const entry = changedCopy(t, answersEarly)
  await assert.rejects(killRepeatedly(t, 3, entry), /acknowledged, and not in the database/)
})

const ROUNDS = 6

for (const victim of ['an instance', 'PostgreSQL'] as const) {
  test(`${victim} is killed ${ROUNDS} times below three instances: nothing is lost or doubled, and all recover`, {
    skip: !isSlow && 'it takes half a minute; it runs in .ci/run',
  }, async t => {
    const random = seeded(seedOf(t))
    const server = await startPostgres()
    t.after(() => server.remove())
    const { replace, during, assertNothingLost } = await underLoad(t, await server.database(), {
      instances: 3,
      rest: 10,
    })
    for (let round = 0; round < ROUNDS; round++) {
      await during(async () => {
        await wait(random() * 250)
        if (victim === 'an instance') return replace(Math.floor(random() * 3))
        await server.stop('kill')
        await wait(random() * 1_000)
        await server.start()
      })
    }
    await assertNothingLost()
  })
}
