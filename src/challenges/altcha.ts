import { createHmac, randomInt } from 'node:crypto'
import { createChallenge, type Payload, verifySolution } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import type { Challenge, Verdict } from './index.ts'

/** Guesses of a visitor's browser at most; half as many on average. */
const RANGE = 2_000
/** Iterations of PBKDF2 for each guess. */
const COST = 5_000
/** Milliseconds in which a challenge can be solved and sent. */
const LIFETIME = 600_000
/** Characters of a solution. Those of ALTCHA's widget have about 750. */
const LONGEST = 2_048

const wrong: Verdict = { is: 'unsolved', why: 'wrong' }

/** The two keys that challenges are signed with. `secret`: any text; instances with the same one accept each other's. */
export function keysOf(secret: string) {
  const key = (purpose: string) => createHmac('sha256', secret).update(`altcha ${purpose}`).digest('hex')
  return { hmacSignatureSecret: key('challenge'), hmacKeySignatureSecret: key('solution') }
}

/**
 * ALTCHA, protocol 2: the browser guesses the number from which a key was derived. The number is ours, so that one
 * derivation makes a challenge, and two HMACs verify its solution ("deterministic mode").
 */
export function altcha(secret: string): Challenge {
  const keys = keysOf(secret)
  return {
    name: 'altcha',
    member: 'altcha',
    widget: null,

    async issue() {
      const expiresAt = Math.floor((Date.now() + LIFETIME) / 1000)
      const counter = randomInt(1, RANGE + 1)
      const options = { algorithm: 'PBKDF2/SHA-256', cost: COST, counter, deriveKey, expiresAt, ...keys }
      return JSON.stringify(await createChallenge(options))
    },

    async verify(text) {
      if (text.length > LONGEST) return wrong
      try {
        const payload: Payload = JSON.parse(Buffer.from(text, 'base64').toString())
        const { expired, verified } = await verifySolution({ ...payload, deriveKey, ...keys })
        if (expired) return { is: 'unsolved', why: 'expired' }
        if (!verified) return wrong
        const { nonce, expiresAt } = payload.challenge.parameters
        return { is: 'solved', proof: { nonce, expires: new Date(expiresAt! * 1000) } }
      } catch {
        // It is not what a widget sends. The library trusts its form until it has verified the signature.
        return wrong
      }
    },

    check: async () => null,
  }
}
