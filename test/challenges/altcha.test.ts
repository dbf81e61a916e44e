import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createChallenge, type Payload } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import fc from 'fast-check'
import { altcha } from '../../src/challenges/altcha.ts'
import { openChallenge } from '../../src/challenges/open.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import type { Challenge } from '../../src/waitlist/ports/challenge.ts'
import { recordingLog } from '../harness/service.ts'
import { payloadOf, solved } from '../harness/solve.ts'

const easy = { secret: 'a secret', range: 3 }
const wrong = { is: 'unsolved', why: 'wrong' }
const leave = new AbortController().signal
const verify = (challenge: Challenge, solution: string) => challenge.verify(solution, null, leave)
const read = (text: string): Payload => JSON.parse(Buffer.from(text, 'base64').toString())

const ours = altcha(easy)
const right = await solved(await ours.issue!())
const payload = read(right)
const { parameters, signature } = payload.challenge

describe('a challenge of ALTCHA', () => {
  test('its solution is proof until it expires, in ten minutes, and as often as it is asked', async () => {
    for (let i = 0; i < 2; i++) {
      const verdict = await verify(ours, right)
      assert.ok(verdict.is === 'solved')
      assert.equal(verdict.proof.nonce, parameters.nonce)
      const left = verdict.proof.expires.getTime() - Date.now()
      assert.ok(left > 540_000 && left <= 600_000, String(left))
    }
  })

  test('each one has a nonce of its own, says how hard it is, and keeps its counter and most of its key to itself', async () => {
    const issued = await Promise.all(Array.from({ length: 50 }, async () => JSON.parse(await ours.issue!())))
    assert.equal(new Set(issued.map(each => each.parameters.nonce)).size, 50)
    for (const { parameters, ...others } of issued) {
      assert.deepEqual(Object.keys(others), ['signature'])
      const { nonce, salt, keyPrefix, keySignature, expiresAt, ...same } = parameters
      assert.deepEqual(same, { algorithm: 'PBKDF2/SHA-256', cost: 5_000, keyLength: 32, data: { range: 3 } })
      assert.equal(keyPrefix.length, 32, 'half of the key')
    }
  })

  test('another instance with the same secret accepts it, one with another secret does not', async () => {
    assert.equal((await verify(altcha(easy), right)).is, 'solved')
    assert.deepEqual(await verify(altcha({ ...easy, secret: 'a secret.' }), right), wrong)
  })

  test('one that was easier is no longer good, one that was harder is', async () => {
    const now = altcha({ ...easy, range: 4 })
    assert.deepEqual(await verify(now, right), wrong)
    assert.equal((await verify(ours, await solved(await now.issue!()))).is, 'solved')
  })

  test('after its time it has expired, whether it is right or not', async () => {
    const brief = altcha({ ...easy, lifetime: -1_000 })
    const late = await solved(await brief.issue!())
    assert.deepEqual(await verify(brief, late), { is: 'unsolved', why: 'expired' })
    const { challenge, solution } = read(late)
    const longer = { ...challenge, parameters: { ...challenge.parameters, expiresAt: parameters.expiresAt! } }
    assert.deepEqual(await verify(brief, payloadOf(longer, solution)), wrong)
  })

  test('a key for another counter is wrong', async () => {
    const nonce = Buffer.from(parameters.nonce, 'hex')
    for (let counter = 0; counter < 20; counter++) {
      const end = Buffer.alloc(4)
      end.writeUInt32BE(counter)
      const { derivedKey } = await deriveKey(
        parameters,
        Buffer.from(parameters.salt, 'hex'),
        Buffer.concat([nonce, end]),
      )
      const solution = { counter, derivedKey: Buffer.from(derivedKey).toString('hex') }
      const expected = counter === payload.solution.counter ? 'solved' : 'unsolved'
      assert.equal((await verify(ours, payloadOf(payload.challenge, solution))).is, expected, String(counter))
    }
  })

  test('one that others made is wrong, even if they know our secret', async () => {
    const options = { algorithm: 'PBKDF2/SHA-256', cost: 5_000, counter: 1, deriveKey, data: { range: 3 } }
    const hmacSignatureSecret = easy.secret
    for (const secrets of [{}, { hmacSignatureSecret }, { hmacSignatureSecret, hmacKeySignatureSecret: easy.secret }]) {
      const foreign = await createChallenge({ ...options, ...secrets, expiresAt: parameters.expiresAt! })
      assert.deepEqual(await verify(ours, await solved(JSON.stringify(foreign))), wrong)
    }
  })

  test('parameters that were changed are wrong', async () => {
    const change = fc.record(
      {
        algorithm: fc.constantFrom('SHA-256', 'PBKDF2/SHA-512', 'ARGON2ID', '', null, 7),
        cost: fc.constantFrom(1, 4_999, 5_001, 2 ** 31, -1, '5000', null),
        keyLength: fc.constantFrom(1, 31, 33, 2 ** 30, null),
        keyPrefix: fc.constantFrom('', '0', '00', parameters.keyPrefix.slice(2), null),
        keySignature: fc.constantFrom('', '00', parameters.keySignature!.slice(2), parameters.nonce, null, {}, ['a']),
        nonce: fc.constantFrom('', '00', parameters.salt, null),
        salt: fc.constantFrom('', parameters.nonce, null),
        expiresAt: fc.constantFrom(parameters.expiresAt! + 1, null, 0, '', Number.MAX_SAFE_INTEGER),
        data: fc.constantFrom(null, {}, { range: 2 }, { range: 10 ** 9 }, 'x'),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(change, async changes => {
        fc.pre(Object.keys(changes).length > 0)
        const changed = { ...payload.challenge, parameters: { ...parameters, ...changes } }
        assert.deepEqual(await verify(ours, payloadOf(changed, payload.solution)), wrong)
      }),
    )
  })

  test('text that was cut, or changed anywhere, is never proof of anything but this challenge', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(right.length - 1),
        fc.constantFrom('A', 'z', '0', '=', '-', ' ', 'é', ''),
        async (at, put) => {
          const changed = right.slice(0, at) + put + right.slice(at + 1)
          const verdict = await verify(ours, changed)
          // The time that it took, and padding, are not signed.
          if (verdict.is === 'solved') {
            assert.equal(verdict.proof.nonce, parameters.nonce)
            assert.deepEqual(read(changed).challenge, payload.challenge)
          } else assert.equal(verdict.is, 'unsolved') // expired, if it was the time
          assert.deepEqual(await verify(ours, right.slice(0, Math.floor(at * 0.9))), wrong)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('whatever else arrives is wrong, and nothing throws', async () => {
    const values = fc.anything({ maxDepth: 2, maxKeys: 3 })
    const near = fc.record({
      challenge: fc.oneof(
        values,
        fc.record({
          parameters: fc.oneof(values, fc.constant(parameters)),
          signature: fc.oneof(values, fc.constant(signature)),
        }),
      ),
      solution: fc.oneof(values, fc.record({ counter: values, derivedKey: values })),
    })
    const encoded = fc.oneof(near, values).map(value => Buffer.from(JSON.stringify(value) ?? '').toString('base64'))
    await fc.assert(
      fc.asyncProperty(fc.oneof(encoded, fc.string({ unit: 'binary', minLength: 1 })), async text => {
        assert.equal((await verify(ours, text)).is, 'unsolved')
      }),
      { numRuns: 100 },
    )
    const signed = [['signature'], ['parameters'], ...Object.keys(parameters).map(name => ['parameters', name])]
    for (const place of [...signed, ['parameters', 'data', 'range']]) {
      for (const other of [null, 7, true, '', 'a', [], {}, [{}], { toString: 1 }, { valueOf: 1 }, { length: 64 }]) {
        const challenge = structuredClone(payload.challenge)
        let parent = challenge as unknown as Record<string, object>
        for (const name of place.slice(0, -1)) parent = parent[name] as typeof parent
        parent[place.at(-1)!] = other as object
        assert.deepEqual(await verify(ours, payloadOf(challenge, payload.solution)), wrong, String(place))
      }
    }
    for (const inner of ['['.repeat(1_400), '{"a":'.repeat(280), `{"challenge":{"parameters":${'{"a":'.repeat(250)}`]) {
      assert.deepEqual(await verify(ours, Buffer.from(inner).toString('base64')), wrong)
    }
  })
})

describe('the key of the challenges', () => {
  const choice = { kind: 'altcha', secret: null, range: 3 } as const
  const parts = (secret: (name: string) => Promise<string>) => ({ secret, hosts: [], log: recordingLog().log })

  test('is the secret that is set, or else the one that the store keeps for it', async () => {
    const kept = await openChallenge(
      choice,
      parts(async name => `kept for ${name}`),
    )
    const set = await openChallenge(
      { ...choice, secret: 'kept for challenge' },
      parts(() => assert.fail('not asked')),
    )
    assert.equal((await verify(set, await solved(await kept.issue!()))).is, 'solved')
  })

  test('without it nothing is opened', async () => {
    const opening = openChallenge(
      choice,
      parts(() => Promise.reject(new StoreUnavailable('gone'))),
    )
    await assert.rejects(opening, /gone/)
  })
})
