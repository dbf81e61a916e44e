import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { exitInTime } from '../harness/exit.ts'
import { visit } from '../harness/load.ts'
import { hasSaid, type Program, until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { assertOnce, CREATE, completed, HOOK, type Scene, SEND, stage } from './provider.scene.ts'

const SIGNUPS = 30

const crowd = (program: Program) =>
  Array.from({ length: SIGNUPS }, (_, i) => visit(program, `zebulon${i}@quixote.example`))

/** It ends by itself within the 10 seconds that orchestrators wait before they kill. */
async function stop(program: Program): Promise<void> {
  program.process.kill('SIGTERM')
  assert.equal(await exitInTime(program), 0)
  assert.ok(hasSaid(program, 'stopped'), program.stdout().slice(-1_000) + program.stderr())
}

async function assertAllCompleted(scene: Scene): Promise<void> {
  scene.release()
  const program = await scene.run()
  await completed(scene)
  assert.equal(contactsIn(scene.path).length, SIGNUPS)
  assertOnce(scene)
  await stop(program)
}

describe('SIGTERM', { concurrency: true, timeout: 120_000, skip: !isSlow && 'it runs in .ci/run' }, () => {
  for (const [effect, timeout] of [
    ['before the effect', '5s'],
    ['after the effect', '20s'],
  ] as const) {
    test(`while the vendor hangs ${effect}: it ends in time, and the signups are completed after a restart`, async t => {
      const scene = await stage(t, { PROVIDER_TIMEOUT: timeout })
      scene.hold(CREATE, effect)
      const program = await scene.run()
      const answers = crowd(program)
      await until(() => scene.held() > 0 && contactsIn(scene.path).length === SIGNUPS)
      await stop(program)
      for (const answer of await Promise.all(answers)) assert.equal(answer?.status, 502)
      await assertAllCompleted(scene)
    })
  }

  for (const path of [HOOK, SEND]) {
    test(`while a delivery to ${path} hangs: it ends in time, and is repeated after a restart`, async t => {
      const scene = await stage(t)
      scene.hold(path, 'after the effect')
      const program = await scene.run()
      const answers = await Promise.all(crowd(program))
      assert.ok(answers.every(answer => answer?.alreadyExisted === false))
      await until(() => scene.held() > 0)
      await stop(program)
      await assertAllCompleted(scene)
    })
  }
})
