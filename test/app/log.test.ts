import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../harness/folder.ts'

/** Logs many lines at once, one more on input, and a fatal one at the end of its input. */
const codeOf = (count: number) => `
import { pbkdf2 } from 'node:crypto'
const { openLog } = await import('${new URL('../../src/app/log.ts', import.meta.url)}')
const log = openLog('info')
for (let i = 0; i < ${count}; i++) log.info({ i })
setTimeout(() => process.stderr.write('written'), 200)
process.stdin.on('data', () => {
  log.info({ more: true })
  log.flush(() => process.stderr.write('flushed'))
}).once('end', () => {
  // Nothing is written by the one thread that there is.
  pbkdf2('', '', 10_000_000, 64, 'sha512', () => {})
  log.fatal({ last: true })
  process.kill(process.pid, 'SIGKILL')
})`
const env = { ...process.env, UV_THREADPOOL_SIZE: '1' }
const run = (count: number) => [process.execPath, '--input-type=module', '-e', codeOf(count)]
/** Several times what may wait. */
const COUNT = 30_000
const linesIn = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line) as Record<string, unknown>)

test('nothing is missing of a log that is written, not even where the process kills itself after a fatal line', async t => {
  const file = join(temporaryFolder(t), 'log')
  const child = spawn('sh', ['-c', 'exec "$@" > "$0"', file, ...run(1_000)], { stdio: ['pipe', 'ignore', 'pipe'], env })
  await once(child.stderr, 'data')
  child.stdin.end()
  assert.deepEqual(await once(child, 'close'), [null, 'SIGKILL'])
  const lines = linesIn(readFileSync(file, 'utf8'))
  assert.equal(lines.length, 1_001)
  assert.equal(lines.at(-1)!.last, true)
})

const noLimits = spawnSync('prlimit', ['--version']).status !== 0 && 'it needs prlimit of util-linux'

test('where a log cannot be written its lines wait, up to a bound, and the process still ends', {
  skip: noLimits,
}, async t => {
  const file = join(temporaryFolder(t), 'log')
  // 4 KiB at most, within a line.
  const start = async () => {
    const limit = 'ulimit -S -f 8 && exec "$@" > "$0"'
    const child = spawn('sh', ['-c', limit, file, ...run(COUNT)], { stdio: ['pipe', 'ignore', 'pipe'], env })
    t.after(() => child.kill('SIGKILL'))
    await once(child.stderr, 'data')
    assert.equal(statSync(file).size, 4096)
    return child
  }
  const full = await start()
  full.stdin.end()
  assert.deepEqual(await once(full, 'close'), [null, 'SIGKILL'])

  const child = await start()
  spawnSync('prlimit', [`--pid=${child.pid}`, '--fsize=unlimited'])
  child.stdin.write('.')
  await once(child.stderr, 'data')
  child.stdin.end()
  await once(child, 'close')
  const text = readFileSync(file, 'utf8')
  assert.ok(text.length > 900_000, 'lines that waited were lost')
  assert.ok(text.length < 1_200_000, 'lines waited without a bound')
  assert.match(text, /"last":true\}\n$/)
})
