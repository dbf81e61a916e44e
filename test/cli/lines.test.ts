import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'

const lines = new URL('../../src/cli/log.ts', import.meta.url).href
const COUNT = 30_000
/** Writes many lines, and another when it is told that there is room. */
const code = `
const { linesTo } = await import('${lines}')
const told = line => write(JSON.stringify(line).padEnd(80) + '\\n')
const { write, settled } = linesTo(1, dropped => told({ dropped }))
for (let i = 0; i < ${COUNT}; i++) told({ i })
await settled()
process.stderr.write('full')
process.stdin.once('data', () => told({})).once('end', () => process.exit(0))
`
const skip = spawnSync('prlimit', ['--version']).status !== 0 && 'it needs prlimit of util-linux'

test('lines wait for room, whole up to a bound, and then it is told how many were dropped', {
  skip,
  timeout: 60_000,
}, async t => {
  const file = join(temporaryFolder(t), 'log')
  const run = [process.execPath, '--input-type=module', '-e', code]
  // 4 KiB at most, within a line.
  const limit = 'ulimit -S -f 8 && exec "$@" > "$0"'
  const child = spawn('sh', ['-c', limit, file, ...run], { stdio: ['pipe', 'ignore', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stderr, 'data')
  assert.equal(statSync(file).size, 4096)
  spawnSync('prlimit', [`--pid=${child.pid}`, '--fsize=unlimited'])
  child.stdin.write('.')
  const lines = () => readFileSync(file, 'utf8').split('\n').slice(0, -1)
  await until(() => /dropped/.test(lines().at(-1) ?? ''))
  child.stdin.end()
  assert.deepEqual(await once(child, 'close'), [0, null])

  const told = lines().map(line => JSON.parse(line) as { i?: number; dropped?: number })
  const kept = told.slice(0, -1).map(({ i }) => i)
  assert.deepEqual(kept, [...kept.keys()])
  assert.ok(statSync(file).size < 2_000_000)
  assert.equal(kept.length + told.at(-1)!.dropped!, COUNT + 1)
})
