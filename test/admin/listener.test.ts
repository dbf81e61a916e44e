import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { invitationRoute } from '../../src/admin/invitations.ts'
import { type AdminParts, type AdminSettings, openAdmin } from '../../src/admin/server.ts'
import { telemetry } from '../../src/telemetry/telemetry.ts'
import type { Counts } from '../../src/waitlist/alerts/counts.ts'
import { LATE } from '../../src/waitlist/alerts/watch.ts'
import { read, scrape } from '../harness/metrics.ts'
import { freePort } from '../harness/port.ts'
import { until } from '../harness/program.ts'
import { exchange, readAnswer } from '../harness/raw.ts'
import { recordingLog, startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { within } from '../harness/within.ts'

const counts: Counts = {
  at: new Date('2026-11-22T12:00:00Z'),
  contacts: { unconfirmed: 0, pending: 3, listed: 1_000_000, held: 0, invited: 0 },
  redeemed: 0,
  held: [],
  signups: [],
  sources: [],
  sourced: 0,
  deliveries: [
    { destination: 'webhook', state: 'waiting', count: 7, oldest: new Date('2026-11-22T11:00:00Z'), why: 'no answer' },
    { destination: 'webhook', state: 'delivered', count: 90, oldest: null, why: null },
    { destination: 'earlier', state: 'abandoned', count: 2, oldest: null, why: null },
  ],
}

/** The listener beside parts that are as the test wants them. */
async function open(
  t: TestContext,
  more: Partial<AdminParts> = {},
  settings: AdminSettings = { host: '127.0.0.1', port: 0, token: null },
) {
  const { log, logged } = recordingLog()
  const admin = await openAdmin(settings, {
    service: 'Waitlist',
    version: '0.0.0',
    telemetry: telemetry(),
    store: { check: async () => {}, counts: async () => counts },
    invitations: { invitation: async () => null, redeem: async () => null },
    folder: null,
    provider: null,
    destinations: [{ name: 'webhook', outage: () => null }],
    lateAfter: () => LATE,
    isDraining: () => false,
    log,
    ...more,
  })
  t.after(admin.close)
  const head = (method: string, path: string, ...fields: readonly string[]) =>
    exchange(admin.origin, [`${method} ${path} HTTP/1.1`, 'Connection: close', ...fields, '', ''].join('\r\n'))
  const ask = async (method: string, path: string, ...fields: readonly string[]) =>
    readAnswer(await head(method, path, 'Host: localhost', ...fields))
  return { ...admin, logged, head, ask }
}

describe('the listener of the operator', { concurrency: 8 }, () => {
  test('it has a page and metrics, for GET and HEAD, and nothing else', async t => {
    const { ask } = await open(t)
    for (const [path, type] of [
      ['/', 'text/html; charset=utf-8'],
      ['/metrics', 'text/plain; version=0.0.4; charset=utf-8'],
    ] as const) {
      const got = await ask('GET', path)
      assert.deepEqual([got.status, got.headers.get('content-type')], [200, type])
      const head = await ask('HEAD', `${path}?a=b`)
      assert.deepEqual([head.status, head.text, head.headers.get('content-type')], [200, '', type])
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'QUERY']) {
        const refused = await ask(method, path, 'Content-Length: 3')
        assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD'], method)
        assert.equal(refused.headers.get('connection'), 'close')
      }
    }
    for (const path of ['/api/waitlist', '/api/health', '/docs/api', '/metrics/', '/constructor', '/__proto__', '*']) {
      assert.equal((await ask('GET', path)).status, 404, path)
    }
  })

  test('every answer is fresh, and useless to other pages of a browser', async t => {
    const { ask } = await open(t)
    for (const path of ['/', '/metrics', '/nothing']) {
      const { headers } = await ask('GET', path)
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.match(headers.get('content-security-policy')!, /default-src 'none'.*frame-ancestors 'none'/)
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
      assert.equal(headers.get('referrer-policy'), 'no-referrer')
      assert.equal(headers.get('access-control-allow-origin'), null)
      assert.equal(headers.get('set-cookie'), null)
    }
  })

  test('a page of the web whose name points here is refused; localhost and addresses are answered', async t => {
    const { head, origin } = await open(t)
    const { port } = new URL(origin)
    const status = async (...fields: readonly string[]) => readAnswer(await head('GET', '/metrics', ...fields)).status
    for (const host of ['localhost', `LOCALHOST:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      assert.equal(await status(`Host: ${host}`), 200, host)
    }
    for (const host of ['rebound.example', `rebound.example:${port}`, 'localhost.example', '127.0.0.1.example', '']) {
      assert.equal(await status(`Host: ${host}`), 421, host)
    }
  })

  test('localhost is both 127.0.0.1 and ::1, where the machine has both', async t => {
    const { origin } = await open(t, {}, { host: 'localhost', port: 0, token: null })
    const { port } = new URL(origin)
    const answers = await Promise.allSettled(
      ['127.0.0.1', '[::1]'].map(host => fetch(`http://${host}:${port}/metrics`).then(({ status }) => status)),
    )
    const reached = answers.filter(({ status }) => status === 'fulfilled')
    assert.ok(reached.length > 0)
    for (const each of reached) assert.equal((each as PromiseFulfilledResult<number>).value, 200)
  })

  test('a port in use is named with its setting, and nothing is left open', async t => {
    const { origin } = await open(t)
    const { port } = new URL(origin)
    const publicPort = await freePort()
    await assert.rejects(startService(t, { ADMIN_HOST: '127.0.0.1', ADMIN_PORT: port, PORT: String(publicPort) }), {
      name: 'OperatorError',
      message: `ADMIN_PORT ${port} on 127.0.0.1 is in use. Stop what uses it, or set another ADMIN_PORT.`,
    })
    await startService(t, { PORT: String(publicPort) })
  })

  test('fields that are too large are refused, and no more than 64 connections are kept', async t => {
    const { origin, head } = await open(t)
    assert.match(await head('GET', '/', 'Host: localhost', `X: ${'x'.repeat(9_000)}`), /^HTTP\/1\.1 431 /)
    const { port } = new URL(origin)
    const sockets = Array.from({ length: 64 }, () => connect(Number(port), '127.0.0.1'))
    t.after(() => {
      for (const socket of sockets) socket.destroy()
    })
    await Promise.all(sockets.map(socket => once(socket, 'connect')))
    await wait(50)
    assert.equal(await exchange(origin, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n').catch(() => ''), '')
    sockets.pop()!.destroy()
    await until(async () => (await fetch(origin).catch(() => null))?.status === 200)
  })

  test('a client that sends its request slowly is cut off within 8 s', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { origin } = await open(t)
    await within(8_000, async () => {
      // Whether it is told so depends on which of two timers of Node's looks first.
      assert.match(await exchange(origin, 'GET / HTTP/1.1\r\nHo'), /^(?:HTTP\/1\.1 408 |$)/)
    })
  })

  test('it goes on while the service stops, says so, and is gone with it', async t => {
    const service = await startService(t, { ADMIN_PORT: '0', SHUTDOWN_DELAY: '2s' })
    const draining = async () => (await scrape(service.adminOrigin)).value('waitlist_draining')
    assert.equal(await draining(), 0)
    const stopped = service.stop()
    await until(async () => (await draining()) === 1)
    await stopped
    await assert.rejects(fetch(`${service.adminOrigin}/metrics`))
  })
})

// Apart, since what it makes holds up everybody else in this process for seconds.
describe('a page that is large', () => {
  test('a reader that takes nothing is cut off, and keeps nobody else waiting', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    // More than the system keeps for a connection.
    const deliveries = Array.from({ length: 10_000 }, (_, i) => ({ ...counts.deliveries[0]!, destination: `old-${i}` }))
    const { origin } = await open(t, {
      store: { check: async () => {}, counts: async () => ({ ...counts, deliveries }) },
    })
    const { hostname, port } = new URL(origin)
    const socket = connect(Number(port), hostname)
    t.after(() => socket.destroy())
    let received = ''
    socket.on('error', () => {})
    socket.setEncoding('latin1').on('data', text => {
      received += text
    })
    const closed = once(socket, 'close')
    socket.pause()
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await scrape(origin)
    await wait(13_000)
    socket.resume()
    await closed
    const length = Number(/^content-length: (\d+)/m.exec(received)![1])
    assert.ok(received.length < length, `${received.length} of ${length}`)
  })
})

