import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type AdminParts, openAdmin } from '../../src/admin/server.ts'
import { openTelemetry } from '../../src/app/telemetry.ts'

import { clientOf } from '../harness/client.ts'
import { sqlOn } from '../harness/database.ts'
import { recordingLog } from '../harness/log.ts'
import { noPromtool, promtool, type Scraped, scrape } from '../harness/metrics.ts'
import { until } from '../harness/program.ts'
import { exchange, readAnswer } from '../harness/raw.ts'
import { startReceiver } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'
import { operatorAt } from '../harness/store.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }

async function started(t: TestContext, env: Record<string, string> = {}) {
  const service = await startService(t, { ADMIN_LISTEN: '127.0.0.1:0', ...env })
  const ask = async (method: string, path: string, ...fields: readonly string[]) => {
    const head = [`${method} ${path} HTTP/1.1`, 'Connection: close', ...fields]
    if (!fields.some(field => field.startsWith('Host:'))) head.push('Host: localhost')
    return readAnswer(await exchange(service.adminOrigin!, [...head, '', ''].join('\r\n')))
  }
  const shows = async (condition: (metrics: Scraped) => boolean): Promise<Scraped> => {
    let last = await scrape(service.adminOrigin)
    await until(async () => {
      last = await scrape(service.adminOrigin)
      return condition(last)
    })
    return last
  }
  return { service, client: await clientOf(service), ask, shows }
}

describe('the operator’s listener', { concurrency: 8 }, () => {
  test('has a page and metrics for GET and HEAD, and nothing else; every answer is fresh and useless to other pages', async t => {
    const { ask } = await started(t)
    for (const [path, type] of [
      ['/', 'text/html; charset=utf-8'],
      ['/metrics', 'text/plain; version=0.0.4; charset=utf-8'],
    ] as const) {
      const { status, headers } = await ask('GET', path)
      assert.deepEqual([status, headers.get('content-type'), headers.get('cache-control')], [200, type, 'no-store'])
      assert.match(headers.get('content-security-policy')!, /default-src 'none'.*frame-ancestors 'none'/)
      assert.equal(headers.get('access-control-allow-origin'), null)
      assert.equal((await ask('HEAD', `${path}?a=b`)).text, '')
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const refused = await ask(method, path)
        assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD'], method)
      }
    }
    for (const path of ['/api/waitlist', '/docs/api', '/metrics/', '/__proto__']) {
      assert.equal((await ask('GET', path)).status, 404, path)
    }
    assert.equal((await ask('GET', '/')).headers.get('refresh'), '10')
  })

  test('refuses a web page whose name points to this machine; localhost and addresses are answered', async t => {
    const { ask } = await started(t)
    for (const host of ['localhost', 'LOCALHOST:80', '127.0.0.1:1', '[::1]:1']) {
      assert.equal((await ask('GET', '/metrics', `Host: ${host}`)).status, 200, host)
    }
    for (const host of ['rebound.example', 'rebound.example:1', 'localhost.example', '127.0.0.1.example', '']) {
      for (const path of ['/', '/metrics', `/invitations/${'A'.repeat(22)}`]) {
        assert.equal((await ask('GET', path, `Host: ${host}`)).status, 421, host)
      }
    }
  })

  test('goes on while the service stops, and is gone with it', async t => {
    const { service, ask } = await started(t, { SHUTDOWN_DELAY: '2s' })
    const stopped = service.stop()
    await until(async () => /Shutting down/.test((await ask('GET', '/')).text))
    await stopped
    await assert.rejects(fetch(`${service.adminOrigin}/metrics`))
  })

  test('a store that cannot count costs only its own numbers; who asks within five seconds shares one count', async t => {
    let counts = 0
    const count = () => Promise.reject(new Error(`no such table: ${++counts}`))
    const { log } = recordingLog()
    const store: AdminParts['store'] = { check: async () => {}, counts: count }
    const admin = await openAdmin({
      ...{ host: '127.0.0.1', port: 0, service: 'Acme', version: '0', log, store, destinations: [] },
      isDraining: () => false,
      telemetry: openTelemetry(),
      invitation: async () => ({ status: 404, body: {} }),
    })
    t.after(admin.close)
    const [page, metrics] = await Promise.all([fetch(admin.origin), scrape(admin.origin)])
    assert.equal(page.status, 200)
    assert.match(await page.text(), /no such table: 1/)
    assert.equal(metrics.value('waitlist_store_takes_signups'), 1)
    assert.equal(metrics.sum('waitlist_contacts'), 0)
    assert.equal(metrics.value('waitlist_signups_total', { outcome: 'new' }), 0)
    assert.equal(counts, 1)
  })
})

