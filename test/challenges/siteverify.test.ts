import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type Siteverify, siteverify } from '../../src/challenges/siteverify.ts'
import type { Misbehaviour, Said } from '../harness/receiver.ts'
import { startReceiver } from '../harness/receiver.ts'
import { HOST, type Kind, kinds, members, SECRET, SITE_KEY, startVerifier } from './siteverify.fake.ts'

const never = new AbortController().signal
const wrong = { is: 'unsolved', why: 'wrong' }
const expired = { is: 'unsolved', why: 'expired' }

function opened(kind: Kind, url: string, change: Partial<Siteverify> = {}) {
  const warned: string[] = []
  const log = { info() {}, error() {}, warn: (details: object) => void warned.push(JSON.stringify(details)) }
  const challenge = siteverify({ kind, secret: SECRET, siteKey: SITE_KEY, url, ...change }, { hosts: [HOST], log })
  const verify = (token: string, visitor: string | null = null, stop = never) => challenge.verify(token, visitor, stop)
  return { challenge, verify, warned }
}

async function started(t: TestContext, kind: Kind, change: Partial<Siteverify> = {}) {
  const verifier = await startVerifier(t, kind)
  return { verifier, ...opened(kind, verifier.address, change) }
}

for (const kind of kinds) {
  describe(kind, () => {
    test('the member of its widget, and a call of the documented form', async t => {
      const { verifier, challenge, verify } = await started(t, kind)
      assert.deepEqual([challenge.name, challenge.member, challenge.issue], [kind, members[kind], null])
      const token = verifier.solve()
      const verdict = await verify(token, '192.0.2.7')
      assert.ok(verdict.is === 'solved' && verdict.proof.expires.getTime() > Date.now())
      assert.match(verdict.proof.nonce, /^[\w-]{43}$/)
      const { method, headers, text, json } = verifier.received[0]!
      const body = { secret: SECRET, response: token }
      assert.equal(method, 'POST')
      if (kind === 'cap') return assert.deepEqual(json, body)
      assert.equal(headers['content-type'], 'application/x-www-form-urlencoded')
      assert.deepEqual(Object.fromEntries(new URLSearchParams(text)), { ...body, remoteip: '192.0.2.7' })
    })

    test('made-up and old tokens are refused', async t => {
      const { verifier, verify } = await started(t, kind)
      assert.equal((await verify('made:up:token')).is, 'unsolved')
      const old = verifier.solve()
      verifier.expire(old)
      assert.deepEqual(await verify(old), expired)
    })

    test('a wrong secret is misconfigured, and not told; the check finds it', async t => {
      const { verifier, challenge } = await started(t, kind)
      assert.equal(await challenge.check(never), null)
      const other = opened(kind, verifier.address, { secret: 'another-secret-0123' })
      const verdict = await other.verify(verifier.solve())
      const failure = await other.challenge.check(never)
      for (const each of [verdict, failure]) {
        assert.ok(each?.is === 'misconfigured')
        assert.match(each.why, /CHALLENGE_SECRET/)
        assert.doesNotMatch(each.why, /another-secret/)
      }
      verifier.next('502 with HTML')
      assert.equal((await challenge.check(never))?.is, 'unreachable')
    })

    const away: readonly Misbehaviour[] = [
      'reset before',
      '500 before',
      '502 with HTML',
      '503',
      '429',
      'truncated JSON',
    ]
    test('while it is away, solutions are unverified and never refused', async t => {
      const { verifier, verify } = await started(t, kind)
      for (const what of away) {
        const token = verifier.solve()
        verifier.next(what)
        const verdict = await verify(token)
        assert.ok(verdict.is === 'unverified', what)
        assert.ok(!verdict.why.includes(token) && !verdict.why.includes(SECRET), verdict.why)
      }
      assert.equal((await opened(kind, 'http://127.0.0.1:1/x/siteverify').verify('a:b:c')).is, 'unverified')
    })
  })
}

/** What a visitor hears of each refusal that a vendor documents; a secret that is refused is the operator's trouble. */
const refusals: readonly (readonly [kind: Kind, said: Said, verdict: object | 'misconfigured' | 'unverified'])[] = [
  ...['missing-input-secret', 'invalid-input-secret'].map(
    code => ['turnstile', listed(code), 'misconfigured'] as const,
  ),
  ['turnstile', listed('invalid-input-response', 'invalid-input-secret'), 'misconfigured'],
  ['turnstile', listed('invalid-input-response'), wrong],
  ['turnstile', listed('timeout-or-duplicate'), expired],
  ['turnstile', listed('internal-error'), 'unverified'],
  ['hcaptcha', listed('invalid-input-secret'), 'misconfigured'],
  ['hcaptcha', listed('sitekey-secret-mismatch'), wrong],
  ['hcaptcha', listed('not-using-dummy-passcode'), wrong],
  ['hcaptcha', listed('expired-input-response'), expired],
  ['hcaptcha', listed('invalid-or-already-seen-response'), expired],
  ['cap', cap(403, 'Invalid site key or secret'), 'misconfigured'],
  ['cap', cap(404, 'Invalid site key or secret'), wrong],
  ['cap', cap(400, 'Missing required parameters'), wrong],
  ['cap', cap(403, 'Token expired'), expired],
  ['cap', { status: 403, body: '<h1>Forbidden' }, 'unverified'],
]
for (const [kind, said, expected] of refusals) {
  test(`${kind}: ${JSON.stringify(said)} is ${JSON.stringify(expected)}`, async t => {
    const { url } = await startReceiver(t, () => said)
    const verdict = await opened(kind, `${url}/key/siteverify`).verify('key:some:token')
    if (typeof expected === 'string') assert.equal(verdict.is, expected)
    else assert.deepEqual(verdict, expected)
  })
}

function listed(...codes: string[]): Said {
  return { status: 200, body: { success: false, 'error-codes': codes } }
}

function cap(status: number, error: string): Said {
  return { status, body: { success: false, error } }
}

test('what was solved on another site is worth nothing, and the log says where', async t => {
  for (const kind of ['turnstile', 'hcaptcha'] as const) {
    const { verifier, verify, warned } = await started(t, kind)
    for (const host of ['shop.example', `www.${HOST}`]) assert.deepEqual(await verify(verifier.solve({ host })), wrong)
    assert.match(warned.join(), /shop\.example is in neither CORS_ORIGINS nor BASE_URL/)
    assert.equal((await verify(verifier.solve({ host: 'not-provided' }))).is, 'solved')
  }
})

test('a secret that takes any solution is one for tests, which the check says', async t => {
  const { url } = await startReceiver(t, () => ({ status: 200, body: { success: true } }))
  assert.match((await opened('turnstile', url).challenge.check(never))?.why ?? '', /one for tests/)
})

test('Cap: its address may be given as its widget has it', async t => {
  const verifier = await startVerifier(t, 'cap')
  const { verify, challenge } = opened('cap', `${verifier.url}/${SITE_KEY}`, { siteKey: null })
  assert.equal((await verify(verifier.solve())).is, 'solved')
  assert.deepEqual(challenge.widget?.attributes, { 'data-cap-api-endpoint': `${verifier.url}/${SITE_KEY}/` })
})

test('a stop does not wait for it', async t => {
  const { verifier, verify } = await started(t, 'turnstile')
  const stop = new AbortController()
  verifier.next('hang before')
  const verdict = verify(verifier.solve(), null, stop.signal)
  await verifier.arrived(1)
  stop.abort()
  assert.equal((await verdict).is, 'unverified')
})
