import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { startService } from '../harness/service.ts'

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

test('C-90: the time is that of the request, also when the store was asked a moment ago', async t => {
  const { request } = await clientOf(await startService(t))
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

test('C-92: it is the same by HEAD, without content', async t => {
  const { request } = await clientOf(await startService(t))
  const { status, headers, text } = await request('/api/health', { method: 'HEAD' })
  assert.deepEqual([status, text], [200, ''])
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.match(headers.get('content-length') ?? '', /^[1-9]\d*$/)
})

test('conditions do not turn a health report into a 304', async t => {
  const { request } = await clientOf(await startService(t))
  const headers = { 'if-none-match': '*', 'if-modified-since': new Date().toUTCString() }
  assert.equal((await request('/api/health', { headers })).status, 200)
})
