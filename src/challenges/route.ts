import type { IncomingMessage } from 'node:http'
import { summary } from '../delivery/throttle.ts'
import type { HttpParts, RouteParts } from '../http/context.ts'
import {
  challengeExpired,
  challengeFailed,
  challengeMissing,
  type Refusal,
  refuse,
  tooManyChallenges,
  unavailable,
} from '../http/errors.ts'
import { ISSUING } from '../http/limits.ts'
import { type Answer, contentFields, fieldList, securityFields, withFields } from '../http/response.ts'
import type { Signup } from '../signup/contact.ts'
import { type Challenge, SOLUTION_MAX } from './index.ts'

/** For pages that cannot add a member to the body. */
export const SOLUTION_FIELD = 'X-Captcha-Response'

/** Visible ASCII. Published too. */
export const SOLUTION_PATTERN = `^[!-~]{1,${SOLUTION_MAX}}$`

const isSolution = new RegExp(SOLUTION_PATTERN)

interface ProvingParts extends Pick<HttpParts, 'signal' | 'log'> {
  readonly challenge: Challenge
  /** The visitor's own IP address; null: it is not known. */
  addressOf(request: IncomingMessage): string | null
}

/** The solution in a body or, if the body has no such member, in the header. */
export function solutionIn(
  body: object,
  member: string,
  field: string | string[] | undefined,
): { readonly solution: string } | { readonly refusal: Refusal } {
  const solution = Object.hasOwn(body, member) ? (body as Record<string, unknown>)[member] : field
  if (solution === undefined || solution === null || solution === '') return { refusal: challengeMissing }
  return typeof solution === 'string' && isSolution.test(solution) ? { solution } : { refusal: challengeFailed }
}

/** Asks for the proof of a signup. The function it makes returns the signup with it. */
export function proving({ challenge, addressOf, signal, log }: ProvingParts) {
  const { name, member } = challenge
  const refused = summary<string>((signups, reason) =>
    log.error({ challenge: name, reason, signups }, 'signups are refused: our settings of the challenge are wrong'),
  )
  const unverified = summary<string>((signups, reason) =>
    log.error({ challenge: name, reason, signups }, 'challenges cannot be verified: signups are held'),
  )

  return async (
    request: IncomingMessage,
    body: object,
    signup: Signup,
  ): Promise<{ readonly signup: Signup } | { readonly refusal: Refusal }> => {
    const found = solutionIn(body, member, request.headers[SOLUTION_FIELD.toLowerCase()])
    if ('refusal' in found) return found
    const verdict = await challenge.verify(found.solution, addressOf(request), signal)
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

interface IssueParts extends RouteParts, Pick<HttpParts, 'limiter'> {
  /** A new challenge as JSON. */
  issue(): Promise<string>
}

/** `GET /api/challenge`, for the forms of the landing pages. Nothing else that a stranger can ask for costs as much to make. */
export function issueRoute({ issue, limiter, clientOf, corsFields }: IssueParts) {
  const fields = fieldList({ ...securityFields, 'cache-control': 'no-store' })
  let inFlight = 0

  async function issued(request: IncomingMessage): Promise<Answer> {
    const { admitted, seconds } = await limiter.take(clientOf(request))
    if (!admitted) return refuse(tooManyChallenges(seconds))
    if (inFlight === ISSUING) return refuse(unavailable)
    inFlight++
    try {
      const body = await issue()
      const all = [...fields, ...contentFields('application/json', body.length)]
      return { status: 200, fields: all, body, isAscii: true }
    } finally {
      inFlight--
    }
  }

  return async (request: IncomingMessage): Promise<Answer> => withFields(await issued(request), corsFields(request))
}
