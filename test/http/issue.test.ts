import assert from 'node:assert/strict'
import { test } from 'node:test'
import { altcha } from '../../src/challenges/altcha.ts'
import { ISSUING } from '../../src/http/wire/limits.ts'
import {
  challengeExpired,
  challengeFailed,
  challengeMissing,
  challengeSpent,
  methodNotAllowed,
  notFound,
  tooManyChallenges,
} from '../../src/http/wire/refusals.ts'
import type { Challenge } from '../../src/waitlist/ports/challenge.ts'
import { assertRefused, clientOf, withoutScripts } from '../harness/client.ts'
import { send } from '../harness/raw.ts'
import { openTestServer } from '../harness/server.ts'
import { startService, wholeFile } from '../harness/service.ts'
import { solved } from '../harness/solve.ts'

const path = '/api/challenge'
const easy = { CHALLENGE: 'altcha', CHALLENGE_RANGE: '5' }
const ada = { name: 'Ada', email: 'ada@example.com' }

const { request, signUp } = await clientOf(await startService(wholeFile, easy))

/** The whole answer as it is sent, without what is another one each time or names the path. */
const bytes = async (baseUrl: string, line: string) => {
  const { status, headers, text } = await send(baseUrl, [`${line} HTTP/1.1`, 'Host: x', 'Connection: close'])
  return [status, [...headers].filter(([name]) => name !== 'date'), text]
}

test('without altcha there is no such path, whatever the method, and no document speaks of it', async t => {
  const { baseUrl } = await startService(t)
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS']) {
    assert.deepEqual(await bytes(baseUrl, `${method} ${path}`), await bytes(baseUrl, `${method} /api/nothing`))
  }
  const { request } = await clientOf({ baseUrl })
  assertRefused(await request(path), 404, notFound.error)
  for (const document of ['/api/openapi.json', '/docs/api', '/.well-known/api-catalog', '/api/waitlist']) {
    assert.doesNotMatch(withoutScripts((await request(document)).text), /challenge|altcha/i, document)
  }
})

test('a challenge is made for each GET and HEAD, and no cache may keep it', async () => {
  const answers = [await request(path), await request(`${path}?x=1`)]
  for (const { status, headers, json } of answers) {
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('content-type'), 'application/json')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('set-cookie'), null)
    assert.equal(json.parameters.cost, 5_000)
  }
  assert.notEqual(answers[0]!.json.parameters.nonce, answers[1]!.json.parameters.nonce)
  const head = await request(path, { method: 'HEAD' })
  assert.deepEqual([head.status, head.text], [200, ''])
  assert.equal(head.headers.get('content-length'), answers[0]!.headers.get('content-length'))
})

test('other methods are a 405 that names those it has, and OPTIONS a 204', async () => {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const answer = await request(path, { method })
    assertRefused(answer, 405, methodNotAllowed('GET, HEAD, OPTIONS').error)
    assert.equal(answer.headers.get('allow'), 'GET, HEAD, OPTIONS')
  }
  const { status, headers } = await request(path, { method: 'OPTIONS' })
  assert.deepEqual([status, headers.get('allow')], [204, 'GET, HEAD, OPTIONS'])
})

test('the landing pages may read every answer, with and without credentials; other pages none', async t => {
  const origin = 'https://www.example.com'
  const env = { ...easy, CORS_ORIGINS: origin, RATE_LIMIT: '1', RATE_LIMIT_WINDOW: '10m' }
  const { request } = await clientOf(await startService(t, env))
  for (const expected of [200, 200, 200, 429]) {
    const { status, headers } = await request(path, { headers: { origin } })
    assert.equal(status, expected)
    assert.equal(headers.get('access-control-allow-origin'), origin)
    assert.equal(headers.get('access-control-allow-credentials'), 'true')
    assert.match(headers.get('access-control-expose-headers') ?? '', /Retry-After/)
    assert.equal(headers.get('vary'), 'Origin')
  }
  const { headers } = await request(path, { headers: { origin: 'https://elsewhere.example.com' } })
  assert.deepEqual(
    [...headers.keys()].filter(name => name.startsWith('access-control')),
    [],
  )
  assert.equal(headers.get('vary'), 'Origin')
  const asked = { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'content-type' }
  const preflight = await request(path, { method: 'OPTIONS', headers: asked })
  assert.equal(preflight.headers.get('access-control-allow-origin'), origin)
})

