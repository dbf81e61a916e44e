import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, createServer as createRelay } from 'node:net'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { operatorOf } from '../../src/app/database.ts'
import { checkPublicAddress } from '../../src/app/public-address.ts'
import { readConfig } from '../../src/config/config.ts'
import { unavailable, unhealthy } from '../../src/http/wire/refusals.ts'
import { inDays, selfSigned } from '../harness/certificate.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { listening } from '../harness/listening.ts'
import { freePort } from '../harness/port.ts'
import { spawnProgram } from '../harness/program.ts'
import { startService, type TestService } from '../harness/service.ts'
import { ca, fixture } from '../harness/tls.ts'

const pair = { cert: readFileSync(fixture('first.crt')), key: readFileSync(fixture('first.key')) }
const expired = selfSigned({ kind: 'ec', name: 'expired', from: inDays(-9), to: inDays(-1) })
const elsewhere = selfSigned({ kind: 'ec', name: 'elsewhere' })
setDefaultCACertificates([...getCACertificates('default'), String(ca[0]), expired.cert, elsewhere.cert])

type Fields = Readonly<Record<string, string | undefined>>

/** What a proxy does with a request. */
interface Proxying {
  /** X-Forwarded-For as it passes it on; undefined: without. */
  readonly forwarded?: (given: string | undefined) => string | undefined
  /** Fields of the request that it replaces, and of the answer that it adds. */
  readonly replaces?: Fields
  readonly adds?: Readonly<Record<string, string>>
  /** Instead of passing it on. */
  readonly answers?: (request: IncomingMessage, response: ServerResponse) => boolean
}

const replacing = () => '127.0.0.1'
const page = 'https://example.com'
/** Nobody listens there (RFC 863 says who might). */
const REFUSES = 9

/** A TLS proxy; where it leads to is said later. */
async function proxy(t: TestContext, { forwarded = replacing, replaces, adds, answers }: Proxying = {}, tls = pair) {
  let upstream = REFUSES
  const server = createTlsServer(tls, (incoming, response) => {
    if (answers?.(incoming, response)) return
    const headers: NodeJS.Dict<string | string[]> = { ...incoming.headers, ...replaces }
    delete headers['x-forwarded-for']
    const told = forwarded(incoming.headers['x-forwarded-for'] as string | undefined)
    if (told !== undefined) headers['x-forwarded-for'] = told
    for (const name of Object.keys(headers)) if (headers[name] === undefined) delete headers[name]
    const { method, url: path } = incoming
    incoming.pipe(
      request({ host: '127.0.0.1', port: upstream, method, path, headers, agent: false })
        .on('response', answer => answer.pipe(response.writeHead(answer.statusCode!, { ...answer.headers, ...adds })))
        .on('error', () => response.writeHead(502, { server: 'a proxy' }).end('Bad Gateway')),
    )
  })
  const { port } = new URL(await listening(t, server as never))
  return {
    baseUrl: `https://localhost:${port}`,
    leadTo(port: number) {
      upstream = port
    },
  }
}

const hooks: (() => unknown)[] = []
after(async () => {
  for (const hook of hooks) await hook()
})

/** Services that run, by the settings that make a difference to who asks. */
const services = new Map<string, Promise<TestService>>()

function serviceWith(env: Record<string, string>): Promise<TestService> {
  const key = JSON.stringify(env)
  if (!services.has(key))
    services.set(key, startService({ after: hook => void hooks.push(hook as () => unknown) }, env))
  return services.get(key)!
}

/** What is found out through `baseUrl`, for a service that runs. */
async function found(baseUrl: string, env: Record<string, string> = {}, leadTo?: (port: number) => void) {
  const { origin, databasePath } = await serviceWith(env)
  const { port } = new URL(origin)
  leadTo?.(Number(port))
  return trialsOf({ ...env, BASE_URL: baseUrl, DATABASE_URL: `sqlite:${databasePath}`, PORT: port })
}

