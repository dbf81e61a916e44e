import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { altcha } from '../../src/challenges/altcha.ts'
import { type Challenge, SOLUTION_MAX } from '../../src/challenges/index.ts'
import * as refusals from '../../src/http/errors.ts'
import { BODY_LIMIT, ISSUING } from '../../src/http/limits.ts'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { withDatabase } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { type Received, startReceiver } from '../harness/receiver.ts'
import { openTestServer, startService, type TestService, wholeFile } from '../harness/service.ts'
import { quickSolution, solved } from '../harness/solve.ts'
import { HOST, type Kind, kinds, SECRET, startVerifier, members as vendorMembers } from './siteverify.fake.ts'

const origin = `https://${HOST}`
const ada = { name: 'Ada', email: 'ada@example.com' }
const grace = { name: 'Grace', email: 'grace@example.com' }

/** The members of a body in which solutions are sent. */
const members = { ...vendorMembers, altcha: 'altcha' }

/** A service behind a challenge of this kind. */
async function challenged(t: TestContext, kind: Kind | 'altcha' = 'turnstile', env: Record<string, string> = {}) {
  const verifier = await startVerifier(t, kind === 'altcha' ? 'turnstile' : kind)
  const settings = {
    CHALLENGE: kind,
    CHALLENGE_SECRET: SECRET,
    ...(kind !== 'altcha' && { CHALLENGE_URL: verifier.address }),
    CORS_ORIGINS: origin,
    ...env,
  }
  const service = await startService(t, settings)
  const { request, signUp } = await clientOf({ baseUrl: service.origin })
  const withToken = (person: object, token: unknown) => signUp({ ...person, [members[kind]]: token })
  return { verifier, settings, service, request, signUp, withToken }
}

/** State and reason of each contact, in order. */
const storedIn = ({ databasePath }: TestService) =>
  withDatabase(databasePath, database =>
    database
      .prepare('select email, state, reason from contact order by number')
      .all()
      .map(row => ({ ...row })),
  )

const isNew = ({ status, json }: Answer) => {
  assert.equal(status, 200)
  assert.deepEqual([json.alreadyExisted, json.automationTriggered], [false, true])
}

function isHeld({ status, json }: Answer): void {
  assert.equal(status, 200)
  const { success, message, ...others } = json
  assert.deepEqual([success, message], [true, 'Your signup is recorded.'])
  assert.deepEqual(others, { alreadyExisted: false, automationTriggered: false })
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
  assert.ok(SOLUTION_MAX < BODY_LIMIT / 1.5)
  for (const token of [7, true, {}, ['x'], 'two words', 'ü', ' x', 'x\n', 'x'.repeat(SOLUTION_MAX + 1), '\u0000']) {
    assertRefused(await withToken(ada, token), 400, refusals.challengeFailed.error)
  }
  assert.equal(verifier.received.length, 0, 'none of them is worth a call')
  assertRefused(await withToken(ada, 'made-up'), 400, refusals.challengeFailed.error)
  assertRefused(await withToken(ada, verifier.solve({ host: 'shop.example' })), 400, refusals.challengeFailed.error)
  const old = verifier.solve()
  verifier.expire(old)
  assertRefused(await withToken(ada, old), 400, refusals.challengeExpired.error)
  const token = verifier.solve()
  isNew(await withToken(ada, token))
  assertRefused(await withToken(grace, token), 400, refusals.challengeExpired.error)
})

test('BASE_URL is a page as well', async t => {
  const env = { CORS_ORIGINS: '', BASE_URL: origin, TRUST_PROXY: '1' }
  const { verifier, withToken } = await challenged(t, 'hcaptcha', env)
  assertRefused(await withToken(ada, verifier.solve({ host: 'shop.example' })), 400, refusals.challengeFailed.error)
  isNew(await withToken(ada, verifier.solve()))
})

