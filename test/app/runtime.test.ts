import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bundled, components, lacking, runtimeWarnings, securityReleases } from '../../src/app/runtime.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { npmSettings } from '../harness/npm-start.ts'
import { complaintsIn, logOf, runProgram, spawnProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const bin = join(root, 'bin/waitlist.js')
const { engines, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const oldest = engines.node.slice(2) as string

/** The version just before one: of the same line if that has one. */
function before(version: string): string {
  const [major, minor, patch] = version.split('.').map(Number)
  if (patch! > 0) return `${major}.${minor}.${patch! - 1}`
  return minor! > 0 ? `${major}.${minor! - 1}.999` : `${major! - 1}.999.999`
}

test('whoever has the version that fixes something lacks nothing of it, and the version before lacks it', () => {
  for (const release of securityReleases) {
    const { key } = components[release.of]
    for (const fix of release.fixed) {
      assert.equal(lacking({ [key]: fix }).includes(release), false, `${release.of} ${fix}`)
      assert.ok(lacking({ [key]: before(fix) }).includes(release), `${release.of} ${before(fix)}`)
    }
  }
  assert.deepEqual(lacking({ node: '99.0.0', openssl: '99.0.0', sqlite: '99.0.0' }), [])
})

test('a line that was given up lacks what came later, in one sentence for all', () => {
  assert.deepEqual(runtimeWarnings({ node: '25.9.0', openssl: '3.5.8', sqlite: '3.53.1' }), [
    'This Node.js lacks security fixes: SQLite 3.53.1 those of 2026-06-03, Node.js 25.9.0 those of 2026-07-29. Update it to the newest release of a supported line.',
  ])
  assert.deepEqual(runtimeWarnings({ node: '26.5.1' }), [], 'a library of the system is not judged')
})

test('the list is in order, and says nothing of the time after its vendors were read', () => {
  const dates = securityReleases.map(({ date }) => date)
  assert.deepEqual(dates, dates.toSorted())
  for (const { of, date, fixed, ids } of securityReleases) {
    assert.match(date, /^\d{4}-\d\d-\d\d$/)
    assert.ok(date <= components[of].readUntil, `${of} ${date}`)
    assert.ok(fixed.length > 0 && fixed.every(version => /^\d+\.\d+\.\d+$/.test(version)), `${of} ${date}`)
    assert.ok(ids.length > 0 && ids.every(id => /^CVE-\d{4}-\d{4,}$/.test(id)), `${of} ${date}`)
    assert.equal(new Set(ids).size, ids.length)
  }
})

test('the Node.js of this project lacks nothing that is on the list, nor does the oldest that is allowed', () => {
  assert.equal(process.versions.node, devDependencies.node)
  assert.deepEqual(lacking(bundled), [])
  assert.deepEqual(lacking({ node: oldest }), [])
})

test('the documents name the oldest Node.js that package.json allows', () => {
  const said = ['docs/deploy.md', 'docs/engineering/design.md'].flatMap(path => [
    ...readFileSync(join(root, path), 'utf8').matchAll(/(?:Node\.js|machine needs) (\d+\.\d+) or newer/g),
  ])
  assert.ok(said.length >= 5)
  for (const [sentence, version] of said) assert.equal(`${version}.0`, oldest, sentence)
})

test('a Node.js that is older than package.json allows is told so', async t => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'bin'))
  copyFileSync(bin, join(folder, 'bin/waitlist.js'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', engines: { node: '>=99.3.0' } }))
  const { exited, stderr } = spawnProgram(t, {}, { cwd: folder, entry: join(folder, 'bin/waitlist.js') })
  assert.equal(await exited, 1)
  assert.equal(stderr(), `waitlist: this is Node.js ${process.versions.node}; 99.3 or newer is needed\n`)
})

test('the start warns of a Node.js that lacks security fixes, once', {
  skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
  timeout: 120_000,
}, async t => {
  const cwd = temporaryFolder(t)
  execFileSync('npm', ['install', '--silent', '--no-save', '--prefix', cwd, 'node@26.5.0'], {
    env: { ...process.env, ...npmSettings },
  })
  const program = await runProgram(
    t,
    { DATABASE_URL: 'sqlite:list.db' },
    { cwd, executable: join(cwd, 'node_modules/node/bin/node'), args: [bin, 'serve'] },
  )
  assert.equal(await program.end('SIGTERM'), 0)
  const told = complaintsIn(logOf(program)).filter(({ msg }) => String(msg).startsWith('This Node.js lacks'))
  assert.equal(told.length, 1)
  assert.match(String(told[0]!.msg), /Node\.js 26\.5\.0 those of 2026-07-29/)
})
