import type { IncomingMessage } from 'node:http'
import { summary } from '../delivery/throttle.ts'
import { clientKey, publicAddress } from '../http/client-address.ts'
import type { Context } from '../http/context.ts'
import { challengeExpired, challengeFailed, challengeMissing, tooManyChallenges, unavailable } from '../http/errors.ts'
import { MAX_CONCURRENT_CHALLENGES } from '../http/limits.ts'
import { type Answer, securityHeaders, withHeaders } from '../http/response.ts'
import type { Route } from '../http/router.ts'
import type { Prove } from '../signup/route.ts'
import { type Challenge, SOLUTION_MAX } from './index.ts'

/** For pages that cannot add a member to the body. */
const SOLUTION_FIELD = 'X-Captcha-Response'

/** Visible ASCII. Published too. */
const SOLUTION_PATTERN = `^[!-~]{1,${SOLUTION_MAX}}$`

const isSolution = new RegExp(SOLUTION_PATTERN)

/** The solution in a body or, if the body has no such member, in the header. */
function solutionIn(
  body: object,
  member: string,
  field: string | string[] | undefined,
): { readonly solution: string } | { readonly refusal: Answer } {
  const solution = Object.hasOwn(body, member) ? (body as Record<string, unknown>)[member] : field
  if (solution === undefined || solution === null || solution === '') return { refusal: challengeMissing }
  return typeof solution === 'string' && isSolution.test(solution) ? { solution } : { refusal: challengeFailed }
}

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
    const found = solutionIn(body, member, request.headers[SOLUTION_FIELD.toLowerCase()])
    if ('refusal' in found) return found
    const verdict = await challenge.verify(found.solution, publicAddress(addressOf(request)), signal)
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
