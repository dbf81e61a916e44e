import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { answersEarly, changedCopy } from '../torture/build.ts'
import { readOptions } from '../torture/options.ts'
import { names } from '../torture/scenarios.ts'
import { temporaryFolder } from './harness/folder.ts'
import { isSlow } from './harness/slow.ts'

const root = new URL('../', import.meta.url)

/** Runs the command to its end, with a folder for its files. */
async function torture(t: TestContext, ...args: string[]) {
  const folder = temporaryFolder(t)
  const run = spawn(process.execPath, [fileURLToPath(new URL('torture/run.ts', root)), ...args], {
    env: { PATH: process.env.PATH, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.after(() => run.kill('SIGKILL'))
  const exited = new Promise(resolve => run.once('exit', resolve))
  const said = await text(run.stdout!)
  return { said, code: await exited, left: readdirSync(folder).filter(name => name.startsWith('waitlist-')) }
}

test('every scenario is listed with its promise', {
  skip: !isSlow && 'it runs in .ci/run',
  concurrency: true,
}, async t => {
  const { said, code } = await torture(t, '--list')
  assert.equal(code, 0)
  const listed = said.trimEnd().split('\n')
  assert.deepEqual(
    listed.map(line => line.split(': ')[0]),
    names,
  )
  for (const line of listed) assert.match(line, /^\S+: [A-Z].{20,}\.$/)
})

test('a build that answers before it commits is caught when it is killed, and told with its seed', {
  skip: !isSlow && 'it runs in .ci/run, before the torture itself',
}, async t => {
  const broken = changedCopy(undefined, temporaryFolder(t), answersEarly)
  const options = ['--only', 'sqlite.kill', '--seed', '7', '--minutes', '0.01']
  const [theirs, ours] = await Promise.all([torture(t, ...options, '--program', broken), torture(t, ...options)])
  assert.equal(theirs.code, 1)
  assert.match(theirs.said, /^BROKEN: acknowledged, and not in the database/m)
  assert.match(
    theirs.said,
    /^sqlite\.kill broke its promise\. Again: npm run torture -- --only sqlite\.kill --seed 7 /m,
  )
  assert.equal(ours.code, 0, ours.said)
  assert.match(ours.said, /^seed 7$/m)
  assert.match(ours.said, /^\| kills \| [1-9]/m)
  assert.deepEqual([...theirs.left, ...ours.left], [])
})

test('wrong options are refused', () => {
  assert.throws(() => readOptions(['--only', 'sqlite.hug'], names), /there is no scenario sqlite\.hug/)
  assert.throws(() => readOptions(['--minutes', '0'], names), /--minutes must be a number above 0/)
  assert.throws(() => readOptions(['--seed', 'x'], names), /--seed must be a whole number/)
})
