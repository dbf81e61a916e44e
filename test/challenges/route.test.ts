import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { altcha } from '../../src/challenges/altcha.ts'
import { type Challenge, SOLUTION_MAX } from '../../src/challenges/index.ts'
import * as refusals from '../../src/http/errors.ts'
import { MAX_CONCURRENT_CHALLENGES } from '../../src/http/limits.ts'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { withDatabase } from '../harness/database.ts'
import { type Received, startReceiver } from '../harness/receiver.ts'
import { openTestServer, startService, type TestService, wholeFile } from '../harness/service.ts'
import { quickSolution, solved } from '../harness/solve.ts'
import { type Kind, kinds, members, SECRET, startVerifier } from './siteverify.fake.ts'

const origin = 'https://landing.example.com'
const ada = { name: 'Ada', email: 'ada@example.com' }
const grace = { name: 'Grace', email: 'grace@example.com' }

/** A service behind the challenge of a vendor. */
async function challenged(t: TestContext, kind: Kind = 'turnstile', env: Record<string, string> = {}) {
  const verifier = await startVerifier(t, kind)
  const vendor = { CHALLENGE: kind, CHALLENGE_SECRET: SECRET, CHALLENGE_URL: verifier.address }
  const service = await startService(t, { ...vendor, CORS_ORIGINS: origin, ...env })
  const { request, signUp } = await clientOf(service)
  const withToken = (person: object, token: unknown) => signUp({ ...person, [members[kind]]: token })
  return { verifier, service, request, signUp, withToken }
}

/** State and reason of each contact, in order. */
const storedIn = ({ databasePath }: TestService) =>
  withDatabase(databasePath, database =>
    database.prepare('select email, state, reason from contact order by number').all(),
  )

const isNew = ({ status, json }: Answer) => {
  assert.equal(status, 200)
  assert.deepEqual([json.alreadyExisted, json.automationTriggered], [false, true])
}

for (const kind of kinds) {
  test(`${kind}: with the widget’s member, or with the header`, async t => {
    const { verifier, withToken, signUp, request } = await challenged(t, kind)
    isNew(await withToken(ada, verifier.solve()))
    isNew(await signUp(grace, { 'x-captcha-response': verifier.solve() }))
    assertRefused(await signUp(ada), 400, refusals.challengeMissing.error)
    const { json } = await request('/api/openapi.json')
    assert.ok(json.paths['/api/waitlist'].post.description.includes(`\`${members[kind]}\``))
  })
}

test('every refusal has its sentence', async t => {
  const { verifier, withToken, signUp } = await challenged(t)
  for (const token of [undefined, null, '']) {
    assertRefused(await withToken(ada, token), 400, refusals.challengeMissing.error)
  }
  assertRefused(await signUp(ada, { 'x-captcha-response': '' }), 400, refusals.challengeMissing.error)
  for (const token of [7, true, {}, ['x'], 'two words', 'ü', ' x', 'x\n', 'x'.repeat(SOLUTION_MAX + 1), '\u0000']) {
    assertRefused(await withToken(ada, token), 400, refusals.challengeFailed.error)
  }
  assert.equal(verifier.received.length, 0, 'none of them is worth a call')
  assertRefused(await withToken(ada, 'made-up'), 400, refusals.challengeFailed.error)
  const token = verifier.solve()
  isNew(await withToken(ada, token))
  assertRefused(await withToken(grace, token), 400, refusals.challengeExpired.error)
})

test('the verifier is told the address of the visitor, and never that of a private network', async t => {
  const { verifier, signUp } = await challenged(t, 'hcaptcha', { TRUST_PROXY: '1' })
  const addressFor = async (forwarded: string) => {
    const token = verifier.solve()
    await signUp({ ...ada, [members.hcaptcha]: token }, { 'x-forwarded-for': forwarded })
    return new URLSearchParams((verifier.received.at(-1) as Received).text).get('remoteip')
  }
  assert.equal(await addressFor('9.9.9.9'), '9.9.9.9')
  assert.equal(await addressFor('2A00:0::7'), '2a00::7')
  assert.equal(await addressFor('198.51.100.1, 10.0.0.7'), null)
})

test('a wrong secret: 500, nothing stored, and the log says so once', async t => {
  const { verifier, withToken, service } = await challenged(t, 'turnstile', { CHALLENGE_SECRET: 'another-secret-0123' })
  for (let i = 0; i < 4; i++) assertRefused(await withToken(ada, verifier.solve()), 500, refusals.unavailable.error)
  assert.deepEqual(storedIn(service), [])
  const errors = service.logged.filter(({ level }) => Number(level) >= 50)
  assert.equal(errors.length, 1)
  assert.match(String(errors[0]!.msg), /signups are refused: our settings of the challenge are wrong/)
  assert.match(String(errors[0]!.reason), /invalid-input-secret.*CHALLENGE_SECRET/)
  assert.doesNotMatch(JSON.stringify(service.logged), /another-secret|ada@|token_of/)
})