describe('whatever happens behind it', { concurrency: 8 }, () => {
  test('what cannot be read is a 500 here and one line in the log; the process goes on', async t => {
    let broken = true
    const outage = () => {
      if (broken) throw new Error('a bug of the test')
      return null
    }
    const { ask, logged } = await open(t, { destinations: [{ name: 'webhook', outage }] })
    for (let time = 0; time < 5; time++) assert.equal((await ask('GET', time % 2 ? '/' : '/metrics')).status, 500)
    assert.deepEqual(
      logged.map(({ level, why, msg }) => [level, why, msg]),
      [[50, 'a bug of the test', 'the admin page or the metrics failed']],
    )
    broken = false
    await until(async () => (await ask('GET', '/metrics')).status === 200)
  })

  test('a store that cannot count costs only its own numbers', async t => {
    const failing = async () => Promise.reject(new Error('no such table'))
    const { origin, ask } = await open(t, { store: { check: async () => {}, counts: failing } })
    const { value, sum } = await scrape(origin)
    assert.equal(value('waitlist_store_takes_signups'), 1)
    assert.equal(sum('waitlist_contacts'), 0)
    assert.equal(value('waitlist_signups_total', { outcome: 'new' }), 0)
    assert.equal((await ask('GET', '/')).status, 200)
  })

  test('a store that does not answer delays nobody for longer than it may, and is told of', async t => {
    const never = () => new Promise<never>(() => {})
    const { origin } = await open(t, { store: { check: never, counts: never } })
    await within(4_000, async () => {
      const { value } = await scrape(origin)
      assert.equal(value('waitlist_store_takes_signups'), 0)
      assert.equal(value('waitlist_counts_age_seconds'), undefined)
    })
  })

  test('a client that does not wait for its answers gets one at most, so that none wait in memory', async t => {
    const { origin, ask } = await open(t)
    for (const version of ['1.1', '1.0']) {
      const request = `GET / HTTP/${version}\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n`
      const answers = await exchange(origin, request.repeat(1_000)).catch(() => '')
      assert.ok(answers.split(`HTTP/1.1 200`).length <= 2, version)
    }
    assert.equal((await ask('GET', '/')).status, 200)
  })

  test('OpenMetrics for who asks for it', async t => {
    const { ask } = await open(t)
    const { headers, text } = await ask(
      'GET',
      '/metrics',
      'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5',
    )
    assert.equal(headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8')
    assert.match(text, /^# TYPE waitlist_signups counter$/m)
    assert.match(text, /^waitlist_signups_total\{outcome="new"\} 0$/m)
    assert.ok(text.endsWith('\n# EOF\n'))
    // The other format knows nothing of it.
    const other = read((await ask('GET', '/metrics', 'Accept: text/plain')).text)
    assert.equal(other.value('waitlist_signups_total', { outcome: 'new' }), 0)
  })
})

describe('what the owner’s app asks', { concurrency: 8 }, () => {
  const code = 'c0deAbcdefgh-jklm_opqr'
  const token = 'a-token-of-the-test-that-is-long-enough'
  const ada = { email: 'ada@example.com', name: 'Ada', invitedAt: new Date(0), redeemedAt: null }
  const invitations: AdminParts['invitations'] = {
    invitation: async given => (given === code ? ada : null),
    redeem: async given => (given === code ? { ...ada, redeemedAt: new Date(1) } : null),
  }
  const json = { ...ada, invitedAt: ada.invitedAt.toISOString() }

  async function app(t: TestContext, more: Partial<AdminParts> = {}, given: string | null = token) {
    const opened = await open(t, { invitations, ...more }, { host: '127.0.0.1', port: 0, token: given })
    const request = async (method: string, path: string, authorization = `Bearer ${token}`) => {
      const fields = authorization === '' ? [] : [`Authorization: ${authorization}`]
      return opened.ask(method, path, ...fields)
    }
    return { ...opened, request }
  }

  test('whose code it is, by GET, and by POST that it was redeemed; nothing keeps the answer', async t => {
    const { request, logged } = await app(t)
    const { status, headers, text } = await request('GET', `/invitations/${code}`)
    assert.deepEqual([status, JSON.parse(text)], [200, json])
    assert.deepEqual([headers.get('content-type'), headers.get('cache-control')], ['application/json', 'no-store'])
    const redeemed = await request('POST', `/invitations/${code}?utm_source=mail`)
    assert.deepEqual(JSON.parse(redeemed.text), { ...json, redeemedAt: new Date(1).toISOString() })
    assert.equal((await request('HEAD', `/invitations/${code}`)).status, 200)
    assert.deepEqual(logged, [])
  })

  test('a code that is nobody’s is a 404, and what is no code is not looked up', async t => {
    const asked: string[] = []
    const look = async (given: string) => {
      asked.push(given)
      return null
    }
    const { request } = await app(t, { invitations: { invitation: look, redeem: look } })
    for (const wrong of ['', 'x', `${code}x`, `${code}/`, '../metrics', '%63'.repeat(22), 'x'.repeat(4_000)]) {
      for (const method of ['GET', 'POST']) {
        const { status, text } = await request(method, `/invitations/${wrong}`)
        assert.deepEqual([status, Object.keys(JSON.parse(text))], [404, ['error']], wrong)
      }
    }
    assert.deepEqual(asked, [])
    const { status, text } = await request('GET', `/invitations/${'A'.repeat(22)}`)
    assert.deepEqual([status, asked.length], [404, 1])
    assert.ok(!text.includes('AAAA'))
  })

  test('with ADMIN_TOKEN nothing but it opens, also on this machine', async t => {
    const { request } = await app(t)
    for (const wrong of [
      '',
      'Bearer',
      'Bearer ',
      `Basic ${token}`,
      `Bearer ${token}x`,
      `Bearer ${token.slice(0, -1)}`,
      token,
    ]) {
      for (const path of [code, 'x']) {
        const { status, headers, text } = await request('GET', `/invitations/${path}`, wrong)
        assert.equal(status, 401, wrong)
        assert.match(headers.get('www-authenticate') ?? '', /^Bearer/)
        assert.ok(!text.includes('ada'))
      }
    }
    assert.equal((await request('GET', `/invitations/${code}`, `bearer  ${token}`)).status, 200)
    assert.equal((await request('GET', '/metrics', '')).status, 200)
  })

  test('without it only this machine may ask', async t => {
    const { request } = await app(t, {}, null)
    assert.equal((await request('GET', `/invitations/${code}`, '')).status, 200)
    const route = invitationRoute(invitations, null, () => {})
    const from = (isLocal: boolean) => route({ method: 'POST', path: `/invitations/${code}`, headers: {}, isLocal })
    assert.deepEqual([(await from(true))?.status, (await from(false))?.status], [200, 403])
  })

  test('other methods are a 405, and a page of the web that rebinds its name is told nothing', async t => {
    const { request, head } = await app(t)
    const { status, headers } = await request('DELETE', `/invitations/${code}`)
    assert.deepEqual([status, headers.get('allow')], [405, 'GET, HEAD, POST'])
    const fields = ['Host: evil.example', `Authorization: Bearer ${token}`]
    assert.equal(readAnswer(await head('POST', `/invitations/${code}`, ...fields)).status, 421)
  })

  test('a store that fails is a 503, and the log has neither code nor token', async t => {
    const failing = async () => Promise.reject(new Error('the store is away'))
    const { request, logged } = await app(t, { invitations: { invitation: failing, redeem: failing } })
    for (const method of ['GET', 'POST']) {
      const { status, headers } = await request(method, `/invitations/${code}`)
      assert.deepEqual([status, headers.get('retry-after')], [503, '1'])
    }
    const told = JSON.stringify(logged)
    assert.match(told, /the store is away/)
    assert.ok(!told.includes(code) && !told.includes(token))
  })
})
