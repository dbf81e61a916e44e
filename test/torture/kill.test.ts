import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { isSlow, seeded, seedOf, skipSlow } from '../harness/environment.ts'
import { underLoad, webhookSecret } from '../harness/instances.ts'
import { assertDelivered, load, visit } from '../harness/load.ts'
import { startPostgres } from '../harness/postgres.ts'
import { type Program, spawnProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { assertKept, type Fixture, openFixture } from './fixture.ts'

/** Milliseconds, more than a start takes. */
const START = 400

const KILLS = isSlow ? 12 : 2

test(`killed ${KILLS} times under load, it keeps every acknowledged signup, once, with one event under one id`, async t => {
  const fixture = openFixture(t)
  const { folder, path, ledger, random } = fixture
  let answersAll = false
  const receiver = await startReceiver(t, () => ({ status: answersAll || random() < 0.9 ? 204 : 503 }))
  const env = { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret, LOG_LEVEL: 'debug' }
  for (let round = 0; round < KILLS; round++) {
    // Now and then while it starts.
    if (round % 6 === 5) {
      const starting = spawnProgram(t, env, { cwd: folder, args: ['serve'] })
      await wait(random() * START)
      starting.process.kill('SIGKILL')
      await starting.exited
      continue
    }
    const program = await fixture.start(env)
    await killUnderLoad(program, fixture, round)
    assert.doesNotMatch(program.stdout(), /zebulon|quixote/i, 'no visitor in the log')
    assertKept(fixture)
  }
  answersAll = true
  // As time would do it: what was in flight is attempted again.
  withDatabase(path, database => database.exec("update delivery set due_at = 0 where state = 'waiting'"))
  const last = await fixture.start(env)
  assert.equal((await visit(last, ledger.some()))?.alreadyExisted, true)
  const waiting = "select 1 from delivery where state = 'waiting'"
  await until(() => withDatabase(path, database => database.prepare(waiting).get()) === undefined)
  assertKept(fixture)
  assertDelivered(contactsIn(path), receiver.received)
  assert.equal(await last.end('SIGTERM'), 0)
})

/** At any moment after the first of up to 200 signups. */
async function killUnderLoad(program: Program, { ledger, random }: Fixture, round: number): Promise<void> {
  const killedAfter = ledger.acknowledged + 1 + Math.floor(random() * 200)
  const isTime = Promise.withResolvers<void>()
  const loading = load({
    ledger,
    clients: 8,
    round,
    to: () => program.baseUrl,
    goesOn(answer) {
      if (answer !== null) assert.equal(answer.status, 200)
      if (ledger.acknowledged >= killedAfter) isTime.resolve()
      return answer !== null
    },
  })
  await Promise.race([isTime.promise, loading])
  await wait(random() * 20)
  assert.equal(await program.end('SIGKILL'), null)
  await loading
}

const ROUNDS = 4

for (const victim of ['an instance', 'PostgreSQL'] as const) {
  test(`${victim} is killed ${ROUNDS} times below three instances: nothing is lost or doubled, and all recover`, {
    skip: skipSlow,
  }, async t => {
    const random = seeded(seedOf(t))
    const server = await startPostgres()
    t.after(() => server.remove())
    const { replace, during, assertNothingLost } = await underLoad(t, await server.database())
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