test('a client may fetch three for each attempt of its quota; both are counted apart', async t => {
  const env = { ...easy, RATE_LIMIT: '2', RATE_LIMIT_WINDOW: '10m', TRUST_PROXY: '1' }
  const { request, signUp } = await clientOf(await startService(t, env))
  const from = (address: string) => request(path, { headers: { 'x-forwarded-for': address } })
  for (let i = 0; i < 6; i++) assert.equal((await from('192.0.2.1')).status, 200)
  const answer = await from('192.0.2.1')
  const wait = Number(answer.headers.get('retry-after'))
  assert.ok(wait > 0 && wait <= 100, String(wait))
  assertRefused(answer, 429, tooManyChallenges(wait).error)
  assert.equal((await from('192.0.2.2')).status, 200, 'another client')
  assert.equal((await signUp({}, { 'x-forwarded-for': '192.0.2.1' })).status, 400, 'a signup')
  assert.equal((await request('/docs/api', { headers: { 'x-forwarded-for': '192.0.2.1' } })).status, 200, 'a document')
})

test('so many are made at once, and what is beyond that is refused; the failure of one is a 500', {
  timeout: 20_000,
}, async t => {
  const waiting: PromiseWithResolvers<string>[] = []
  const issue = () => {
    const one = Promise.withResolvers<string>()
    waiting.push(one)
    return one.promise
  }
  const challenge: Challenge = { ...altcha({ secret: 'x', range: 1 }), issue }
  const { baseUrl } = await openTestServer(t, {}, {}, undefined, { challenge })
  const refused = Promise.withResolvers<void>()
  const statuses: number[] = []
  const ask = async () => {
    statuses.push((await fetch(baseUrl + path)).status)
    if (statuses.length === 5) refused.resolve()
  }
  const asked = Array.from({ length: ISSUING + 5 }, ask)
  await refused.promise
  assert.deepEqual(statuses, Array(5).fill(500))
  const [first, ...others] = waiting
  assert.equal(others.length, ISSUING - 1)
  first!.reject(new Error('a bug'))
  for (const { resolve } of others) resolve('{}')
  await Promise.all(asked)
  assert.deepEqual(statuses.slice(5).sort(), [...Array(ISSUING - 1).fill(200), 500])
  const next = ask()
  while (waiting.length === ISSUING) await new Promise(setImmediate)
  waiting.at(-1)!.resolve('{}')
  await next
  assert.equal(statuses.at(-1), 200)
})

test('a signup needs a solution: none, a wrong one, an expired one, and one that was used for another address', async () => {
  const fresh = async () => solved((await request(path)).text)
  assertRefused(await signUp(ada), 400, challengeMissing.error)
  assertRefused(await signUp({ ...ada, altcha: 'x' }), 400, challengeFailed.error)
  const solution = await fresh()
  assertRefused(await signUp({ ...ada, altcha: solution.slice(0, -8) }), 400, challengeFailed.error)
  const first = await signUp({ ...ada, altcha: solution })
  assert.deepEqual([first.status, first.json.alreadyExisted], [200, false])
  const again = await signUp({ ...ada, email: 'ADA@example.com', altcha: solution })
  assert.deepEqual([again.status, again.json.alreadyExisted], [200, true])
  assertRefused(await signUp({ name: 'Bob', email: 'bob@example.com', altcha: solution }), 400, challengeSpent.error)
  const bob = await signUp({ name: 'Bob', email: 'bob@example.com', altcha: await fresh() })
  assert.deepEqual([bob.status, bob.json.alreadyExisted], [200, false])
})

test('one that has expired says so', async t => {
  const challenge = altcha({ secret: 'x', range: 1, lifetime: -1_000 })
  const { request, signUp } = await clientOf(await openTestServer(t, {}, {}, undefined, { challenge }))
  const late = await solved((await request(path)).text)
  assertRefused(await signUp({ ...ada, altcha: late }), 400, challengeExpired.error)
})
