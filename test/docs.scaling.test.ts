import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from './harness/folder.ts'
import { noHaproxy } from './harness/haproxy.ts'

const root = new URL('../', import.meta.url)
const text = readFileSync(new URL('docs/engineering/scaling.md', root), 'utf8')

test('HAProxy takes the router', { skip: noHaproxy ?? false }, t => {
  const [, router] = /^```haproxy\n(.*?)^```$/ms.exec(text) ?? assert.fail('there is no router')
  const file = join(temporaryFolder(t), 'haproxy.cfg')
  const rest = `
defaults
  mode http
  timeout connect 2s
  timeout client 75s
  timeout server 30s
${router!.replace('frontend public', 'frontend public\n  bind 127.0.0.1:1')}
backend part0
  server one 127.0.0.1:2
backend part1
  server two 127.0.0.1:3
`
  writeFileSync(file, rest)
  const { status, stdout, stderr } = spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' })
  assert.equal(status, 0, stdout + stderr)
})
