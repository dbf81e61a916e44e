import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type TtlCacheOptions, ttlCache } from '../../src/admin/ttl-cache.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import { type Outcome, outcomes, telemetry } from '../../src/telemetry/telemetry.ts'
import { SECRET as CHALLENGE_SECRET, HOST, members, startVerifier } from '../challenges/siteverify.fake.ts'
import { clientOf } from '../harness/client.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { type Scraped, scrape } from '../harness/metrics.ts'
import { until } from '../harness/program.ts'
import { noPromtool, promtool } from '../harness/promtool.ts'
import { exchange } from '../harness/raw.ts'
import { startReceiver } from '../harness/receiver.ts'
import { openTestServer } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }
const POST = { http_request_method: 'POST', http_route: '/api/waitlist' }

async function watched(t: TestContext, env: Record<string, string> = {}) {
  const service = await startService(t, { ADMIN_PORT: '0', ...env })
  /** Looks until it is so: what was just scraped is served again for a moment. */
  const shows = async (condition: (metrics: Scraped) => boolean): Promise<Scraped> => {
    let last = await scrape(service.adminOrigin)
    await until(async () => {
      if (condition(last)) return true
      last = await scrape(service.adminOrigin)
      return false
    })
    return last
  }
  return { service, client: await clientOf(service), shows }
}

const signups = ({ value }: Scraped, outcome: Outcome) => value('waitlist_signups_total', { outcome })

