import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import { Agent, request } from 'node:https'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { Ledger } from '../harness/ledger.ts'
import { load } from '../harness/load.ts'
import { freePort } from '../harness/port.ts'
import { complaintsIn, hasSaid, logOf, type Program, runProgram, spawnProgram, until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { ca, certificateOf, fixture, headersOf, http1, json, type Received, someone } from '../harness/tls.ts'

export async function http2Session(t: TestContext, baseUrl: string): Promise<ClientHttp2Session> {
  const session = connect(baseUrl, { ca })
  session.on('error', () => {})
  t.after(() => session.destroy())
  await once(session, 'connect')
  return session
}

/** One request on a session. */
export async function http2(
  session: ClientHttp2Session,
  path: string,
  fields: OutgoingHttpHeaders = {},
  body?: string,
): Promise<Received> {
  const stream = session.request({ ':path': path, ...fields }, { endStream: body === undefined })
  stream.setEncoding('utf8').on('error', () => {})
  if (body !== undefined) stream.end(body)
  const [{ ':status': status, ...headers }] = await once(stream, 'response')
  let text = ''
  for await (const chunk of stream) text += chunk
  const answer = { status: Number(status), headers: headersOf(headers), body: text }
  if (answer.status >= 400) assert.deepEqual(Object.keys(JSON.parse(text)), ['error'])
  return answer
}

export const post = { ':method': 'POST', ...json }

/** A proxy with its configuration of deploy/, before a Waitlist on this machine. */
export interface ProxyKind {
  readonly name: string
  /** Why it cannot be tried; null if it can. */
  readonly missing: string | null
  /** Its configuration, for other ports and a certificate for tests. */
  configure(places: Places): string
  /** The same behind a CDN, and the TRUST_PROXY that belongs to it. */
  readonly behindCdn: { configure(text: string, cdn: string): string; readonly trust: string }
  /** The command that runs it in the foreground, until SIGTERM or what `ends` it. */
  command(file: string, folder: string): readonly [string, ...string[]]
  /** What lets it finish what it has. */
  readonly ends: NodeJS.Signals
  /** What ends it at once, with all its processes. */
  readonly kills: NodeJS.Signals
}

export interface Places {
  /** Free ports of this machine. */
  readonly port: number
  readonly plainPort: number
  readonly upstreams: readonly number[]
  readonly cert: string
  readonly key: string
  /** Its own. */
  readonly folder: string
}

/** Null if a program is there and says its version. */
export function missing(program: string, ...args: string[]): string | null {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return null
  } catch {
    return `${program} is not installed; .ci/run installs it`
  }
}

export const hasIpv6 = Object.values(networkInterfaces()).some(list => list?.some(({ address }) => address === '::1'))

export const deployed = (name: string): string => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url))

/** Replaces what is there exactly this often: a configuration that has changed fails here. */
export function replaced(text: string, what: string, by: string, times = 1): string {
  assert.equal(text.split(what).length - 1, times, `${what} in the configuration`)
  return text.replaceAll(what, by)
}

export async function placesFor(t: Pick<TestContext, 'after'>, ...upstreams: number[]): Promise<Places> {
  const [cert, key] = ['first.crt', 'first.key'].map(name => fileURLToPath(fixture(name))) as [string, string]
  return { port: await freePort(), plainPort: await freePort(), upstreams, cert, key, folder: temporaryFolder(t) }
}

interface Running {
  readonly baseUrl: string
  /** Lets it finish what it has. */
  end(): Promise<void>
}

/** Starts a proxy. It is gone when the test ends. */
export async function runProxy(
  t: Pick<TestContext, 'after'>,
  kind: Pick<ProxyKind, 'name' | 'command' | 'ends' | 'kills'>,
  { port, folder }: Places,
  file: string,
): Promise<Running> {
  const [command, ...args] = kind.command(file, folder)
  const child: ChildProcess = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: folder },
  })
  let said = ''
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', text => {
      said += text
    })
  }
  const ended = once(child, 'close')
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill(kind.kills)
    await ended
  })
  const baseUrl = `https://localhost:${port}`
  await until(async () => {
    assert.equal(child.exitCode, null, `${kind.name} ended: ${said}`)
    return certificateOf({ baseUrl }).then(
      () => true,
      () => false,
    )
  })
  return {
    baseUrl,
    async end() {
      child.kill(kind.ends)
      await ended
    },
  }
}

export interface Sender {
  /** The address of this machine that the visitor comes from. */
  readonly from: string
  readonly forwarded?: string
}

