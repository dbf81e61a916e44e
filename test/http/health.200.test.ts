import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { question, tellingSeen } from '../../src/http/routes/seen.ts'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { request } = await clientOf(await startService(wholeFile))

test('C-90, C-91: a healthy service reports exactly four members, as JSON that is never stored', async t => {
  const { request } = await clientOf(await startService(t, { SERVICE_NAME: 'Moonbase', SERVICE_DESCRIPTION: 'A base' }))
  const { status, headers, json } = await request('/api/health')
  assert.equal(status, 200)
  assert.equal(headers.get('content-type'), 'application/json')
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.equal(headers.get('etag'), null)
  assert.equal(headers.get('last-modified'), null)
  const { time, ...rest } = json
  assert.deepEqual(rest, { status: 'ok', service: 'Moonbase', description: 'A base' })
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('C-90: the time is that of the request, also when the store was asked a moment ago', async () => {
  let last = ''
  for (let i = 0; i < 3; i++) {
    const before = new Date().toISOString()
    const { time } = (await request('/api/health')).json
    assert.ok(before <= time && time <= new Date().toISOString(), `${time} lies within the request`)
    assert.ok(last < time)
    last = time
    await new Promise(resolve => setTimeout(resolve, 5))
  }
})

test('C-92: it is the same by HEAD, without content', async () => {
  const { status, headers, text } = await request('/api/health', { method: 'HEAD' })
  assert.deepEqual([status, text], [200, ''])
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.match(headers.get('content-length') ?? '', /^[1-9]\d*$/)
})

test('how a request is seen is told to a question that is signed now with the secret of the store, and to nobody else', async t => {
  const service = await startService(t, { TRUST_PROXY: '1' })
  // Not by a client that holds answers against the document, which does not have the field: visitors never see it.
  const ask = async (question: string) => {
    const headers = { 'waitlist-check': question, 'x-forwarded-for': '192.0.2.7' }
    return (await fetch(`${service.baseUrl}/api/health`, { headers })).headers.get('waitlist-seen')
  }
  for (const asked of ['', '1', `${'9'.repeat(13)}.x`, question('', Date.now())]) assert.equal(await ask(asked), null)
  const secret = (await sqliteOperator(service.databasePath).secret('check'))!
  const hour = 3_600_000
  for (const at of [Date.now() - hour, Date.now() + hour, Number.NaN])
    assert.equal(await ask(question(secret, at)), null)
  const asked = question(secret, Date.now())
  assert.equal(await ask(asked.slice(0, -1)), null)
  assert.deepEqual(JSON.parse((await ask(asked))!), {
    client: '192.0.2.7',
    peer: '127.0.0.1',
    proxies: { kind: 'hops', hops: 1 },
    forwarded: '192.0.2.7',
    sign: null,
  })
})

test('the secret is read for one stranger at a time, only for a question of now, and never while the store is unwell', async () => {
  let [asked, status] = [0, 200]
  const health = tellingSeen(() => ({ status, fields: [], body: null }), {
    proxies: { kind: 'none' },
    async secret() {
      asked++
      throw new StoreUnavailable('busy')
    },
  })
  const ask = (at: number) => health({ headers: { 'waitlist-check': question('', at) } } as unknown as IncomingMessage)
  for (const [at, expected] of [
    [0, 0],
    [Date.now(), 1],
    [Date.now(), 2],
  ] as const) {
    await Promise.all([ask(at), ask(at), ask(at)])
    assert.equal(asked, expected)
  }
  status = 503
  await ask(Date.now())
  assert.equal(asked, 2)
})