async function trialsOf(env: Record<string, string>) {
  const result = await readConfig({ HOST: '127.0.0.1', ...env })
  assert.ok('config' in result, JSON.stringify(result))
  const operator = await operatorOf(result.config)
  const secret = () => operator.secret('check').catch(() => null)
  const results = await checkPublicAddress(result.config, secret)
  return {
    told: (what: string) => results.filter(result => result.what === what).map(({ is, why }) => `${is}: ${why}`)[0],
  }
}

const through = async (t: TestContext, proxying: Proxying, env: Record<string, string> = {}) => {
  const { baseUrl, leadTo } = await proxy(t, proxying)
  return found(baseUrl, env, leadTo)
}

describe('the public address is tried the way of a visitor', { timeout: 120_000, concurrency: true }, () => {
  test('a proxy that does all of it: the service, whom it sees, and each page', async t => {
    const { told } = await through(t, {}, { TRUST_PROXY: '1', CORS_ORIGINS: `${page},http://localhost:3000` })
    assert.match(told('public address')!, /^ok: https:\/\/localhost:\d+: the service answers$/)
    assert.equal(told('client address'), 'ok: the service sees this check come from 127.0.0.1')
    assert.equal(told(`page ${page}`), 'ok: it may send signups')
    assert.equal(told('page http://localhost:3000'), 'ok: it may send signups')
  })

  test('a certificate of its own, without a proxy', async () => {
    const port = await freePort()
    const tls = { TLS_CERT_FILE: fixture('first.crt').pathname, TLS_KEY_FILE: fixture('first.key').pathname }
    const { told } = await found(`https://localhost:${port}`, { PORT: String(port), ...tls })
    assert.match(told('public address')!, /^ok: /)
    assert.equal(told('client address'), 'ok: the service sees this check come from 127.0.0.1')
  })

  const clients: readonly [what: string, proxying: Proxying, trust: string, why: RegExp][] = [
    [
      'a proxy that tells no address',
      { forwarded: given => given },
      '1',
      /^wrong: .* from 127\.0\.0\.1\. A request came without an/,
    ],
    ['a proxy too few', {}, '2', /^wrong: .*names fewer addresses than TRUST_PROXY counts/],
    ['a proxy that is not trusted', {}, '', /^wrong: .*let TRUST_PROXY count or name it/],
    [
      'a proxy that is not trusted and tells nothing',
      { forwarded: () => undefined },
      '',
      /^wrong: .*which is the proxy/,
    ],
    [
      'a proxy in front of the one that is trusted',
      { forwarded: () => '198.51.100.7, 203.0.113.9' },
      '1',
      /^wrong: .*from 203\.0\.113\.9, through 127\.0\.0\.1, a proxy that speaks for 198\.51\.100\.7/,
    ],
    [
      'a proxy that believes what visitors say',
      { forwarded: given => given ?? '127.0.0.1' },
      '1',
      /^wrong: .*believes a forged/,
    ],
    [
      'a proxy that adds to what visitors say',
      { forwarded: given => [given, '203.0.113.9'].filter(Boolean).join(', ') },
      '1',
      /^ok: the service sees this check come from 203\.0\.113\.9, through 127\.0\.0\.1$/,
    ],
    [
      'this machine as one of the trusted proxies',
      { forwarded: given => [given, '127.0.0.1'].filter(Boolean).join(', ') },
      '127.0.0.0/8',
      /^ok: /,
    ],
  ]
  for (const [what, proxying, trust, why] of clients) {
    test(`whom the service sees: ${what}`, async t => {
      const { told } = await through(t, proxying, { TRUST_PROXY: trust })
      assert.match(told('client address')!, why)
    })
  }

  test('a service that was started with another TRUST_PROXY', async t => {
    const { baseUrl, leadTo } = await proxy(t)
    const { origin, databasePath } = await serviceWith({ TRUST_PROXY: '1' })
    const { port } = new URL(origin)
    leadTo(Number(port))
    const env = { BASE_URL: baseUrl, DATABASE_URL: `sqlite:${databasePath}`, PORT: port, TRUST_PROXY: '10.0.0.0/8' }
    assert.match(
      (await trialsOf(env)).told('client address')!,
      /^wrong: .*has another TRUST_PROXY than these settings: restart/,
    )
  })

  const fields = 'access-control-allow-origin'
  const pages: readonly [what: string, proxying: Proxying, why: RegExp][] = [
    [
      'a proxy that allows everybody',
      { adds: { [fields]: '*' } },
      /^wrong: .*answered for "\*" and not as the service does/,
    ],
    [
      'a proxy that answers itself',
      { answers: ({ method }, response) => method === 'OPTIONS' && !!response.writeHead(405).end() },
      /^wrong: its preflight is answered with 405/,
    ],
    [
      'a proxy that hides who asks',
      { replaces: { origin: undefined } },
      /^wrong: its preflight is not allowed: restart/,
    ],
  ]
  for (const [what, proxying, why] of pages) {
    test(`a page's preflight: ${what}`, async t => {
      const { told } = await through(t, proxying, { TRUST_PROXY: '1', CORS_ORIGINS: page })
      assert.match(told('public address')!, /^ok/)
      assert.match(told(`page ${page}`)!, why)
    })
  }

  const status = (status: number, headers = {}, body = ''): Proxying => ({
    answers: (_, response) => !!response.writeHead(status, headers).end(body),
  })
  const health = (service: string) => status(200, {}, JSON.stringify({ status: 'ok', service }))
  const answers: readonly [what: string, proxying: Proxying, why: RegExp][] = [
    [
      'nothing behind it',
      status(502, { server: 'nginx' }),
      /^wrong: .*the proxy answers itself, with 502 by nginx, but port \d+ answers here/,
    ],
    ['a login', status(401), /^wrong: .*the proxy answers itself, with 401: let everybody through/],
    [
      'another address',
      status(301, { location: 'https://www.example.com/' }),
      /^wrong: .*leads to https:\/\/www\.example\.com\//,
    ],
    ['another program', status(404, { server: 'x' }), /^wrong: .*another program answers, with 404 by x/],
    ['another program that likes everything', status(200, {}, 'null'), /^wrong: .*another program answers, with 200/],
    ['another Waitlist', health('Theirs'), /^wrong: .*another Waitlist answers, called "Theirs"/],
    [
      'one that cannot know the check',
      { replaces: { 'waitlist-check': undefined } },
      /^note: .*does not know this check: it uses another database/,
    ],
    [
      'one that cannot store anything now',
      status(503, {}, JSON.stringify({ error: unhealthy.error })),
      /^wrong: .*the service answers 503: the service is not able/,
    ],
    [
      'a proxy of deploy/, which says 503 in our words',
      status(503, {}, JSON.stringify({ error: unavailable.error })),
      /^wrong: .*the proxy answers itself, with 503, but port \d+ answers here/,
    ],
    [
      'one that refuses what the proxy makes of the request',
      status(400, { 'waitlist-seen': 'nonsense' }, '{"error":"one Host"}'),
      /^wrong: .*the answer is 400: one Host/,
    ],
  ]
  for (const [what, proxying, why] of answers) {
    test(`who answers: ${what}`, async t => {
      const { told } = await through(t, proxying, { TRUST_PROXY: '1', CORS_ORIGINS: page })
      assert.match(told('public address')!, why)
      if (/^wrong/.test(told('public address')!))
        assert.equal(told(`page ${page}`), undefined, 'says nothing of the service')
    })
  }

  test('a name that does not resolve, in or out of reach of a name server', async () => {
    const { told } = await found('https://nothing.invalid')
    assert.match(
      told('public address')!,
      /^wrong: .*(?:the name nothing\.invalid (?:does not resolve|could not be looked up)|no answer in time)/,
    )
  })

  const certificates: readonly [
    what: string,
    tls: { cert: string | Buffer; key: string | Buffer },
    host: string,
    why: RegExp,
  ][] = [
    ['expired', expired, 'localhost', /its certificate has expired: renew it/],
    ['for another name', elsewhere, '127.0.0.2', /its certificate is for another name/],
    ['signed by itself', selfSigned({ kind: 'ec', name: 'mine' }), 'localhost', /its certificate is signed by itself/],
  ]
  for (const [what, tls, host, why] of certificates) {
    test(`a certificate that is ${what}`, async t => {
      const { baseUrl } = await proxy(t, {}, tls as typeof pair)
      const url = baseUrl.replace('localhost', host)
      if (host === '127.0.0.2') {
        // The same server under another name of this machine.
        const { port } = new URL(baseUrl)
        const relay = createRelay(socket =>
          socket
            .pipe(connect(Number(port), '127.0.0.1'))
            .pipe(socket)
            .on('error', () => socket.destroy()),
        )
        relay.listen(Number(port), host)
        t.after(() => relay.close())
      }
      const { told } = await found(url)
      assert.match(told('public address')!, new RegExp(`^wrong: .*${why.source}`))
    })
  }

  test('no TLS where it should be', async t => {
    const url = await listening(
      t,
      createServer((_, response) => response.end()),
    )
    const { told } = await found(url.replace('http:', 'https:'))
    assert.match(told('public address')!, /^wrong: .*no TLS is spoken there/)
  })

  test('nobody there: wrong while the service runs, and a note while it is stopped, before or behind a proxy', async t => {
    const nobody = `http://localhost:${await freePort()}`
    const { told } = await found(nobody)
    assert.match(told('public address')!, /^wrong: .*it cannot be reached \(ECONNREFUSED\), but port \d+ answers here/)
    const { baseUrl } = await proxy(t)
    const stopped = {
      PORT: String(await freePort()),
      DATABASE_URL: `sqlite:${join(temporaryFolder(t), 'waitlist.db')}`,
    }
    const note = /^note: .*(?:ECONNREFUSED|502).*, and nothing listens on port \d+ here\. If the service is stopped/
    for (const BASE_URL of [nobody, baseUrl]) {
      const { told } = await trialsOf({ BASE_URL, CORS_ORIGINS: page, ...stopped })
      assert.match(told('public address')!, note)
      assert.equal(told(`page ${page}`), undefined)
    }
  })

  test('without BASE_URL nothing is tried, which is said if there were something', async () => {
    assert.equal((await trialsOf({})).told('public address'), undefined)
    assert.match(
      (await trialsOf({ CORS_ORIGINS: page })).told('public address')!,
      /^note: BASE_URL is not set, so CORS_ORIGINS/,
    )
  })
})