describe('invitations', { concurrency: 8 }, () => {
  const token = 'a-token-of-the-test-that-is-long-enough'

  async function invited(t: TestContext, env: Record<string, string> = { ADMIN_TOKEN: token }) {
    const { service, client, ask } = await started(t, env)
    await client.signUp(ada)
    await operatorAt(service.databasePath).invite({}, 1, { eventName: 'waitlist.invited', destinations: [] })
    const [row] = (await sqlOn(service.databasePath)('select code from contact')) as { code: string }[]
    const request = (method: string, code: string, authorization = `Bearer ${token}`) =>
      ask(method, `/invitations/${code}`, ...(authorization === '' ? [] : [`Authorization: ${authorization}`]))
    return { service, code: row!.code, request }
  }

  test('GET says whose code it is, POST redeems it once; a wrong code is a 404, another method a 405', async t => {
    const { service, code, request } = await invited(t)
    const { status, headers, text } = await request('GET', code)
    const { email, name, redeemedAt } = JSON.parse(text)
    assert.deepEqual([status, email, name, redeemedAt], [200, ada.email, ada.name, null])
    assert.deepEqual([headers.get('content-type'), headers.get('cache-control')], ['application/json', 'no-store'])
    const first = JSON.parse((await request('POST', `${code}?utm_source=mail`)).text)
    assert.ok(Date.parse(first.redeemedAt))
    assert.deepEqual(JSON.parse((await request('POST', code)).text), first)
    for (const wrong of ['', 'x', `${code}x`, `${code}/`, '%63'.repeat(22), 'A'.repeat(22)]) {
      for (const method of ['GET', 'POST']) assert.equal((await request(method, wrong)).status, 404, wrong)
    }
    const refused = await request('DELETE', code)
    assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD, POST'])
    assert.ok(!JSON.stringify(service.logged).includes(code))
  })

  test('with ADMIN_TOKEN nothing else opens them; without it, this machine may ask', async t => {
    const { code, request } = await invited(t)
    for (const wrong of ['', 'Bearer', `Basic ${token}`, `Bearer ${token}x`, `Bearer ${token.slice(0, -1)}`, token]) {
      for (const path of [code, 'x']) {
        const { status, headers, text } = await request('POST', path, wrong)
        assert.equal(status, 401, wrong)
        assert.match(headers.get('www-authenticate') ?? '', /^Bearer/)
        assert.ok(!text.includes('ada'))
      }
    }
    assert.match((await request('GET', code, `bearer  ${token}`)).text, /"redeemedAt":null/)
    const open = await invited(t, {})
    assert.equal((await open.request('GET', open.code, '')).status, 200)
  })
})

