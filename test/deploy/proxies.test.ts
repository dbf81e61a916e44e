import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../harness/folder.ts'
import { freePort } from '../harness/port.ts'
import { logOf, runProgram, until } from '../harness/program.ts'
import { ca, fixture } from '../harness/tls.ts'

const pathOf = (file: string) => fileURLToPath(new URL(`../../deploy/${file}`, import.meta.url))
const [cert, key] = ['first.crt', 'first.key'].map(name => fileURLToPath(fixture(name)))

/** Each text is in the configuration once, or as often as it says. */
function replaced(text: string, changes: readonly (readonly [from: string, to: string, times?: number])[]): string {
  return changes.reduce((whole, [from, to, times = 1]) => {
    assert.equal(whole.split(from).length - 1, times, `${from} in the configuration`)
    return whole.replaceAll(from, to)
  }, text)
}

interface Ports {
  readonly port: number
  readonly plain: number
  readonly upstream: number
}

/** The configuration of a proxy for other ports and a certificate for tests. */
function caddyfile({ port, plain, upstream }: Ports): string {
  const options = `{\n\tadmin off\n\thttp_port ${plain}\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n`
  const text = replaced(readFileSync(pathOf('Caddyfile'), 'utf8'), [
    ['waitlist.example.com {', `https://localhost:${port} {\n\tbind 127.0.0.1\n\ttls ${cert} ${key}`],
    ['127.0.0.1:8080', `127.0.0.1:${upstream}`],
  ])
  return options + text
}

function nginxConf({ port, plain, upstream }: Ports, folder: string): string {
  const text = replaced(readFileSync(pathOf('nginx.conf'), 'utf8'), [
    ['listen [::]:80;', ''],
    ['listen [::]:443 ssl http2;', ''],
    ['listen 80;', `listen 127.0.0.1:${plain};`],
    ['listen 443 ', `listen 127.0.0.1:${port} `],
    ['server_name waitlist.example.com;', 'server_name localhost;', 2],
    ['/etc/letsencrypt/live/waitlist.example.com/fullchain.pem', cert!],
    ['/etc/letsencrypt/live/waitlist.example.com/privkey.pem', key!],
    ['server 127.0.0.1:8080;', `server 127.0.0.1:${upstream};`],
  ])
  // The lines around it in a distribution's nginx.conf. As root, the workers must read our folder.
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(each => `${each}_temp_path ${folder};`)
  return `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
pid ${folder}/pid;
error_log stderr warn;
events {}
http {
access_log off;
${places.join('\n')}
${text.replace('access_log off;', '')}
}`
}

const proxies = [
  {
    name: 'Caddy',
    version: ['caddy', 'version'],
    configure: caddyfile,
    check: (file: string) => [
      ['caddy', 'validate', '--config', pathOf('Caddyfile'), '--adapter', 'caddyfile'],
      ['caddy', 'fmt', '--diff', pathOf('Caddyfile')],
      ['caddy', 'validate', '--config', file, '--adapter', 'caddyfile'],
    ],
    start: (file: string) => ['caddy', 'run', '--config', file, '--adapter', 'caddyfile'],
  },
  {
    name: 'nginx',
    version: ['nginx', '-v'],
    configure: nginxConf,
    check: (file: string) => [['nginx', '-t', '-c', file, '-e', 'stderr']],
    start: (file: string) => ['nginx', '-c', file, '-e', 'stderr'],
  },
] as const

for (const { name, version, configure, check, start } of proxies) {
  const skip = spawnSync(version[0], version.slice(1)).status !== 0 && `there is no ${version[0]} here`

  test(`${name} accepts its configuration, and no visitor chooses their address by X-Forwarded-For`, {
    skip,
  }, async t => {
    const settings = { BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1', RATE_LIMIT: '1' }
    const program = await runProgram(t, settings, { cwd: temporaryFolder(t) })
    const upstream = Number(new URL(String(logOf(program)[0]!.listening)).port)
    const ports = { port: await freePort(), plain: await freePort(), upstream }
    const folder = temporaryFolder(t)
    const file = join(folder, 'configuration')
    writeFileSync(file, configure(ports, folder))
    const env = { PATH: process.env.PATH, HOME: folder }
    for (const [command, ...args] of check(file)) execFileSync(command!, args, { env, stdio: 'pipe' })

    const [command, ...args] = start(file)
    const proxy = spawn(command!, args, { env, stdio: 'ignore' })
    const ended = once(proxy, 'close')
    t.after(() => {
      proxy.kill('SIGTERM')
      return ended
    })
    const signUp = (localAddress: string, forwarded?: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = {
          'content-type': 'application/json',
          host: 'localhost',
          ...(forwarded && { 'x-forwarded-for': forwarded }),
        }
        const options = { host: '127.0.0.1', port: ports.port, servername: 'localhost', ca, agent: false }
        request({ ...options, method: 'POST', path: '/api/waitlist', localAddress, headers })
          .on('response', response => resolve(response.resume().statusCode!))
          .on('error', reject)
          .end('{}')
      })
    await until(() =>
      signUp('127.0.0.9').then(
        () => true,
        () => false,
      ),
    )
    assert.equal(await signUp('127.0.0.2'), 400)
    for (const forged of ['192.0.2.1', '192.0.2.2, 10.0.0.1', '127.0.0.3', 'unknown']) {
      assert.equal(await signUp('127.0.0.2', forged), 429, forged)
    }
    assert.equal(await signUp('127.0.0.3', '127.0.0.2'), 400, 'nobody else pays for it')
  })
}
