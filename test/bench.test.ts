import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { plots } from '../bench/plots.ts'
import { readRaw } from '../bench/raw.ts'
import { renewed } from '../bench/scaling-tables.ts'
import { temporaryFolder } from './harness/folder.ts'
import { noRedis, redisProgram } from './harness/redis.ts'

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Runs a program of the benchmark with a temporary folder of its own. */
async function run(program: string, folder: string, ...options: readonly string[]): Promise<string> {
  const env = { PATH: process.env.PATH, TMPDIR: folder }
  const { stdout } = await promisify(execFile)(process.execPath, [file(`../bench/${program}`), ...options], {
    env,
    timeout: 120_000,
  })
  const left = readdirSync(folder).filter(name => name.startsWith('waitlist-'))
  assert.deepEqual(left, [], `left behind: ${left.map(name => join(folder, name))}`)
  return stdout
}

test('the benchmark, run quickly, measures every scenario and leaves nothing behind', async t => {
  const stdout = await run('run.ts', temporaryFolder(t), '--quick')

  for (const scenario of ['health', 'new signup', 'known address', 'refused body', 'too many attempts']) {
    assert.match(stdout, new RegExp(`^\\| ${scenario} +\\| \\d+\\.\\d\\d \\(`, 'm'))
  }
  assert.match(stdout, /^\| new signup, 2,000 contacts against 1,000 +\| \d/m)
  assert.match(stdout, /^\| process start until it listens +\| \d+ ms/m)
})

test('the benchmark of several instances, run quickly, measures every setup, and its figures can be drawn', async t => {
  const folder = temporaryFolder(t)
  // PostgreSQL does not run as root; whoever it runs as must get to its files.
  chmodSync(folder, 0o711)
  const json = join(folder, 'figures.json')
  const stdout = await run('run.ts', folder, '--instances', '--quick', '--json', json)

  const raw = readRaw(readFileSync(json, 'utf8'))
  const setups = new Set(raw.samples.map(({ setup }) => setup))
  for (const setup of ['one instance', 'bare', 'one insert', 'two instances', 'two partitions'] as const) {
    assert.ok(setups.has(setup), setup)
  }
  assert.match(stdout, /^\| one instance +\| bare `node:http` +\| \d+\.\d\d \(/m)
  if (redisProgram === undefined) {
    t.diagnostic(`the limiter was left out: ${noRedis}`)
    assert.match(stdout, /^Redis: left out/m)
  } else assert.match(stdout, /^\| one instance, .*, limit in Redis +\| one instance, .* +\| \d+\.\d\d \(/m)

  const { addresses, routed, scattered } = raw.partitioned
  const sum = (contacts: readonly number[]) => contacts.reduce((a, b) => a + b)
  assert.deepEqual([sum(routed.contacts), routed.inBoth, routed.toldNew], [addresses, 0, addresses], 'by address')
  assert.ok(scattered.inBoth > 0, 'by chance an address comes to both partitions')

  // Elsewhere there is no processor time to draw.
  if (process.platform !== 'linux') return
  await run('plot.ts', folder, '--json', json, '--into', folder)
  const drawn = readdirSync(folder).filter(name => name.endsWith('.svg'))
  assert.deepEqual(drawn.sort(), ['cost.svg', 'load.svg', 'plan.svg'])
  for (const name of drawn) {
    const svg = readFileSync(join(folder, name), 'utf8')
    assert.match(svg, /<title [^>]*>[^<]+<\/title>\n<desc [^>]*>[^<]{40,}<\/desc>/, name)
    assert.match(svg, /prefers-color-scheme:dark/, name)
    assert.doesNotMatch(svg, /NaN|undefined|Infinity/, name)
    assert.ok(svg.length < 20_000, `${name} has ${svg.length} characters`)
  }
})

for (const [where, most] of [
  ['anywhere', 256],
  ['at few connections', 8],
] as const) {
  test(`a run so short that the kernel counted no processor time ${where} can be drawn`, () => {
    const raw = readRaw(readFileSync(file('../docs/figures/instances.json'), 'utf8'))
    const samples = raw.samples.map(sample => {
      if (sample.connections > most) return sample
      return { ...sample, waitlist: 0, postgres: sample.postgres && 0, redis: sample.redis && 0 }
    })
    for (const svg of Object.values(plots({ ...raw, samples }))) assert.doesNotMatch(svg, /NaN|undefined|Infinity/)
  })
}

test('docs/scaling.md and its plots are what the raw figures in docs/figures say', () => {
  const read = (path: string) => readFileSync(file(`../docs/${path}`), 'utf8')
  const raw = readRaw(read('figures/instances.json'))
  const hint = 'run node bench/plot.ts'
  for (const [name, svg] of Object.entries(plots(raw))) assert.equal(read(`figures/${name}`), svg, hint)
  assert.equal(read('scaling.md'), renewed(read('scaling.md'), raw), hint)
  assert.equal(read('scaling.md').match(/<!-- figures: /g)?.length, 11)
})
