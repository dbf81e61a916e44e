import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { verifierBreaker } from '../../src/challenges/breaker.ts'
import { type Siteverify, type SiteverifyParts, siteverify } from '../../src/challenges/siteverify.ts'
import type { Meaning } from '../../src/challenges/vendors.ts'
import { SOLUTION_MAX } from '../../src/waitlist/ports/challenge.ts'
import { misbehaviours, type Received, type Said, startReceiver } from '../harness/receiver.ts'
import { HOST, type Kind, kinds, members, SECRET, SITE_KEY, startVerifier, type Verifier } from './siteverify.fake.ts'

const never = new AbortController().signal

/** A challenge in front of a verifier of this kind. */
async function opened(
  t: TestContext,
  kind: Kind,
  change: Partial<Siteverify> = {},
  parts: Partial<SiteverifyParts> = {},
) {
  const verifier = await startVerifier(t, kind)
  return { verifier, ...another(t, verifier, kind, change, parts) }
}

/** One more, such as that of another instance. */
function another(
  t: TestContext,
  verifier: Verifier,
  kind: Kind,
  change: Partial<Siteverify> = {},
  parts: Partial<SiteverifyParts> = {},
) {
  const warned: string[] = []
  const log = { info() {}, error() {}, warn: (details: object) => void warned.push(JSON.stringify(details)) }
  const choice: Siteverify = { kind, secret: SECRET, siteKey: SITE_KEY, url: verifier.address, ...change }
  // So long that a busy machine makes no difference; where the verifier hangs, it is shorter.
  const challenge = siteverify(choice, { hosts: [HOST], log, timeout: 30_000, ...parts })
  t.after(challenge.close)
  const verify = (token: string, visitor: string | null = null, leave = never) =>
    challenge.verify(token, visitor, leave)
  return { challenge, verify, warned }
}

const wrong = { is: 'unsolved', why: 'wrong' }
const expired = { is: 'unsolved', why: 'expired' }

const form = {
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: { secret: SECRET, remoteip: '192.0.2.7' },
}
/** What each vendor is sent besides the token. */
const requests: Readonly<Record<Kind, { readonly headers: object; readonly body: object }>> = {
  turnstile: form,
  hcaptcha: form,
  cap: { headers: { 'content-type': 'application/json' }, body: { secret: SECRET } },
}

for (const kind of kinds) {
  describe(kind, { concurrency: true }, () => {
    test('the widget’s member, and a call of the documented form', async t => {
      const { verifier, challenge, verify } = await opened(t, kind)
      assert.deepEqual([challenge.name, challenge.member, challenge.issue], [kind, members[kind], null])
      const token = verifier.solve()
      assert.equal((await verify(token, '192.0.2.7')).is, 'solved')
      const { method, headers, text, json } = verifier.received[0] as Received
      const { idempotency_key: uuid, ...body } = json ?? Object.fromEntries(new URLSearchParams(text))
      assert.equal(method, 'POST')
      assert.deepEqual(body, { ...requests[kind].body, response: token })
      for (const [name, value] of Object.entries(requests[kind].headers)) assert.equal(headers[name], value)
      const version4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/
      if (kind === 'turnstile') assert.match(uuid, version4)
      else assert.equal(uuid, undefined)
    })

    test('a token is verified once, and then recognised by this process, also while the first call is under way', async t => {
      const { verifier, verify } = await opened(t, kind)
      const token = verifier.solve()
      const [first, ...others] = await Promise.all(Array.from({ length: 20 }, () => verify(token)))
      const later = await verify(token)
      assert.equal(first!.is, 'solved')
      for (const each of [...others, later]) assert.deepEqual(each, first)
      assert.equal(verifier.received.length, 1)
      const { nonce, expires } = (first as Extract<typeof first, { is: 'solved' }>).proof
      assert.match(nonce, /^[\w-]{1,100}$/)
      assert.ok(!nonce.includes(token))
      assert.ok(expires.getTime() > Date.now())
      const second = await verify(verifier.solve())
      assert.notEqual((second as typeof first & { proof: { nonce: string } }).proof.nonce, nonce)
    })

    test('what another instance verified: the same proof from Turnstile, else a new challenge', async t => {
      const { verifier, verify } = await opened(t, kind)
      const token = verifier.solve()
      const first = await verify(token)
      const there = await another(t, verifier, kind).verify(token)
      if (kind !== 'turnstile') assert.deepEqual(there, expired)
      else {
        assert.ok(first.is === 'solved' && there.is === 'solved')
        assert.equal(there.proof.nonce, first.proof.nonce)
      }
    })

    test('made-up, foreign, expired and too long tokens are refused, and may be tried again', async t => {
      const { verifier, verify, warned } = await opened(t, kind)
      const madeUp = await verify('made:up:token')
      assert.equal(madeUp.is, 'unsolved')
      const old = verifier.solve()
      verifier.expire(old)
      assert.deepEqual(await verify(old), expired)
      assert.equal((await verify('10000000-aaaa-bbbb-cccc-000000000001')).is, 'unsolved')
      const long = await verify('x'.repeat(SOLUTION_MAX))
      assert.equal(long.is, 'unsolved')
      const asked = verifier.received.length
      assert.equal(asked, kind === 'turnstile' ? 3 : 4, 'Turnstile documents 2,048 characters')
      await verify('made:up:token')
      assert.equal(verifier.received.length, asked + 1)
      assert.equal(warned.length, ['hcaptcha', 'cap'].includes(kind) ? 1 : 0, 'what another site gave is logged once')
    })

    test('a wrong secret is misconfigured, and is not told', async t => {
      const { verifier, verify } = await opened(t, kind, { secret: 'another-secret-0123' })
      const verdict = await verify(verifier.solve())
      assert.ok(verdict.is === 'misconfigured')
      assert.match(verdict.why, /CHALLENGE_SECRET/)
      assert.doesNotMatch(verdict.why, /another-secret/)
    })

    test('the check tells a good secret from a wrong one, and from a verifier that is away', async t => {
      const { verifier, challenge } = await opened(t, kind)
      assert.equal(await challenge.check(never), null)
      const failure = await another(t, verifier, kind, { secret: 'another-secret-0123' }).challenge.check(never)
      assert.equal(failure?.is, 'misconfigured')
      assert.doesNotMatch(failure.why, /another-secret/)
      verifier.next('502 with HTML')
      assert.equal((await challenge.check(never))?.is, 'unreached')
    })

    for (const what of misbehaviours) {
      test(`${what}: ${what === 'slow' ? 'solved' : 'unverified'}, never refused`, async t => {
        const { verifier, verify } = await opened(t, kind, {}, what.startsWith('hang') ? { timeout: 500 } : {})
        const token = verifier.solve()
        verifier.next(what)
        const verdict = await verify(token)
        assert.equal(verdict.is, what === 'slow' ? 'solved' : 'unverified')
        const { why = '' } = verdict as { why?: string }
        assert.ok(!why.includes(token) && !why.includes(SECRET) && !why.includes('\n'), why)
      })
    }

    test('nobody at the address', async t => {
      const { verify } = await opened(t, kind, { url: 'http://127.0.0.1:1/x/siteverify' })
      assert.equal((await verify('a:b:c')).is, 'unverified')
    })
  })
}

