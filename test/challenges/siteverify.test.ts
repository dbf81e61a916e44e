import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type Siteverify, siteverify } from '../../src/challenges/siteverify.ts'
import { type Misbehaviour, type Said, startReceiver } from '../harness/receiver.ts'
import { type Kind, kinds, members, SECRET, SITE_KEY, startVerifier } from './siteverify.fake.ts'

const never = new AbortController().signal
const wrong = { is: 'unsolved', why: 'wrong' }
const expired = { is: 'unsolved', why: 'expired' }

function opened(kind: Kind, url: string, change: Partial<Siteverify> = {}) {
  const warned: string[] = []
  const log = { info() {}, error() {}, warn: (details: object) => void warned.push(JSON.stringify(details)) }
  const challenge = siteverify({ kind, secret: SECRET, siteKey: SITE_KEY, url, ...change }, log)
  const verify = (token: string, visitor: string | null = null, stop = never) => challenge.verify(token, visitor, stop)
  return { challenge, verify, warned }
}

async function started(t: TestContext, kind: Kind) {
  const verifier = await startVerifier(t, kind)
  return { verifier, ...opened(kind, verifier.address) }
}

const away: readonly Misbehaviour[] = ['reset before', '500 before', '502 with HTML', '503', '429', 'truncated JSON']

for (const kind of kinds) {
  describe(kind, () => {
    test('the member of its widget, and a call of the documented form; a token that is old or made up is refused', async t => {
      const { verifier, challenge, verify } = await started(t, kind)
      assert.deepEqual([challenge.name, challenge.member, challenge.issue], [kind, members[kind], null])
      const token = verifier.solve()
      const verdict = await verify(token, '192.0.2.7')
      assert.ok(verdict.is === 'solved' && verdict.proof.expires.getTime() > Date.now())
      assert.match(verdict.proof.nonce, /^[\w-]{43}$/)
      assert.deepEqual(await verify(token), expired)
      assert.equal((await verify('made:up:token')).is, 'unsolved')
      const { method, headers, text, json } = verifier.received[0]!
      const body = { secret: SECRET, response: token }
      assert.equal(method, 'POST')
      if (kind === 'cap') return assert.deepEqual(json, body)
      assert.equal(headers['content-type'], 'application/x-www-form-urlencoded')
      assert.deepEqual(Object.fromEntries(new URLSearchParams(text)), { ...body, remoteip: '192.0.2.7' })
    })

    test('a wrong secret is found by the check, and is in no message', async t => {
      const { verifier, challenge } = await started(t, kind)
      assert.equal(await challenge.check(never), null)
      const other = opened(kind, verifier.address, { secret: 'another-secret-0123' })
      for (const each of [await other.verify(verifier.solve()), await other.challenge.check(never)]) {
        assert.ok(each?.is === 'misconfigured')
        assert.match(each.why, /CHALLENGE_SECRET/)
        assert.doesNotMatch(each.why, /another-secret/)
      }
      verifier.next('502 with HTML')
      assert.equal((await challenge.check(never))?.is, 'unreachable')
    })

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

const listed = (...codes: string[]): Said => ({ status: 200, body: { success: false, 'error-codes': codes } })
const cap = (status: number, error: string): Said => ({ status, body: { success: false, error } })

test('each refusal that a vendor documents is the visitor’s, or the operator’s where the secret is refused', async t => {
  const refusals: readonly (readonly [kind: Kind, said: Said, verdict: object | 'misconfigured' | 'unverified'])[] = [
    ['turnstile', listed('missing-input-secret'), 'misconfigured'],
    ['turnstile', listed('invalid-input-response', 'invalid-input-secret'), 'misconfigured'],
    ['turnstile', listed('invalid-input-response'), wrong],
    ['turnstile', listed('timeout-or-duplicate'), expired],
    ['turnstile', listed('internal-error'), 'unverified'],
    ['hcaptcha', listed('invalid-input-secret'), 'misconfigured'],
    ['hcaptcha', listed('sitekey-secret-mismatch'), wrong],
    ['hcaptcha', listed('expired-input-response'), expired],
    ['hcaptcha', listed('invalid-or-already-seen-response'), expired],
    ['cap', cap(403, 'Invalid site key or secret'), 'misconfigured'],
    ['cap', cap(404, 'Invalid site key or secret'), wrong],
    ['cap', cap(400, 'Missing required parameters'), wrong],
    ['cap', cap(403, 'Token expired'), expired],
    ['cap', { status: 403, body: '<h1>Forbidden' }, 'unverified'],
  ]
  for (const [kind, said, expected] of refusals) {
    const { url } = await startReceiver(t, () => said)
    const { verify, warned } = opened(kind, `${url}/key/siteverify`)
    const verdict = await verify('key:some:token')
    const what = `${kind} ${JSON.stringify(said)}`
    if (typeof expected === 'string') assert.equal(verdict.is, expected, what)
    else assert.deepEqual(verdict, expected, what)
    assert.equal(warned.length > 0, /mismatch|404/.test(what), 'another site key is worth a line')
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
