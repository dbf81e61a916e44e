import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../harness/folder.ts'
import { freePort } from '../harness/port.ts'
import { runProgram, until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { someone } from '../harness/tls.ts'
import {
  deployed,
  hasIpv6,
  missing,
  type Places,
  type ProxyKind,
  placesFor,
  portOf,
  promisesOfProxy,
  replaced,
  runProxy,
  signUpFrom,
  warningsOf,
} from './proxy.ts'

const noNginx = missing('nginx', '-v')

/** The lines that nginx.conf of a distribution has around a configuration. As root, the workers must read our folder. */
const around = (server: string, folder: string): string => `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 2;
pid ${folder}/pid;
error_log stderr warn;
events {}
http {
  access_log ${folder}/access.log;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(each => `${each}_temp_path ${folder};`).join('\n  ')}
${server}
}
`

function configure({ port, plainPort, upstreams, cert, key, folder }: Places): string {
  const live = '/etc/letsencrypt/live/waitlist.example.com'
  let text = readFileSync(deployed('nginx.conf'), 'utf8')
  text = replaced(text, 'listen 80;', `listen 127.0.0.1:${plainPort};`)
  text = replaced(text, 'listen 443 ', `listen 127.0.0.1:${port} `)
  text = replaced(text, 'listen [::]:80;', hasIpv6 ? `listen [::1]:${plainPort};` : '')
  text = replaced(text, 'listen [::]:443 ssl http2;', hasIpv6 ? `listen [::1]:${port} ssl http2;` : '')
  text = replaced(text, 'server_name waitlist.example.com;', 'server_name localhost;', 2)
  text = replaced(text, `${live}/fullchain.pem`, cert)
  text = replaced(text, `${live}/privkey.pem`, key)
  return around(replaced(text, 'server 127.0.0.1:8080;', `server 127.0.0.1:${upstreams[0]};`), folder)
}

const nginx: ProxyKind = {
  name: 'nginx',
  missing: noNginx,
  configure,
  behindCdn: {
    configure: (text, cdn) =>
      replaced(text, 'access_log off;', `set_real_ip_from ${cdn}/32; real_ip_header X-Forwarded-For; access_log off;`),
    trust: '1',
  },
  command: (file, folder) => ['nginx', '-p', folder, '-c', file, '-e', 'stderr'],
  ends: 'SIGQUIT',
  // SIGKILL would leave its workers behind.
  kills: 'SIGTERM',
}

const write = (text: string, folder: string): string => {
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, text)
  return file
}

test('nginx takes deploy/nginx.conf', { skip: noNginx ?? false }, async t => {
  const places = await placesFor(t, 8080)
  const [command, ...args] = nginx.command(write(configure(places), places.folder), places.folder)
  const { stderr } = await promisify(execFile)(command, ['-t', ...args])
  assert.match(stderr, /syntax is ok/)
  // From 1.25.1 on, nginx would rather have `http2` on a line of its own.
  assert.doesNotMatch(stderr.replaceAll(/.*"listen \.\.\. http2".*/g, ''), /\[(?:warn|error|emerg)\]/)
})

promisesOfProxy(nginx, write)

describe('behind nginx', {
  skip: noNginx ?? (!isSlow && 'slow: WAITLIST_SLOW_TESTS=1'),
  timeout: 60_000,
}, () => {
  const start = (t: TestContext, env: Record<string, string> = {}) =>
    runProgram(
      t,
      { PORT: '0', BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1', ...env },
      { cwd: temporaryFolder(t) },
    )

  test('plain HTTP leads to HTTPS under the public name', async t => {
    const places = await placesFor(t, await freePort())
    await runProxy(t, nginx, places, write(configure(places), places.folder))
    const answer = await fetch(`http://127.0.0.1:${places.plainPort}/docs/api?x`, { redirect: 'manual' })
    assert.deepEqual([answer.status, answer.headers.get('location')], [308, 'https://localhost/docs/api?x'])
  })

  test('of several instances, one that cannot be connected to is passed over', async t => {
    const program = await start(t)
    const places = await placesFor(t, await freePort())
    const line = '# server 10.0.0.2:8080;'
    const text = replaced(configure(places), line, `server 127.0.0.1:${portOf(program)};`)
    const { baseUrl } = await runProxy(t, nginx, places, write(text, places.folder))
    for (let i = 0; i < 10; i++) assert.equal(await signUpFrom(baseUrl, { from: '127.0.0.2' }, someone(`ada${i}`)), 200)
  })

  test('without the line for X-Forwarded-For a visitor is believed, and the first one who forges nothing makes Waitlist say so', async t => {
    const program = await start(t, { RATE_LIMIT: '1' })
    const places = await placesFor(t, portOf(program))
    const line = 'proxy_set_header X-Forwarded-For $remote_addr;'
    const { baseUrl } = await runProxy(t, nginx, places, write(replaced(configure(places), line, ''), places.folder))
    const forge = (forwarded: string) => signUpFrom(baseUrl, { from: '127.0.0.2', forwarded }, '{}')
    assert.deepEqual(
      [await forge('192.0.2.1'), await forge('192.0.2.2')],
      [400, 400],
      'a quota for each forged address',
    )
    assert.deepEqual(warningsOf(program), [])
    const honest = (from: string) => signUpFrom(baseUrl, { from }, '{}')
    assert.deepEqual([await honest('127.0.0.2'), await honest('127.0.0.3')], [400, 429], 'they share one quota')
    await until(() => warningsOf(program).length > 0)
    assert.match(warningsOf(program).join(), /^A request came without an address in X-Forwarded-For/)
  })
})