const listed = (...codes: string[]): Said => ({ status: 200, body: { success: false, 'error-codes': codes } })
const cap = (status: number, error: string): Said => ({ status, body: { success: false, error } })

/** Every refusal that a vendor documents, and what it means; `…` is one of several codes, of which the secret counts. */
const documented: Readonly<Record<Kind, Readonly<Record<string, readonly [Meaning, Said]>>>> = {
  turnstile: {
    'missing-input-secret': ['secret', listed('missing-input-secret')],
    'invalid-input-secret': ['secret', listed('invalid-input-secret')],
    '… invalid-input-secret': ['secret', listed('invalid-input-response', 'invalid-input-secret')],
    'missing-input-response': ['wrong', listed('missing-input-response')],
    'invalid-input-response': ['wrong', listed('invalid-input-response')],
    'timeout-or-duplicate': ['expired', listed('timeout-or-duplicate')],
  },
  hcaptcha: {
    'missing-input-secret': ['secret', listed('missing-input-secret')],
    'invalid-input-secret': ['secret', listed('invalid-input-secret')],
    'invalid-input-secret …': ['secret', listed('invalid-input-secret', 'invalid-or-already-seen-response')],
    'sitekey-secret-mismatch': ['foreign', listed('sitekey-secret-mismatch')],
    'not-using-dummy-passcode': ['foreign', listed('not-using-dummy-passcode')],
    'invalid-input-response': ['wrong', listed('invalid-input-response')],
    'expired-input-response': ['expired', listed('expired-input-response')],
    'already-seen-response': ['expired', listed('already-seen-response')],
    'invalid-or-already-seen-response': ['expired', listed('invalid-or-already-seen-response')],
  },
  cap: {
    '403 Invalid site key or secret': ['secret', cap(403, 'Invalid site key or secret')],
    '404 Invalid site key or secret': ['foreign', cap(404, 'Invalid site key or secret')],
    '400 Missing required parameters': ['wrong', cap(400, 'Missing required parameters')],
    '403 Token expired': ['expired', cap(403, 'Token expired')],
    '404 Token not found': ['expired', cap(404, 'Token not found')],
  },
}

