import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../harness/folder.ts'
import { runProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { noStrace } from '../harness/strace.ts'
import { http1, json, pairIn, someone } from '../harness/tls.ts'
import { deployed, missing, replaced } from './proxy.ts'

const noSystemd = missing('systemd-analyze', '--version')
const unit = readFileSync(deployed('waitlist.service'), 'utf8')
const valuesOf = (name: string) => [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value!)

/** The unit, where this machine has Node.js, with or without what lets it have its own certificate. */
function installed(t: TestContext, hasTls: boolean): string {
  const folder = temporaryFolder(t)
  const file = join(folder, 'waitlist.service')
  writeFileSync(file, replaced(unit, '/usr/bin/node', process.execPath))
  if (hasTls) {
    mkdirSync(`${file}.d`)
    copyFileSync(deployed('waitlist-tls.conf'), join(`${file}.d`, 'tls.conf'))
  }
  return file
}

const analyze = (...args: string[]) => promisify(execFile)('systemd-analyze', args)

for (const [what, hasTls, most] of [
  ['behind a proxy', false, 15],
  ['with its own certificate', true, 18],
] as const) {
  test(`systemd takes the unit ${what}, and sees it exposed at ${most / 10} of 10 at most`, {
    skip: noSystemd ?? false,
  }, async t => {
    const file = installed(t, hasTls)
    const { stdout, stderr } = await analyze('verify', '--man=no', file)
    assert.equal(stdout + stderr, '')
    // Exit code 1 above the threshold, which is in tenths.
    await analyze('security', '--offline=yes', `--threshold=${most}`, file)
  })
}

test('systemd waits longer for a stop than it may take, and has no reload that would be a stop', () => {
  assert.deepEqual(valuesOf('TimeoutStopSec'), ['12s'])
  assert.deepEqual(valuesOf('KillSignal'), ['SIGTERM'])
  assert.deepEqual(valuesOf('ExecReload'), [])
})

test('a crash leaves no image of its memory, where names, addresses and secrets are', () => {
  assert.deepEqual(valuesOf('LimitCORE'), ['0'])
})

/** The system calls of a filter, with the sets in it resolved. */
function callsIn(filter: string): Set<string> {
  const calls = new Set<string>()
  for (const item of filter.split(/\s+/)) {
    if (!item.startsWith('@')) calls.add(item)
    else for (const call of callsIn(membersOf(item))) calls.add(call)
  }
  return calls
}

const membersOf = (set: string): string =>
  execFileSync('systemd-analyze', ['syscall-filter', set], { encoding: 'utf8' })
    .split('\n')
    .slice(1)
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#'))
    .join(' ')

test('it starts, takes signups over TLS and stops where every other system call is refused', {
  skip: (noSystemd ?? noStrace()) || (!isSlow && 'slow: WAITLIST_SLOW_TESTS=1'),
  timeout: 120_000,
}, async t => {
  const [first, second, ...more] = valuesOf('SystemCallFilter')
  assert.deepEqual(more, [])
  const allowed = callsIn(first!)
  for (const call of callsIn(second!.slice(1))) allowed.delete(call)
  const cwd = temporaryFolder(t)
  const trace = join(cwd, 'trace')
  // A question mark, since not every machine has each of them.
  const allBut = (calls: Iterable<string>) => `!${Array.from(calls, call => `?${call}`).join(',')}`
  const watched = allBut([...allowed].filter(call => call !== 'socket'))
  const refused = `${allBut(allowed)}:error=EPERM`
  const through = ['strace', '-D', '-f', '-qq', '-o', trace, '-e', `trace=${watched}`, '-e', `inject=${refused}`]
  const env = { PORT: '0', ADMIN_PORT: '0', ...pairIn(t).env }
  const program = await runProgram(t, env, { cwd, through })
  assert.equal((await http1(program.baseUrl, '/api/waitlist', 'POST', json, someone('ada'))).status, 200)
  assert.equal((await http1(program.baseUrl, '/api/health')).status, 200)
  assert.equal(await program.end('SIGTERM'), 0)
  const families = new Set(readFileSync(trace, 'utf8').match(/(?<=\bsocket\()AF_\w+/g))
  assert.ok(families.has('AF_INET'))
  const [open] = valuesOf('RestrictAddressFamilies')
  for (const family of families) assert.ok(open!.split(' ').includes(family), family)
})
