import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../harness/folder.ts'
import { freePort } from '../harness/port.ts'
import { logOf, type Program, runProgram, until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { http1 } from '../harness/tls.ts'
import {
  deployed,
  hasIpv6,
  missing,
  type Places,
  type ProxyKind,
  placesFor,
  promisesOfProxy,
  replaced,
  runProxy,
} from './proxy.ts'

const file = deployed('Caddyfile')
const noCaddy = missing('caddy', 'version')

function configure({ port, plainPort, upstreams, cert, key }: Places): string {
  const site = `https://localhost:${port} {
	bind 127.0.0.1 ${hasIpv6 ? '::1' : ''}
	tls ${cert} ${key}`
  const text = replaced(readFileSync(file, 'utf8'), 'waitlist.example.com {', site)
  const options = `{
	admin off
	http_port ${plainPort}
	auto_https disable_redirects
	skip_install_trust
}
`
  return options + replaced(text, '127.0.0.1:8080', `localhost:${upstreams[0]}`)
}

const caddy: ProxyKind = {
  name: 'Caddy',
  missing: noCaddy,
  configure,
  behindCdn: {
    configure: (text, cdn) =>
      replaced(text, '\t\ttransport http {', `\t\ttrusted_proxies ${cdn}/32\n\t\ttransport http {`),
    trust: '2',
  },
  command: file => ['caddy', 'run', '--config', file, '--adapter', 'caddyfile'],
  ends: 'SIGTERM',
  kills: 'SIGKILL',
}

test('Caddy takes deploy/Caddyfile as it is, and would format it no other way', { skip: noCaddy ?? false }, async t => {
  const env = { PATH: process.env.PATH, HOME: temporaryFolder(t) }
  const run = (...args: string[]) => promisify(execFile)('caddy', args, { env })
  // Each fails by its exit code.
  await run('validate', '--config', file, '--adapter', 'caddyfile')
  await run('fmt', '--diff', file)
})

const write = (text: string, folder: string): string => {
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, text)
  return file
}

promisesOfProxy(caddy, write)

describe('with the lines for several instances', {
  skip: noCaddy ?? (!isSlow && 'slow: WAITLIST_SLOW_TESTS=1'),
  timeout: 60_000,
}, () => {
  test('an instance that stops gets no visitors any more, and gets them again once it is back', async t => {
    const ports = [await freePort(), await freePort()]
    const env = { BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1', LOG_LEVEL: 'debug' }
    const start = (port = 0) => runProgram(t, { ...env, PORT: String(port) }, { cwd: temporaryFolder(t) })
    const [first, second] = await Promise.all(ports.map(start))
    const places = await placesFor(t, ...ports)
    const lines = readFileSync(file, 'utf8').match(/^\t\t# (?:to|health_\w+) .*$/gm)!
    assert.equal(lines.length, 3)
    let text = configure(places)
    for (const line of lines) text = replaced(text, line, line.replace('# ', ''))
    text = replaced(text, '10.0.0.1:8080 10.0.0.2:8080', `localhost:${ports[1]}`)
    const { baseUrl } = await runProxy(t, caddy, places, write(text, places.folder))
    const path = '/api/waitlist'
    const asked = (program: Program) =>
      logOf(program).filter(line => line.msg === 'request' && line.path === path).length
    const visit = async () => (await http1(baseUrl, path)).status
    const bothAreUsed = (programs: Program[]) =>
      until(async () => (await visit()) === 200 && programs.every(program => asked(program) > 0))
    await bothAreUsed([first!, second!])
    assert.equal(await first!.end('SIGTERM'), 0)
    for (let row = 0; row < 20; ) row = (await visit()) === 200 ? row + 1 : 0
    await bothAreUsed([await start(ports[0]), second!])
  })
})
