import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { withDatabase } from '../harness/database.ts'
import { runCommand as run } from '../harness/program.ts'
import { scene } from './contacts.scene.ts'

const name = 'Cyd \u202Eev\u2066il\u{E0041} 👩‍💻'
const campaign = 'spring\u202Egnp.exe\u200F'
const CONTROLLING = /(?![\r\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

test('what strangers typed turns the order of no letters, and stays the same to a program', {
  timeout: 60_000,
}, async t => {
  const { cwd } = await scene(t)
  withDatabase(join(cwd, 'data', 'waitlist.db'), database =>
    database
      .prepare(`update contact set name = ?, source = ? where email = 'cyd@example.com'`)
      .run(name, JSON.stringify({ utm_campaign: campaign })),
  )
  for (const args of [
    ['person', 'cyd@example.com'],
    ['list', '--json', '--search', 'cyd'],
    ['export', '--format', 'json', '--search', 'cyd'],
  ]) {
    const { stdout } = await run(t, cwd, args)
    assert.doesNotMatch(stdout, CONTROLLING, args.join(' '))
    const value = JSON.parse(stdout)
    const contact = value.contact ?? value
    assert.deepEqual([contact.name, contact.source.utm_campaign], [name, campaign])
  }
  if (process.platform !== 'linux') return t.diagnostic('no terminal is made here')
  const entry = fileURLToPath(new URL('../../bin/waitlist.js', import.meta.url))
  const command = `'${process.execPath}' '${entry}' export`
  const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], { cwd, encoding: 'utf8', timeout: 30_000 })
  assert.match(stdout, /,Cyd ev il 👩‍💻,cyd@example\.com,.*,spring gnp\.exe ,/)
  assert.doesNotMatch(stdout, CONTROLLING)
})