describe('the metrics of a service', { concurrency: 8 }, () => {
  test('each POST has one outcome and one duration, whatever its answer is', async t => {
    const { client, service, shows } = await watched(t, { RATE_LIMIT: '12' })
    const wanted = { new: 2, known: 3, invalid: 7, limited: 4 }
    await client.signUp(ada)
    await client.signUp({ ...ada, email: 'grace@example.com' })
    for (let time = 0; time < 3; time++) await client.signUp(ada)
    await client.signUp({ ...ada, email: 'no address' })
    await client.signUp({ ...ada, name: '' })
    await client.signUp('not JSON')
    await client.signUp('')
    await client.signUp(ada, { 'content-type': 'text/plain' })
    await client.signUp({ ...ada, more: 'x'.repeat(20_000) })
    // Cut short.
    await exchange(
      service.baseUrl,
      'POST /api/waitlist HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n{',
      1_000,
    )
    for (let time = 0; time < 4; time++) await client.signUp(ada)

    const metrics = await shows(({ sum }) => sum('waitlist_signups_total') === 16)
    for (const outcome of outcomes) {
      assert.equal(signups(metrics, outcome), (wanted as Partial<Record<Outcome, number>>)[outcome] ?? 0, outcome)
    }
    const { sum, value } = metrics
    assert.equal(sum('http_server_request_duration_seconds_count', POST), 16)
    const byStatus = (status: number) =>
      value('http_server_request_duration_seconds_count', { ...POST, http_response_status_code: String(status) })
    assert.deepEqual([200, 400, 413, 415, 429].map(byStatus), [5, 5, 1, 1, 4])
    assert.equal(value('waitlist_rate_limit_total', { decision: 'admitted' }), 12)
    assert.equal(value('waitlist_rate_limit_total', { decision: 'refused' }), 4)
    assert.equal(value('waitlist_store_batch_size_sum'), 5)
    assert.equal(value('waitlist_store_batch_size_count'), value('waitlist_store_commit_seconds_count'))
    assert.equal(value('waitlist_store_queue_depth'), 0)
  })

  test('a challenge that was not solved and a blocked domain have outcomes of their own', async t => {
    const verifier = await startVerifier(t, 'turnstile')
    const file = join(temporaryFolder(t), 'blocked.txt')
    writeFileSync(file, 'trash.example\n')
    const { client, service, shows } = await watched(t, {
      CHALLENGE: 'turnstile',
      CHALLENGE_SECRET,
      CHALLENGE_URL: verifier.address,
      CORS_ORIGINS: `https://${HOST}`,
      BLOCKED_DOMAINS_FILE: file,
    })
    const page = async () => (await fetch(service.adminOrigin!)).text()
    assert.doesNotMatch(await page(), /Challenge not solved|Email domain not accepted/)
    const withToken = (person: object, token?: string) => client.signUp({ ...person, [members.turnstile]: token })
    const old = verifier.solve()
    verifier.expire(old)
    const used = verifier.solve()
    const statuses = [
      await withToken(ada),
      await withToken(ada, 'no token'),
      await withToken(ada, 'wrong'),
      await withToken(ada, old),
      await withToken(ada, used),
      await withToken({ ...ada, email: 'grace@example.com' }, used),
      await withToken({ ...ada, email: 'ada@trash.example' }, verifier.solve()),
      await withToken({ ...ada, email: 'ada@trash.example' }),
      await withToken({ ...ada, name: '' }),
    ].map(({ status }) => status)
    assert.deepEqual(statuses, [400, 400, 400, 400, 200, 400, 400, 400, 400])
    const metrics = await shows(({ sum }) => sum('waitlist_signups_total') === 9)
    const counts = outcomes.map(outcome => [outcome, signups(metrics, outcome)] as const)
    assert.deepEqual(Object.fromEntries(counts.filter(([, count]) => count !== 0)), {
      new: 1,
      invalid: 1,
      unsolved: 5,
      blocked: 2,
    })
    await until(async () => /Challenge not solved/.test(await page()))
  })

  test('signups that are shed or not stored have outcomes too', async t => {
    const numbers = telemetry()
    const state = { behind: false, failing: false }
    const server = await openTestServer(
      t,
      {},
      store => ({
        ...store,
        isBehind: () => state.behind,
        admit: signup => (state.failing ? Promise.reject(new StoreUnavailable('a test')) : store.admit(signup)),
      }),
      { telemetry: numbers },
    )
    const client = await clientOf(server)
    assert.equal((await client.signUp(ada)).status, 200)
    state.behind = true
    assert.equal((await client.signUp(ada)).status, 500)
    Object.assign(state, { behind: false, failing: true })
    for (let time = 0; time < 2; time++) assert.equal((await client.signUp(ada)).status, 500)
    const { new: added, overloaded, failed, ...others } = numbers.signups
    assert.deepEqual([added, overloaded, failed], [1, 1, 2])
    assert.deepEqual([...new Set(Object.values(others))], [0])
  })

  test('a revoked key is visible: the breaker is open, with its reason; signups are kept', async t => {
    const fake = loopsFake()
    const vendor = await startReceiver(t, fake.answer)
    const settings = { PROVIDER: 'loops', ...loopsSettings(vendor.url) }
    const { client, shows } = await watched(t, settings)
    const breaker = ({ value }: Scraped) =>
      ['unreachable', 'misconfigured'].map(reason => value('waitlist_breaker_open', { destination: 'loops', reason }))
    await client.signUp(ada)
    await client.signUp({ ...ada, email: 'refused@example.com' })
    const before = await shows(({ sum }) => sum('waitlist_signups_total') === 2)
    assert.deepEqual(breaker(before), [0, 0])
    assert.deepEqual([signups(before, 'new'), signups(before, 'refused')], [1, 1])
    assert.equal(before.value('waitlist_provider_calls_total', { result: 'created' }), 1)
    assert.equal(before.value('waitlist_provider_calls_total', { result: 'refused' }), 1)

    const revoked = await watched(t, { ...settings, LOOPS_API_KEY: 'revoked' })
    await revoked.client.signUp(ada)
    const after = await revoked.shows(metrics => breaker(metrics)[1] === 1)
    assert.deepEqual(breaker(after), [0, 1])
    assert.equal(signups(after, 'kept'), 1)
    assert.ok(after.value('waitlist_provider_calls_total', { result: 'misconfigured' })! > 0)
  })

  test('whatever is asked, and by whatever method, there are no more series than routes, methods and statuses', async t => {
    const { service, shows } = await watched(t)
    const series = ({ samples }: Scraped) => samples.filter(({ name }) => name.startsWith('http_server_')).length
    const ask = async (method: string, path: string) => {
      await exchange(service.baseUrl, `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    }
    const methods = ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'QUERY', 'PROPFIND', 'MKCOL', 'LOCK', 'SEARCH']
    for (const method of methods) await ask(method, '/nothing')
    const total = ({ sum }: Scraped) => sum('http_server_request_duration_seconds_count')
    // With the description, which the client of the test reads.
    const before = await shows(metrics => total(metrics) === 12)
    for (const [i, method] of methods.entries()) await ask(method, `/nothing-${i}?q=${i}`)
    const after = await shows(metrics => total(metrics) === 23)
    assert.equal(series(after), series(before))
    const other = { http_request_method: '_OTHER', http_response_status_code: '404' }
    assert.equal(after.value('http_server_request_duration_seconds_count', other), 8)
    assert.doesNotMatch(after.text, /nothing|PROPFIND/)
  })

  test('connections are counted while they are open, by whether a request is under way', async t => {
    const { service, shows } = await watched(t)
    const { port } = new URL(service.baseUrl)
    const socket = connect(Number(port), '127.0.0.1')
    t.after(() => socket.destroy())
    await once(socket, 'connect')
    const states = ({ value }: Scraped) => ['active', 'idle'].map(state => value('waitlist_connections', { state }))
    const before = states(await shows(metrics => states(metrics)[1]! >= 1))
    const length = JSON.stringify(ada).length
    const head = `POST /api/waitlist HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
    socket.write(head)
    await shows(metrics => states(metrics)[0] === 1)
    socket.write(JSON.stringify(ada))
    await shows(metrics => states(metrics)[0] === 0 && states(metrics)[1] === before[1])
    socket.destroy()
    await shows(metrics => states(metrics)[1]! < before[1]!)
  })

  test('nothing of a person is in the metrics or on the page', async t => {
    const { client, service, shows } = await watched(t)
    await client.signUp(ada)
    await shows(metrics => signups(metrics, 'new') === 1)
    for (const path of ['/', '/metrics']) {
      const text = await (await fetch(service.adminOrigin + path)).text()
      assert.doesNotMatch(text, /Ada|Lovelace|example\.com|127\.0\.0\.1/i)
    }
  })

  test('histograms add up', async t => {
    const { client, shows } = await watched(t)
    for (let i = 0; i < 20; i++) await client.signUp({ ...ada, email: `ada-${i}@example.com` })
    const { samples, value } = await shows(({ sum }) => sum('waitlist_signups_total') === 20)
    const buckets = samples.filter(({ name }) => name.endsWith('_bucket'))
    assert.ok(buckets.length > 40)
    for (const [i, { name, labels, value: count }] of buckets.entries()) {
      const { le, ...others } = labels
      const next = buckets[i + 1]
      if (le === '+Inf') assert.equal(count, value(name.replace('_bucket', '_count'), others))
      else assert.ok(next!.value >= count && (next!.labels.le === '+Inf' || Number(next!.labels.le) > Number(le)))
    }
  })

  test('promtool finds nothing wrong', { skip: promtool === undefined && noPromtool }, async t => {
    const { client, service, shows } = await watched(t, { WEBHOOK_URL: 'http://127.0.0.1:9/', WEBHOOK_SECRET: SECRET })
    await client.signUp(ada)
    await shows(metrics => signups(metrics, 'new') === 1)
    const child = execFile(promtool!, ['check', 'metrics'])
    let said = ''
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on('data', text => {
        said += text
      })
    }
    child.stdin!.end(await (await fetch(`${service.adminOrigin}/metrics`)).text())
    const [code] = await once(child, 'close')
    assert.deepEqual([said, code], ['', 0])
  })
})

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** Values that take as long to make as the test says, by a clock that it moves. */
function made(options: Partial<TtlCacheOptions>) {
  const state = { now: 0, takes: 0, times: 0, fails: false }
  const get = ttlCache(
    async () => {
      state.now += state.takes
      if (state.fails) throw new Error('a failure of the test')
      return ++state.times
    },
    { fresh: 100, patience: 60_000, clock: () => state.now, ...options },
  )
  return { state, get: async () => (await get()).value, failed: async () => (await get()).failed }
}

test('a value is made once while it is fresh, and once for all who ask at the same time', async () => {
  const { state, get } = made({})
  assert.deepEqual(await Promise.all([get(), get(), get()]), [1, 1, 1])
  state.now += 99
  assert.equal(await get(), 1)
  state.now += 1
  assert.deepEqual(await Promise.all([get(), get()]), [2, 2])
})

test('a failure is remembered like a value, which stays, and is forgotten when the next attempt succeeds', async () => {
  const { state, get, failed } = made({})
  assert.equal(await get(), 1)
  state.fails = true
  state.now += 100
  assert.equal(await failed(), 'a failure of the test')
  assert.equal(await get(), 1)
  state.fails = false
  assert.equal(await failed(), 'a failure of the test')
  state.now += 100
  assert.equal(await failed(), null)
  assert.equal(await get(), 2)
})

test('nobody waits for longer than they have patience: they get the last value', async () => {
  const first = Promise.withResolvers<string>()
  const get = ttlCache(() => first.promise, { fresh: 0, patience: 10 })
  assert.deepEqual(await get(), { value: null, at: null, failed: null })
  first.resolve('made')
  assert.equal((await get()).value, 'made')
})