test('the verifier is told the address of the visitor, and never that of a private network', async t => {
  const { verifier, signUp } = await challenged(t, 'hcaptcha', { TRUST_PROXY: '1' })
  const told = async (forwarded: string) => {
    const token = verifier.solve()
    await signUp({ ...ada, [members.hcaptcha]: token }, { 'x-forwarded-for': forwarded })
    return new URLSearchParams((verifier.received.at(-1) as Received).text).get('remoteip')
  }
  assert.equal(await told('203.0.113.9'), '203.0.113.9')
  assert.equal(await told('2001:DB8:0::7'), '2001:db8::7')
  assert.equal(await told('198.51.100.1, 10.0.0.7'), null)
})

test('C-52: a landing page may send the header while there is a challenge, and only then', async t => {
  const preflight = {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,x-captcha-response',
    },
  }
  const { request } = await challenged(t)
  const permitted = (answer: Answer) => answer.headers.get('access-control-allow-headers')
  assert.equal(permitted(await request('/api/waitlist', preflight)), 'Content-Type, X-Captcha-Response')
  const without = await clientOf(await startService(t, { CORS_ORIGINS: origin }))
  assert.equal(permitted(await without.request('/api/waitlist', preflight)), 'Content-Type')
})

test('a wrong secret: 500, nothing stored, and the log says so once', async t => {
  const { verifier, withToken, service } = await challenged(t, 'turnstile', { CHALLENGE_SECRET: 'another-secret-0123' })
  for (let i = 0; i < 4; i++) assertRefused(await withToken(ada, verifier.solve()), 500, refusals.unavailable.error)
  assert.deepEqual(storedIn(service), [])
  const told = service.logged.filter(({ level }) => Number(level) >= 50)
  assert.equal(told.length, 1)
  assert.match(String(told[0]!.msg), /signups are refused: our settings of the challenge are wrong/)
  assert.match(String(told[0]!.reason), /invalid-input-secret.*CHALLENGE_SECRET/)
  assert.doesNotMatch(JSON.stringify(service.logged), /another-secret|ada@|token_of/)
})

test('while a verifier is away, signups are stored and held; nobody is told, and a second try hears the same sentence', async t => {
  const receiver = await startReceiver(t, () => ({ status: 204 }))
  const { verifier, withToken, service } = await challenged(t, 'turnstile', {
    WEBHOOK_URL: `${receiver.url}/hook`,
    WEBHOOK_SECRET: `whsec_${Buffer.alloc(24, 'x').toString('base64')}`,
  })
  verifier.next('reset before', 'truncated JSON', '502 with HTML', '503', '500 after')
  const people = Array.from({ length: 5 }, (_, i) => ({ name: 'Ada', email: `ada${i}@example.com` }))
  for (const person of people) isHeld(await withToken(person, verifier.solve()))
  const again = await withToken(people[0]!, verifier.solve())
  const message = 'Your signup is recorded.'
  assert.equal(again.status, 200)
  assert.deepEqual(again.json, { success: true, message, alreadyExisted: true, automationTriggered: false })
  verifier.behave()
  isNew(await withToken(grace, verifier.solve()))
  await receiver.arrived(1)
  const held = storedIn(service).filter(({ state }) => state === 'held')
  assert.ok(held.length >= 5)
  for (const { reason } of held) assert.equal(reason, 'unverified')
  const told = receiver.received.map(({ json }) => json.data.email)
  for (const { email } of held) assert.ok(!told.includes(email))
  const lines = service.logged.filter(({ msg }) => msg === 'challenges cannot be verified: signups are held')
  assert.equal(lines.length, 1)
  assert.match(String(lines[0]!.reason), /^verify a challenge: /)
  assert.doesNotMatch(JSON.stringify(service.logged), /ada\d|token_of|the-secret/)
})

for (const kind of ['altcha', 'turnstile'] as const) {
  test(`${kind}: whatever is sent as a solution is refused with 400, and the log has no error`, async t => {
    const { service, signUp } = await challenged(t, kind)
    const encoded = fc
      .record({ challenge: fc.jsonValue(), solution: fc.jsonValue() })
      .map(value => Buffer.from(JSON.stringify(value)).toString('base64'))
    await fc.assert(
      fc.asyncProperty(fc.oneof(encoded, fc.string({ unit: 'binary' }), fc.jsonValue()), async solution => {
        assert.equal((await signUp({ ...ada, [members[kind]]: solution })).status, 400)
      }),
      { numRuns: isSlow ? 100 : 25 },
    )
    assert.ok(service.logged.every(({ level }) => Number(level) < 50))
  })
}

