import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isSlow, noStrace } from '../harness/environment.ts'
import { broken, changedCopy } from './builds.ts'
import { Disk } from './disk.ts'
import { openScene } from './scene.ts'
import type { Call } from './trace.ts'
import { assertPromised, Promised, traced, writeDisk } from './traced.ts'

const skip = noStrace()

test('no answer leaves, and no attempt begins, before a sync that began after the commit it rests on', {
  skip,
}, async t => {
  const { early, calls } = await run(t, isSlow ? 3_000 : 200)
  const count = (is: Call['is']) => calls.filter(call => call.is === is).length
  t.diagnostic(`${count('answer')} answers, ${count('send')} attempts, ${count('sync')} syncs`)
  assert.ok(count('answer') > 200 && count('send') > 100)
  assert.deepEqual(early, { answers: 0, attempts: 0 })
})

for (const [what, edits] of Object.entries(broken)) {
  test(`a build that ${what} is caught`, { skip: skip || (!isSlow && 'it runs in .ci/run') }, async t => {
    const { early } = await run(t, 100, changedCopy(t, edits))
    assert.ok(what.startsWith('attempts') ? early.attempts > 0 : early.answers > 0)
  })
}

async function run(t: TestContext, signups: number, entry?: string) {
  const scene = openScene(t)
  const options = {
    signups,
    end: 'SIGTERM',
    round: 0,
    provider: false,
    ...(entry === undefined ? {} : { entry }),
  } as const
  const calls = await traced(scene, options)
  const disk = new Disk(join(scene.folder, 'data'))
  const every = Math.ceil(calls.filter(({ is }) => is === 'send').length / 200)
  const synced = new Set<string>()
  let written: Extract<Call, { is: 'write' }>[] = []
  let attempts = 0
  const early = { answers: 0, attempts: 0 }
  for (const call of calls) {
    disk.apply(call)
    if (call.is === 'write') written.push(call)
    if (call.is === 'sync') {
      const isCovered = ({ file, ended }: (typeof written)[number]) => file === call.file && ended < call.began
      for (const { bytes } of written.filter(isCovered)) {
        for (const [email] of bytes.toString('latin1').matchAll(/(?:own|shared)-[\d-]+@quixote\.example/g)) {
          synced.add(email)
        }
      }
      written = written.filter(write => !isCovered(write))
    }
    if (call.is === 'answer' && call.status === 200 && call.email !== undefined && !synced.has(call.email)) {
      early.answers++
    }
    if (call.is === 'send' && attempts++ % every === 0) {
      const promised = new Promised()
      promised.note(call)
      try {
        assertPromised(writeDisk(scene, disk.after('all lost', scene.random)), promised, 'then')
      } catch {
        early.attempts++
      }
    }
  }
  return { calls, early }
}