test('while a verifier is away, signups are stored and held, and nothing is sent', async t => {
  const receiver = await startReceiver(t, () => ({ status: 204 }))
  const { verifier, withToken, service } = await challenged(t, 'turnstile', {
    WEBHOOK_URL: `${receiver.url}/hook`,
    WEBHOOK_SECRET: `whsec_${Buffer.alloc(24, 'x').toString('base64')}`,
  })
  const faults = ['reset before', 'truncated JSON', '502 with HTML'] as const
  const emails = ['ada0@example.com', 'ada1@example.com', 'ada2@example.com']
  const recorded = { success: true, message: 'Your signup is recorded.', automationTriggered: false }
  for (const [i, email] of emails.entries()) {
    verifier.next(faults[i]!)
    const { status, json } = await withToken({ name: 'Ada', email }, verifier.solve())
    assert.deepEqual([status, json], [200, { ...recorded, alreadyExisted: false }])
  }
  const again = await withToken({ name: 'Ada', email: emails[0] }, verifier.solve())
  assert.deepEqual(again.json, { ...recorded, alreadyExisted: true })
  isNew(await withToken(grace, verifier.solve()))
  await receiver.arrived(1)
  assert.deepEqual(
    storedIn(service).map(({ email, state, reason }) => [email, state, reason]),
    [...emails.map(email => [email, 'held', 'unverified']), [grace.email, 'listed', null]],
  )
  assert.deepEqual(
    receiver.received.map(({ json }) => json.data.email),
    [grace.email],
  )
  const lines = service.logged.filter(({ msg }) => msg === 'challenges cannot be verified: signups are held')
  assert.equal(lines.length, 1)
  assert.match(String(lines[0]!.reason), /^verify a challenge: /)
  assert.doesNotMatch(JSON.stringify(service.logged), /ada\d|token_of|the-secret/)
})

const path = '/api/challenge'
const withAltcha = { CHALLENGE: 'altcha', CHALLENGE_SECRET: SECRET, CORS_ORIGINS: origin }

const { request, signUp } = await clientOf(await startService(wholeFile, withAltcha))

test('without altcha there is no such path, and a page may not send the header', async t => {
  const preflight = { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } }
  const permitted = async (ask: typeof request) =>
    (await ask('/api/waitlist', preflight)).headers.get('access-control-allow-headers')
  assert.equal(await permitted(request), 'Content-Type, X-Captcha-Response')
  const without = await clientOf(await startService(t, { CORS_ORIGINS: origin }))
  assert.equal(await permitted(without.request), 'Content-Type')
  for (const method of ['GET', 'POST', 'OPTIONS'])
    assertRefused(await without.request(path, { method }), 404, refusals.notFound.error)
})

test('a challenge is made for each GET and HEAD, and no cache may keep it', async () => {
  const answers = [await request(path), await request(`${path}?x=1`)]
  for (const { status, headers, json } of answers) {
    assert.deepEqual([status, headers.get('content-type')], [200, 'application/json'])
    assert.deepEqual([headers.get('cache-control'), headers.get('set-cookie')], ['no-store', null])
    assert.equal(json.parameters.cost, 5_000)
  }
  assert.notEqual(answers[0]!.json.parameters.nonce, answers[1]!.json.parameters.nonce)
  const head = await request(path, { method: 'HEAD' })
  assert.deepEqual([head.status, head.text], [200, ''])
  assert.equal(head.headers.get('content-length'), answers[0]!.headers.get('content-length'))
})

test('a client may fetch three for each attempt of its quota, counted apart; a landing page may read every answer', async t => {
  const env = { ...withAltcha, RATE_LIMIT: '2/10m', TRUST_PROXY: '1' }
  const { request, signUp } = await clientOf(await startService(t, env))
  const from = async (address: string) => {
    const answer = await request(path, { headers: { 'x-forwarded-for': address, origin } })
    assert.equal(answer.headers.get('access-control-allow-origin'), origin)
    return answer
  }
  for (let i = 0; i < 6; i++) assert.equal((await from('192.0.2.1')).status, 200)
  const answer = await from('192.0.2.1')
  const wait = Number(answer.headers.get('retry-after'))
  assert.ok(wait > 0 && wait <= 100, String(wait))
  assertRefused(answer, 429, refusals.tooManyChallenges(wait).error)
  assert.equal((await from('192.0.2.2')).status, 200, 'another client')
  assert.equal((await signUp({}, { 'x-forwarded-for': '192.0.2.1' })).status, 400, 'a signup')
})

test('so many are made at once, and what is beyond that is refused', async t => {
  const made = Promise.withResolvers<string>()
  const challenge: Challenge = { ...altcha('x'), issue: () => made.promise }
  const { baseUrl } = await openTestServer(t, {}, undefined, { challenge })
  const refused = Promise.withResolvers<void>()
  const statuses: number[] = []
  const fetchOne = async () => {
    statuses.push((await fetch(baseUrl + path)).status)
    if (statuses.length === 5) refused.resolve()
  }
  const all = Array.from({ length: MAX_CONCURRENT_CHALLENGES + 5 }, fetchOne)
  await refused.promise
  assert.deepEqual(statuses, Array(5).fill(500))
  made.resolve('{}')
  await Promise.all(all)
  assert.deepEqual(statuses.slice(5), Array(MAX_CONCURRENT_CHALLENGES).fill(200))
})

test('a signup needs a solution: none, a wrong one, and one that was used for another address', async () => {
  assertRefused(await signUp(ada), 400, refusals.challengeMissing.error)
  assertRefused(await signUp({ ...ada, altcha: 'x' }), 400, refusals.challengeFailed.error)
  const solution = await solved((await request(path)).text)
  assertRefused(await signUp({ ...ada, altcha: solution.slice(0, -8) }), 400, refusals.challengeFailed.error)
  isNew(await signUp({ ...ada, altcha: solution }))
  const again = await signUp({ ...ada, email: 'ADA@example.com', altcha: solution })
  assert.deepEqual([again.status, again.json.alreadyExisted], [200, true])
  assertRefused(await signUp({ ...grace, altcha: solution }), 400, refusals.challengeSpent.error)
  isNew(await signUp({ ...grace, altcha: await quickSolution(SECRET) }))
})