const path = '/api/challenge'
const easy = { CHALLENGE: 'altcha', CHALLENGE_SECRET: SECRET }

const { request, signUp } = await clientOf(await startService(wholeFile, easy))

test('without altcha there is no such path', async t => {
  const { request } = await clientOf(await startService(t))
  for (const method of ['GET', 'POST', 'OPTIONS'])
    assertRefused(await request(path, { method }), 404, refusals.notFound.error)
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

test('the landing pages may read every answer', async t => {
  const { request } = await clientOf(await startService(t, { ...easy, CORS_ORIGINS: origin, RATE_LIMIT: '1/10m' }))
  for (const expected of [200, 200, 200, 429]) {
    const { status, headers } = await request(path, { headers: { origin } })
    assert.deepEqual([status, headers.get('access-control-allow-origin')], [expected, origin])
  }
})

test('a client may fetch three for each attempt of its quota; both are counted apart', async t => {
  const env = { ...easy, RATE_LIMIT: '2/10m', TRUST_PROXY: '1' }
  const { request, signUp } = await clientOf(await startService(t, env))
  const from = (address: string) => request(path, { headers: { 'x-forwarded-for': address } })
  for (let i = 0; i < 6; i++) assert.equal((await from('192.0.2.1')).status, 200)
  const answer = await from('192.0.2.1')
  const wait = Number(answer.headers.get('retry-after'))
  assert.ok(wait > 0 && wait <= 100, String(wait))
  assertRefused(answer, 429, refusals.tooManyChallenges(wait).error)
  assert.equal((await from('192.0.2.2')).status, 200, 'another client')
  assert.equal((await signUp({}, { 'x-forwarded-for': '192.0.2.1' })).status, 400, 'a signup')
  assert.equal((await request('/docs/api', { headers: { 'x-forwarded-for': '192.0.2.1' } })).status, 200, 'a document')
})

test('so many are made at once, and what is beyond that is refused', async t => {
  const made = Promise.withResolvers<string>()
  const challenge: Challenge = { ...altcha('x'), issue: () => made.promise }
  const { baseUrl } = await openTestServer(t, {}, undefined, { challenge })
  const refused = Promise.withResolvers<void>()
  const statuses: number[] = []
  const ask = async () => {
    statuses.push((await fetch(baseUrl + path)).status)
    if (statuses.length === 5) refused.resolve()
  }
  const asked = Array.from({ length: ISSUING + 5 }, ask)
  await refused.promise
  assert.deepEqual(statuses, Array(5).fill(500))
  made.resolve('{}')
  await Promise.all(asked)
  assert.deepEqual(statuses.slice(5), Array(ISSUING).fill(200))
})

test('a signup needs a solution: none, a wrong one, an expired one, and one that was used for another address', async () => {
  const fresh = () => quickSolution(SECRET)
  assertRefused(await signUp(ada), 400, refusals.challengeMissing.error)
  assertRefused(await signUp({ ...ada, altcha: 'x' }), 400, refusals.challengeFailed.error)
  const solution = await solved((await request(path)).text)
  assertRefused(await signUp({ ...ada, altcha: solution.slice(0, -8) }), 400, refusals.challengeFailed.error)
  const first = await signUp({ ...ada, altcha: solution })
  assert.deepEqual([first.status, first.json.alreadyExisted], [200, false])
  const again = await signUp({ ...ada, email: 'ADA@example.com', altcha: solution })
  assert.deepEqual([again.status, again.json.alreadyExisted], [200, true])
  assertRefused(
    await signUp({ name: 'Bob', email: 'bob@example.com', altcha: solution }),
    400,
    refusals.challengeSpent.error,
  )
  const bob = await signUp({ name: 'Bob', email: 'bob@example.com', altcha: await fresh() })
  assert.deepEqual([bob.status, bob.json.alreadyExisted], [200, false])
})
