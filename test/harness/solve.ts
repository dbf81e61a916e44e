import { type Challenge, createChallenge, solveChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { keysOf } from '../../src/challenges/altcha.ts'

/** What the widget of ALTCHA sends. */
export const payloadOf = (challenge: unknown, solution: unknown): string =>
  Buffer.from(JSON.stringify({ challenge, solution })).toString('base64')

/** Solves a challenge of ALTCHA as its widget does: the member of a signup. Takes a second or more. */
export async function solved(text: string): Promise<string> {
  const challenge = JSON.parse(text) as Challenge
  const solution = await solveChallenge({ challenge, deriveKey })
  if (solution === null) throw new Error('it took too long')
  return payloadOf(challenge, solution)
}

/** The solution of a challenge that is found at once, as a service with this secret would make it. */
export async function quickSolution(secret: string, lifetime = 600): Promise<string> {
  const expiresAt = Math.floor(Date.now() / 1000) + lifetime
  const options = { algorithm: 'PBKDF2/SHA-256', cost: 5_000, counter: 1, deriveKey, expiresAt }
  return solved(JSON.stringify(await createChallenge({ ...options, ...keysOf(secret) })))
}
