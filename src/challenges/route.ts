import type { IncomingMessage } from 'node:http'
import { summary } from '../config/operator.ts'
import { clientKey, publicAddress } from '../http/client-address.ts'
import type { Context } from '../http/context.ts'
import { challengeExpired, challengeFailed, challengeMissing, tooManyChallenges, unavailable } from '../http/errors.ts'
import { MAX_CONCURRENT_CHALLENGES } from '../http/limits.ts'
import { type Answer, securityHeaders, withHeaders } from '../http/response.ts'
import type { Route } from '../http/router.ts'
import type { Prove } from '../signup/route.ts'
import { type Challenge, SOLUTION_MAX } from './index.ts'

/** Visible ASCII. */
const SOLUTION = new RegExp(`^[!-~]{1,${SOLUTION_MAX}}$`)

/** Asks for the proof of a signup. The function it makes returns the signup with it. */
export function proving(challenge: Challenge, { addressOf, signal, log }: Context): Prove {
  const { name, member } = challenge
  const refused = summary<string>((signups, reason) =>
    log.error({ challenge: name, reason, signups }, 'signups are refused: our settings of the challenge are wrong'),
  )
  const unverified = summary<string>((signups, reason) =>
    log.error({ challenge: name, reason, signups }, 'challenges cannot be verified: signups are held'),
  )

  return async (request, body, signup) => {
    // The header is for pages that cannot add a member to the body.
    const solution = (body as Record<string, unknown>)[member] ?? request.headers['x-captcha-response'] ?? ''
    if (solution === '') return { refusal: challengeMissing }
    if (typeof solution !== 'string' || !SOLUTION.test(solution)) return { refusal: challengeFailed }
    const verdict = await challenge.verify(solution, publicAddress(addressOf(request)), signal)
    if (verdict.is === 'solved') return { signup: { ...signup, proof: verdict.proof } }
    if (verdict.is === 'unsolved') return { refusal: verdict.why === 'expired' ? challengeExpired : challengeFailed }
    if (verdict.is === 'misconfigured') {
      refused(verdict.why)
      return { refusal: unavailable }
    }
    unverified(verdict.why)
    return { signup: { ...signup, unverified: true } }
  }
}

/** `GET /api/challenge`, for the forms of the landing pages. Nothing else that a stranger can ask for costs as much to make. */
export function issueRoute(issue: NonNullable<Challenge['issue']>, context: Context): Route {
  const { challengeLimiter, addressOf, corsHeaders } = context
  let inFlight = 0

  async function issued(request: IncomingMessage): Promise<Answer> {
    const { admitted, seconds } = await challengeLimiter.take(clientKey(addressOf(request)))
    if (!admitted) return tooManyChallenges(seconds)
    if (inFlight === MAX_CONCURRENT_CHALLENGES) return unavailable
    inFlight++
    try {
      const headers = { ...securityHeaders, 'cache-control': 'no-store', 'content-type': 'application/json' }
      return { status: 200, headers, body: await issue() }
    } finally {
      inFlight--
    }
  }

  return async request => withHeaders(await issued(request), corsHeaders(request))
}