describe('what a refusal means', { concurrency: true }, () => {
  for (const kind of kinds) {
    test(`${kind}: each refusal that it documents, to a visitor and to the check, which finds a wrong secret`, async t => {
      for (const [code, [meaning, said]] of Object.entries(documented[kind])) {
        const { url } = await startReceiver(t, () => said)
        const { challenge, verify, warned } = another(t, { address: `${url}/key/siteverify` } as Verifier, kind)
        const failure = await challenge.check(never)
        const verdict = await verify('key:some:token')
        const isOurs = meaning === 'secret' || meaning === 'foreign'
        assert.equal(failure?.is, isOurs ? 'misconfigured' : undefined, code)
        if (isOurs) assert.match(failure!.why, new RegExp(`"${code.replaceAll(/ ?… ?/g, '')}": CHALLENGE_SECRET`))
        if (meaning === 'secret') assert.equal(verdict.is, 'misconfigured', code)
        else assert.deepEqual(verdict, meaning === 'expired' ? expired : wrong, code)
        assert.equal(warned.length, meaning === 'foreign' ? 1 : 0, code)
      }
    })
  }
})

describe('where a challenge was solved', { concurrency: true }, () => {
  const solvedAt = async (t: TestContext, kind: Kind, host: string, hosts = [HOST]) => {
    const { verifier, verify, warned } = await opened(t, kind, {}, { hosts })
    const { is } = await verify(verifier.solve({ host }))
    return { is, warned: warned.length }
  }

  for (const kind of kinds.filter(kind => kind !== 'cap')) {
    test(`${kind}: on another site it is worth nothing, and the log says where`, async t => {
      const { verifier, verify, warned } = await opened(t, kind)
      assert.deepEqual(await verify(verifier.solve({ host: 'shop.example' })), wrong)
      assert.deepEqual(await verify(verifier.solve({ host: `www.${HOST}` })), wrong)
      assert.equal(warned.length, 1)
      assert.match(warned[0]!, /shop\.example is in neither CORS_ORIGINS nor BASE_URL/)
    })

    test(`${kind}: without a known host it is not looked at`, async t => {
      assert.deepEqual(await solvedAt(t, kind, 'shop.example', []), { is: 'solved', warned: 0 })
    })
  }
})

test('Cap: its address may be given as its widget has it', async t => {
  const verifier = await startVerifier(t, 'cap')
  const { verify } = another(t, verifier, 'cap', { url: `${verifier.url}/${SITE_KEY}` })
  assert.equal((await verify(verifier.solve())).is, 'solved')
  assert.deepEqual(
    verifier.received.map(({ path }) => path),
    [`/${SITE_KEY}/siteverify`],
  )
})

test('a verifier that is away is left alone for a second after three failures, and then asked again', async t => {
  const { verifier, verify } = await opened(t, 'turnstile')
  verifier.next('503', 'reset before', '500 before')
  const since = performance.now()
  while ((await verify(verifier.solve())).is !== 'solved') await new Promise(resolve => setTimeout(resolve, 20))
  assert.ok(performance.now() - since >= 1_000)
  assert.equal(verifier.received.length, 4)
})

test('the pauses of a verifier that is away double up to half a minute, with one probe each, and an answer ends them', () => {
  let now = 0
  const { begin } = verifierBreaker(() => now)
  for (let i = 0; i < 3; i++) begin()!.ended(false)
  const pauses: number[] = []
  for (let i = 0; i < 7; i++) {
    const from = now
    assert.equal(begin(), null)
    let permit = begin()
    for (; permit === null; permit = begin()) now += 500
    pauses.push(now - from)
    assert.equal(begin(), null, 'the probe may hang, so nobody else waits')
    permit.ended(false)
  }
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  now += 30_000
  begin()!.ended(true)
  assert.ok(begin() !== null && begin() !== null)
})

test('calls that were under way together and fail together begin one pause', () => {
  let now = 0
  const { begin } = verifierBreaker(() => now)
  const turns = Array.from({ length: 64 }, () => begin()!)
  for (const { ended } of turns) ended(false)
  assert.equal(begin(), null)
  now = 1_000
  assert.notEqual(begin(), null)
})

test('visitors cannot make it look away: answers that refuse, or make no sense, are answers', async t => {
  const { verifier, verify } = await opened(t, 'turnstile')
  for (let i = 0; i < 5; i++) assert.equal((await verify(`made-up-${i}`)).is, 'unsolved')
  for (let i = 0; i < 5; i++) {
    verifier.next('403 of unknown wording')
    assert.equal((await verify(verifier.solve())).is, 'unverified')
  }
  assert.equal((await verify(verifier.solve())).is, 'solved')
})

test('a stop does not wait for it', async t => {
  const { verifier, verify } = await opened(t, 'turnstile', {}, { timeout: 60_000 })
  const leaving = new AbortController()
  verifier.next('hang before')
  const verdict = verify(verifier.solve(), null, leaving.signal)
  while (verifier.received.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  leaving.abort()
  assert.equal((await verdict).is, 'unverified')
})
