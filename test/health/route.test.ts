import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { assertRefused, clientOf } from '../harness/client.ts'
import { full, openTestServer, startService } from '../harness/service.ts'

const UNHEALTHY = 'the service is not able to take signups at the moment'

test('C-90, C-91: a healthy service reports exactly four members, as JSON that is never stored', async t => {
  const { request } = await clientOf(await startService(t, { SERVICE_NAME: 'Moonbase', SERVICE_DESCRIPTION: 'A base' }))
  const { status, headers, json } = await request('/api/health')
  assert.equal(status, 200)
  const fields = ['content-type', 'cache-control', 'etag', 'last-modified'].map(name => headers.get(name))
  assert.deepEqual(fields, ['application/json', 'no-store', null, null])
  const { time, ...rest } = json
  assert.deepEqual(rest, { status: 'ok', service: 'Moonbase', description: 'A base' })
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('C-92, C-93: a store without room, or whose file another program has locked, makes health 503, in the envelope alone', async t => {
  const { request } = await clientOf(await openTestServer(t, {}, full))
  for (const method of ['GET', 'HEAD']) {
    const answer = await request('/api/health', { method })
    assert.deepEqual([answer.status, answer.headers.get('cache-control')], [503, 'no-store'])
    if (method === 'GET') assertRefused(answer, 503, UNHEALTHY)
  }
  const service = await startService(t)
  const client = await clientOf(service)
  const other = new DatabaseSync(service.databasePath)
  t.after(() => other.close())
  other.exec('begin immediate')
  assert.equal((await client.request('/api/health')).status, 503)
  other.exec('rollback')
})

test('C-92: a check that does not answer in time makes health 503 for everybody who asked', async t => {
  const never = new Promise<void>(() => {})
  const { request } = await clientOf(await openTestServer(t, {}, store => ({ ...store, check: () => never })))
  const answers = await Promise.all([request('/api/health'), request('/api/health')])
  for (const answer of answers) assertRefused(answer, 503, UNHEALTHY)
})

test('C-93, C-104: a service that is stopping says 503, serves the rest, and is gone in the end', async t => {
  const service = await startService(t, { SHUTDOWN_DELAY: '1s' })
  const { request } = await clientOf(service)
  assert.equal((await request('/api/health')).status, 200)
  const stopped = service.stop()
  const answer = await request('/api/health')
  assertRefused(answer, 503, 'the service is shutting down')
  assert.equal(answer.headers.get('connection'), 'close')
  assert.equal((await request('/api/waitlist')).status, 200, 'other requests are still served')
  await stopped
  await assert.rejects(request('/api/health'))
})
