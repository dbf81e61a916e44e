import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Payload } from 'altcha-lib'
import fc from 'fast-check'
import { altcha } from '../../src/challenges/altcha.ts'
import { payloadOf, quickSolution, solved } from '../harness/solve.ts'

const SECRET = 'a secret'
const wrong = { is: 'unsolved', why: 'wrong' }
const challenge = altcha(SECRET)
const verify = (solution: string, by = challenge) => by.verify(solution, null, new AbortController().signal)
const read = (text: string): Payload => JSON.parse(Buffer.from(text, 'base64').toString())

const right = await quickSolution(SECRET)
const payload = read(right)
const { parameters, signature } = payload.challenge

test('its solution is proof for ten minutes, on each instance with the same secret', async () => {
  const issued = await challenge.issue!()
  const solution = await solved(issued)
  for (const instance of [challenge, altcha(SECRET)]) {
    const verdict = await verify(solution, instance)
    assert.ok(verdict.is === 'solved')
    assert.equal(verdict.proof.nonce, JSON.parse(issued).parameters.nonce)
    const left = verdict.proof.expires.getTime() - Date.now()
    assert.ok(left > 540_000 && left <= 600_000, String(left))
  }
  assert.deepEqual(await verify(solution, altcha('another secret')), wrong)
  assert.deepEqual(await verify(await quickSolution(SECRET, -1)), { is: 'unsolved', why: 'expired' })
})

test('each challenge has a nonce of its own, and keeps its counter and half of its key to itself', async () => {
  const issued = await Promise.all(Array.from({ length: 20 }, async () => JSON.parse(await challenge.issue!())))
  assert.equal(new Set(issued.map(each => each.parameters.nonce)).size, 20)
  for (const { parameters, ...others } of issued) {
    assert.deepEqual(Object.keys(others), ['signature'])
    const { nonce, salt, keyPrefix, keySignature, expiresAt, ...same } = parameters
    assert.deepEqual(same, { algorithm: 'PBKDF2/SHA-256', cost: 5_000, keyLength: 32 })
    assert.equal(keyPrefix.length, 32)
  }
})

test('parameters that were changed, and other keys, are wrong', async () => {
  const changes = [
    { cost: 1 },
    { algorithm: 'SHA-256' },
    { keyPrefix: '00' },
    { keySignature: undefined },
    { nonce: '00' },
    { expiresAt: parameters.expiresAt! + 1 },
    { data: {} },
  ]
  for (const change of changes) {
    const changed = { signature, parameters: { ...parameters, ...change } }
    assert.deepEqual(await verify(payloadOf(changed, payload.solution)), wrong, JSON.stringify(change))
  }
  const derivedKey = `${parameters.keyPrefix}${'0'.repeat(32)}`
  assert.deepEqual(await verify(payloadOf(payload.challenge, { counter: 1, derivedKey })), wrong)
})

test('whatever else arrives is wrong, and nothing throws', async () => {
  const values = fc.oneof(fc.anything({ maxDepth: 2, maxKeys: 3 }), fc.constant({ toString: 1 }))
  const near = fc.record({
    challenge: fc.oneof(
      values,
      fc.record({
        parameters: fc.oneof(values, fc.record({ expiresAt: values }), fc.constant(parameters)),
        signature: fc.oneof(values, fc.constant(signature)),
      }),
    ),
    solution: fc.oneof(values, fc.record({ counter: values, derivedKey: values })),
  })
  const encoded = near.map(value => Buffer.from(JSON.stringify(value) ?? '').toString('base64'))
  await fc.assert(
    fc.asyncProperty(fc.oneof(encoded, fc.string({ unit: 'binary' })), async text => {
      assert.equal((await verify(text)).is, 'unsolved')
    }),
    { numRuns: 300 },
  )
  assert.deepEqual(await verify(`${right}${'A'.repeat(2_048)}`), wrong)
})