describe('metrics', { concurrency: 8 }, () => {
  const ROUTE = { http_request_method: 'POST', http_route: '/api/waitlist' }

  test('each POST has one outcome and one duration; contacts are counted, nobody is named, and no path that is not there', async t => {
    const { client, service, shows } = await started(t, { RATE_LIMIT: '7' })
    await client.signUp(ada)
    await client.signUp({ ...ada, email: 'grace@example.com' })
    for (let time = 0; time < 2; time++) await client.signUp(ada)
    for (const body of ['not JSON', { ...ada, name: '' }, { ...ada, email: 'no address' }]) await client.signUp(body)
    for (let time = 0; time < 3; time++) await client.signUp(ada)
    await fetch(`${service.baseUrl}/nothing`)
    const metrics = await shows(({ sum }) => sum('waitlist_signups_total') === 10 && sum('waitlist_contacts') === 2)
    const outcomes = metrics.samples.filter(({ name, value }) => name === 'waitlist_signups_total' && value > 0)
    assert.deepEqual(Object.fromEntries(outcomes.map(({ labels, value }) => [labels.outcome, value])), {
      new: 2,
      known: 2,
      invalid: 3,
      limited: 3,
    })
    const byStatus = (status: string) =>
      metrics.value('http_server_request_duration_seconds_count', { ...ROUTE, http_response_status_code: status })
    assert.deepEqual(['200', '400', '429'].map(byStatus), [4, 3, 3])
    assert.ok(metrics.value('waitlist_store_commit_seconds_count')! >= 1)
    for (const name of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds']) {
      assert.ok(metrics.value(name) !== undefined, name)
    }
    for (const path of ['/', '/metrics']) {
      const text = await (await fetch(service.adminOrigin + path)).text()
      assert.doesNotMatch(text, /Ada|Lovelace|example\.com|\/nothing/i)
    }
  })

  test('a refused key shows as an open breaker on the page and in the metrics; the signup is kept', async t => {
    const vendor = await startReceiver(t, loopsFake().answer)
    const revoked = { PROVIDER: 'loops', ...loopsSettings(vendor.url), LOOPS_API_KEY: 'revoked' }
    const { client, service, shows } = await started(t, revoked)
    await client.signUp(ada)
    const breaker = { destination: 'loops', reason: 'misconfigured' }
    const metrics = await shows(({ value }) => value('waitlist_breaker_open', breaker) === 1)
    assert.equal(metrics.value('waitlist_breaker_open', { ...breaker, reason: 'unreachable' }), 0)
    assert.equal(metrics.value('waitlist_signups_total', { outcome: 'kept' }), 1)
    assert.ok(metrics.value('waitlist_provider_calls_total', { result: 'misconfigured' })! > 0)
    const page = await (await fetch(service.adminOrigin!)).text()
    assert.match(page, /loops<\/bdi> <small>refuses our key or settings/)
    assert.doesNotMatch(page, /Nothing needs attention/)
  })

  test('the alerts use only metrics and labels that there are; promtool finds nothing wrong', async t => {
    const provider = { PROVIDER: 'loops', ...loopsSettings('http://127.0.0.1:9') }
    const { client, service } = await started(t, provider)
    await client.signUp(ada)
    const { samples, text } = await scrape(service.adminOrigin)
    const alerts = fileURLToPath(new URL('../../examples/monitoring/alerts.yml', import.meta.url))
    const used = readFileSync(alerts, 'utf8').matchAll(/\b((?:waitlist|http)_\w+)(?:\{(\w+)=[^}]*\})?/g)
    const metrics = [...used].filter(([, name]) => name !== 'http_route' && name !== 'http_request_method')
    assert.ok(metrics.length >= 7)
    for (const [, name, label] of metrics) {
      const found = samples.filter(sample => sample.name === name)
      assert.ok(found.length > 0, `${name}`)
      assert.ok(label === undefined || found.some(({ labels }) => label in labels), `${name}, ${label}`)
    }
    if (promtool === undefined) return t.diagnostic(noPromtool)
    // The library's own metrics have names that it dislikes.
    const ours = text.split('\n').filter(line => /^(?:# \w+ )?(?:waitlist|http)_/.test(line))
    execFileSync(promtool, ['check', 'metrics'], { input: `${ours.join('\n')}\n` })
    execFileSync(promtool, ['check', 'rules', '--lint-fatal', alerts])
  })
})