test('waitlist check has rows for it, fails when one is wrong, and is coloured on a terminal unless NO_COLOR says no', {
  timeout: 60_000,
  skip: process.platform !== 'linux' && 'script(1) has other options elsewhere',
}, async t => {
  const { baseUrl, leadTo } = await proxy(t)
  const env = { TRUST_PROXY: '1', CORS_ORIGINS: page }
  const { origin, databasePath } = await serviceWith(env)
  const { port: PORT } = new URL(origin)
  leadTo(Number(PORT))
  const check = async (more: Record<string, string>) => {
    const terminal = { TERM: 'xterm-256color', NODE_EXTRA_CA_CERTS: fixture('first.crt').pathname }
    const all = { ...env, ...terminal, HOST: '127.0.0.1', PORT, DATABASE_URL: `sqlite:${databasePath}`, ...more }
    const through = ['sh', '-c', 'exec script -qec "$*" /dev/null', 'sh']
    const run = spawnProgram(t, all, { cwd: temporaryFolder(t), args: ['check'], through })
    run.process.stdin!.end()
    return { code: await run.exited, text: run.stdout() }
  }
  const good = await check({ BASE_URL: baseUrl })
  assert.equal(good.code, 0)
  for (const what of ['public address', 'client address', `page ${page}`]) {
    assert.ok(good.text.includes(`\x1b[32mok\x1b[39m      ${what}: `), what)
  }
  const bad = await check({ BASE_URL: 'https://nothing.invalid', NO_COLOR: '1' })
  assert.equal(bad.code, 1)
  assert.match(bad.text, /^wrong {3}public address: /m)
  assert.doesNotMatch(bad.text, /\x1b/)
})
