import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.place.ts'
import { checkout } from '../harness/checkout.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { deployed } from './proxy.ts'

const page = readFileSync(fileURLToPath(new URL('../../docs/deploy.md', import.meta.url)), 'utf8')
const section = (heading: string): string => page.split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!
const blocks = (language: string, text: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block]) => block!)

test('the commands for systemd, Caddy and nginx put each file where it belongs, and its daemon is told', async t => {
  const root = temporaryFolder(t)
  const clone = checkout(t)
  const log = join(root, 'log')
  // What needs the machine itself is only written down. `sudo` is nobody else here.
  const programs = join(root, 'programs')
  mkdirSync(programs)
  for (const name of ['systemctl', 'caddy', 'nginx']) {
    writeFileSync(join(programs, name), `#!/bin/sh\necho ${name} "$@" >> ${log}\n`, { mode: 0o755 })
  }
  writeFileSync(join(programs, 'sudo'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 })
  for (const folder of ['etc/systemd/system', 'etc/caddy', 'etc/nginx/conf.d', 'var/lib/waitlist', 'opt']) {
    mkdirSync(join(root, folder), { recursive: true })
  }
  symlinkSync(dirname(deployed('waitlist.service')), join(clone, 'deploy'))
  symlinkSync(clone, join(root, 'opt/waitlist'))

  const here = (text: string) => text.replaceAll(/(?<=[ =])\/(?=(?:etc|var|opt)\/)/g, `${root}/`)
  const env = { PATH: `${programs}:${dirname(process.execPath)}:${process.env.PATH}` }
  const run = (text: string) => execFileSync('sh', ['-e', '-c', here(text)], { cwd: clone, env, stdio: 'pipe' })
  const is = (path: string, file: string) =>
    assert.equal(readFileSync(join(root, path), 'utf8'), readFileSync(join(clone, 'deploy', file), 'utf8'), path)

  const systemd = section('With systemd')
  const [start, tls] = blocks('sh', systemd)
  writeFileSync(join(root, 'etc/waitlist.env'), blocks('ini', systemd)[0]!)
  // As the service makes it.
  const path = join(root, 'var/lib/waitlist/data/waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
  await store.admit(signup('Ada Lovelace', 'ada@example.com'))
  await store.close()
  run(start!)
  assert.equal(statSync(join(root, 'etc/waitlist.env')).mode & 0o777, 0o600)
  is('etc/systemd/system/waitlist.service', 'waitlist.service')
  assert.match(readFileSync(join(clone, 'contacts.csv'), 'utf8'), /,Ada Lovelace,ada@example\.com,/)
  run(tls!)
  is('etc/systemd/system/waitlist.service.d/tls.conf', 'waitlist-tls.conf')
  run(blocks('sh', section('Behind Caddy'))[0]!)
  is('etc/caddy/Caddyfile', 'Caddyfile')
  run(blocks('sh', section('Behind nginx'))[0]!)
  is('etc/nginx/conf.d/waitlist.conf', 'nginx.conf')
  assert.deepEqual(readFileSync(log, 'utf8').replaceAll(root, '').trim().split('\n'), [
    'systemctl enable --now waitlist',
    'systemctl daemon-reload',
    'systemctl restart waitlist',
    'caddy validate --config /etc/caddy/Caddyfile',
    'systemctl reload caddy',
    'nginx -t',
    'systemctl reload nginx',
  ])
})