/** One signup of a visitor, on a connection of its own. */
export function signUpFrom(baseUrl: string, { from, forwarded }: Sender, body: string): Promise<number> {
  const headers = { ...json, host: 'localhost', ...(forwarded && { 'x-forwarded-for': forwarded }) }
  return new Promise((resolve, reject) => {
    request({
      method: 'POST',
      port: new URL(baseUrl).port,
      path: '/api/waitlist',
      hostname: from.includes(':') ? '::1' : '127.0.0.1',
      servername: 'localhost',
      localAddress: from,
      ca,
      agent: false,
      headers,
    })
      .on('response', response => resolve(response.resume().statusCode!))
      .on('error', reject)
      .end(body)
  })
}

/** Where it listens, behind its proxy. */
export const portOf = (program: Program): number => Number(new URL(String(logOf(program)[0]!.listening)).port)

export const warningsOf = (program: Program): string[] => complaintsIn(logOf(program)).map(({ msg }) => String(msg))

/** What every proxy of deploy/ must do, with a real Waitlist behind it. */
export function promisesOfProxy(kind: ProxyKind, write: (text: string, folder: string) => string): void {
  const skip = kind.missing ?? (!isSlow && 'slow: WAITLIST_SLOW_TESTS=1')

  async function stage(t: TestContext, env: Record<string, string> = {}, change = (text: string) => text) {
    const cwd = temporaryFolder(t)
    const port = await freePort()
    const start = () =>
      runProgram(
        t,
        {
          PORT: String(port),
          BASE_URL: 'https://waitlist.example.com',
          TRUST_PROXY: '1',
          RATE_LIMIT: '1000000',
          ...env,
        },
        { cwd },
      )
    const program = await start()
    const places = await placesFor(t, port)
    const file = write(change(kind.configure(places)), places.folder)
    const open = () => runProxy(t, kind, places, file)
    return { program, start, proxy: await open(), open, database: join(cwd, 'data', 'waitlist.db') }
  }

  describe(`behind ${kind.name}`, { skip, timeout: 120_000 }, () => {
    test('visitors have HTTP/2, HTTP/1.1 and HSTS, links lead to the public name, and the operator is not shown', async t => {
      const { proxy, program } = await stage(t, { ADMIN_PORT: '0' })
      const session = await http2Session(t, proxy.baseUrl)
      const described = await http2(session, '/api/waitlist')
      assert.equal(described.status, 200)
      assert.match(JSON.parse(described.body)['service-doc'], /^https:\/\/waitlist\.example\.com\//)
      assert.equal(described.headers.get('strict-transport-security'), 'max-age=31536000')
      const answer = await http2(session, '/api/waitlist', post, someone('ada'))
      assert.equal(answer.status, 200, answer.body)
      assert.match(answer.headers.get('set-cookie')!, /^__Host-waitlist=.*; Secure/)
      assert.equal((await http1(proxy.baseUrl, '/api/health')).status, 200)
      for (const path of ['/metrics', '/nowhere']) assert.equal((await http2(session, path)).status, 404)
      assert.deepEqual(warningsOf(program), [])
    })

    test('each visitor has a quota, whatever X-Forwarded-For they send', async t => {
      const { proxy, program } = await stage(t, { RATE_LIMIT: '2' })
      const attempts = (...senders: Sender[]) =>
        Promise.all(senders.map(sender => signUpFrom(proxy.baseUrl, sender, '{}')))
      const [first, second] = [{ from: '127.0.0.2' }, { from: '127.0.0.3' }]
      assert.deepEqual(await attempts(first, second), [400, 400])
      assert.deepEqual(await attempts(first, second), [400, 400])
      assert.deepEqual(await attempts(first, second), [429, 429])
      for (const forwarded of ['192.0.2.1', '192.0.2.2, 10.0.0.1', '127.0.0.1', 'unknown', ',,', '127.0.0.3']) {
        assert.deepEqual(await attempts({ ...first, forwarded }), [429], forwarded)
      }
      const third = { from: '127.0.0.4', forwarded: '127.0.0.2' }
      assert.deepEqual(await attempts(third), [400], 'nobody else pays for it')
      if (hasIpv6) assert.deepEqual(await attempts({ from: '::1' }, { from: '::1' }), [400, 400])
      if (hasIpv6) assert.deepEqual(await attempts({ from: '::1' }), [429])
      assert.deepEqual(warningsOf(program), [])
    })

    test('behind a CDN that it knows, the visitor is whom the CDN names, and nobody else is believed', async t => {
      const [cdn, stranger] = ['127.0.0.5', '127.0.0.6']
      const env = { RATE_LIMIT: '1', TRUST_PROXY: kind.behindCdn.trust }
      const { proxy } = await stage(t, env, text => kind.behindCdn.configure(text, cdn))
      const attempt = (from: string, forwarded: string) => signUpFrom(proxy.baseUrl, { from, forwarded }, '{}')
      assert.equal(await attempt(cdn, '192.0.2.1'), 400)
      assert.equal(await attempt(cdn, '192.0.2.2'), 400)
      assert.equal(await attempt(cdn, '198.51.100.1, 192.0.2.1'), 429, 'forged before the CDN')
      assert.equal(await attempt(stranger, '192.0.2.3'), 400)
      assert.equal(await attempt(stranger, '192.0.2.4'), 429, 'forged past the CDN')
    })

    test('check reaches the service through it, and says so when that is stopped', async t => {
      const { proxy, program, database } = await stage(t)
      const env = {
        BASE_URL: proxy.baseUrl,
        PORT: String(portOf(program)),
        DATABASE_URL: `sqlite:${database}`,
        TRUST_PROXY: '1',
        NODE_EXTRA_CA_CERTS: fileURLToPath(fixture('first.crt')),
      }
      const check = async () => {
        const run = spawnProgram(t, env, { cwd: temporaryFolder(t), args: ['check'] })
        return { code: await run.exited, text: run.stdout() }
      }
      const good = await check()
      assert.equal(good.code, 0, good.text)
      assert.match(good.text, /^ok {6}public address: .* is reached$/m)
      assert.equal(await program.end('SIGTERM'), 0)
      const stopped = await check()
      assert.equal(stopped.code, 1, stopped.text)
      assert.match(stopped.text, /^wrong {3}public address: .* answers 50\d, and not as a healthy service does$/m)
    })

    test('a body over the limit is a 413 with a JSON error, however large', async t => {
      const { proxy } = await stage(t)
      const session = await http2Session(t, proxy.baseUrl)
      for (const size of [20_000, 100_000, 1_000_000]) {
        const body = JSON.stringify({ name: 'x'.repeat(size), email: 'ada@example.com' })
        const answers = [
          await http2(session, '/api/waitlist', { ...post, 'content-length': body.length }, body),
          await http1(proxy.baseUrl, '/api/waitlist', 'POST', { ...json, 'content-length': body.length }, body),
        ]
        for (const { status, headers, body } of answers) {
          assert.equal(status, 413, `${size} bytes`)
          assert.equal(headers.get('content-type'), 'application/json')
          assert.deepEqual(JSON.parse(body), { error: 'the request body must be at most 16384 bytes' })
        }
      }
    })

    test('while Waitlist is away, a visitor gets a 503 as JSON; once it is back, it is used', async t => {
      const { proxy, program, start, database } = await stage(t, { SHUTDOWN_DELAY: '0' })
      assert.equal(await program.end('SIGTERM'), 0)
      const session = await http2Session(t, proxy.baseUrl)
      const { status, headers, body } = await http2(session, '/api/waitlist', post, someone('ada'))
      assert.equal(status, 503)
      assert.equal(headers.get('retry-after'), '10')
      assert.equal(headers.get('content-type'), 'application/json')
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.equal(headers.get('access-control-allow-origin'), 'https://example.com')
      assert.equal(headers.get('access-control-allow-credentials'), 'true')
      assert.deepEqual(Object.keys(JSON.parse(body)), ['error'])
      await start()
      assert.equal((await http2(session, '/api/waitlist', post, someone('ada'))).status, 200)
      assert.equal(contactsIn(database).length, 1)
    })

    for (const what of ['Waitlist', 'the proxy'] as const) {
      test(`a restart of ${what} under load loses nothing that was acknowledged`, async t => {
        const stage_ = await stage(t)
        let { program, proxy } = stage_
        const ledger = new Ledger()
        const statuses: Record<string, number> = {}
        const clients = 8
        let isOver = false
        const loading = load({
          ledger,
          clients,
          round: 0,
          rest: 5,
          agent: new Agent({ keepAlive: true, maxSockets: clients, ca }),
          to: () => proxy.baseUrl,
          goesOn(answer) {
            const status = answer?.status ?? 'none'
            statuses[status] = (statuses[status] ?? 0) + 1
            return !isOver
          },
        })
        const more = async () => {
          const before = ledger.acknowledged
          await until(() => ledger.acknowledged >= before + 100)
        }
        for (let round = 0; round < 3; round++) {
          await more()
          if (what === 'Waitlist') {
            assert.equal(await program.end('SIGTERM'), 0)
            assert.ok(hasSaid(program, 'stopped'))
            await wait(round * 100)
            program = await stage_.start()
          } else {
            await proxy.end()
            proxy = await stage_.open()
          }
        }
        await more()
        isOver = true
        await loading
        t.diagnostic(`answers by status: ${JSON.stringify(statuses)}`)
        const expected = ['200', '503', ...(what === 'Waitlist' ? [] : ['none'])]
        for (const status of Object.keys(statuses)) assert.ok(expected.includes(status), status)
        assert.equal(await program.end('SIGTERM'), 0)
        ledger.assertTrueOf(contactsIn(stage_.database))
      })
    }
  })
}
