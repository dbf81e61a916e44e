import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import { type Client, clientOf } from '../harness/client.ts'
import { freePort } from '../harness/port.ts'
import { openTestServer } from '../harness/server.ts'
import { startService } from '../harness/service.ts'

const https = { BASE_URL: 'https://waitlist.example.org' }
const signup = { name: 'Ada', email: 'ada@example.com' }

const configurations: readonly [what: string, env: Record<string, string>, cookie: string][] = [
  ['plain HTTP (C-48)', {}, 'waitlist=1; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax'],
  ['https', https, '__Host-waitlist=1; Path=/; Max-Age=31536000; HttpOnly; Secure; SameSite=Lax'],
  ['strict', { COOKIE_SAME_SITE: 'strict' }, 'waitlist=1; Path=/; Max-Age=31536000; HttpOnly; SameSite=Strict'],
  [
    'another site (C-49)',
    { ...https, COOKIE_SAME_SITE: 'none' },
    '__Host-waitlist=1; Path=/; Max-Age=31536000; HttpOnly; Secure; SameSite=None; Partitioned',
  ],
]

for (const [what, env, cookie] of configurations) {
  test(`C-46, C-47: the cookie of a service with ${what}, on every 200 of POST, new and known`, async t => {
    const port = await freePort()
    await startService(t, { ...env, PORT: String(port) })
    const client = await clientOf({ baseUrl: `http://127.0.0.1:${port}` })
    for (const _ of ['new', 'known']) {
      assert.deepEqual((await client.signUp(signup)).headers.getSetCookie(), [cookie])
    }
  })
}

const setsNone = async (answer: ReturnType<Client['request']>, status: number): Promise<void> => {
  const { headers, ...rest } = await answer
  assert.equal(rest.status, status)
  assert.deepEqual(headers.getSetCookie(), [])
}

test('C-46: nothing else sets a cookie', async t => {
  const { request, signUp } = await clientOf(await startService(t, { RATE_LIMIT: '4' }))
  await setsNone(signUp('{}'), 400)
  await setsNone(signUp(' '.repeat(20_000)), 413)
  await setsNone(signUp('{}', { 'content-type': 'text/plain' }), 415)
  await signUp(signup)
  await setsNone(signUp(signup), 429)
  for (const path of ['/api/waitlist', '/api/health', '/api/openapi.json', '/docs/api', '/.well-known/api-catalog']) {
    await setsNone(request(path), 200)
    await setsNone(request(path, { method: 'HEAD' }), 200)
    await setsNone(request(path, { method: 'OPTIONS' }), 204)
    await setsNone(request(path, { method: 'PUT' }), 405)
  }
  await setsNone(request('/'), 302)
  await setsNone(request('/nothing'), 404)
  const full = await clientOf(await openTestServer(t, { minimumFree: Number.MAX_SAFE_INTEGER }))
  await setsNone(full.signUp(signup), 500)
})

test('C-47: the cookie is the same for everybody and grants nothing: sending it back changes no answer', async t => {
  const { signUp } = await clientOf(await startService(t))
  const first = await signUp(signup)
  const cookie = first.headers.getSetCookie()[0]!
  const other = await signUp({ name: 'Bob', email: 'bob@example.com' }, { cookie: cookie.split(';')[0]! })
  assert.equal(other.json.alreadyExisted, false)
  assert.equal(other.headers.getSetCookie()[0], cookie)
  assert.ok(!cookie.includes(first.json.contactId))
})

test('C-47, C-48: settings that a browser would answer by dropping the cookie are refused at the start', async () => {
  const bad: readonly [env: Record<string, string>, names: string][] = [
    [{ COOKIE_SAME_SITE: 'none' }, 'COOKIE_SAME_SITE'],
    [{ ...https, COOKIE_SAME_SITE: 'Lax' }, 'COOKIE_SAME_SITE'],
  ]
  for (const [env, name] of bad) {
    const result = await readConfig(env)
    assert.ok('mistakes' in result, JSON.stringify(env))
    assert.match(result.mistakes.join('\n'), new RegExp(`^${name} `, 'm'))
  }
})
