import type { FastifyReply, FastifyRequest } from 'fastify'
import { join } from '../waitlist/join.ts'
import type { Limiter, Store } from '../waitlist/ports.ts'
import { parseSignup } from '../waitlist/signup.ts'
import { json, readJson } from './body.ts'
import { securityFields } from './fields.ts'
import { invalidSignup, refuse, tooManyAttempts, unavailable } from './refusals.ts'
import type { SignupResult } from './schemas.ts'

export interface SignupParts {
  readonly store: Store
  readonly limiter: Limiter
  /** The key that a client's attempts are counted under; null when its socket is gone. */
  clientOf(request: FastifyRequest): string | null
  /** The value of Set-Cookie. */
  readonly cookie: string
  /** Publishes the quota, or keeps it to ourselves: attempts and seconds. */
  readonly publishedQuota: { readonly limit: number; readonly window: number } | null
}

/**
 * `POST /api/waitlist`, in the order in which a request can be refused: attempts, media type, size, syntax, name, email.
 */
export function signupRoute({ store, limiter, clientOf, cookie, publishedQuota }: SignupParts) {
  const policy = publishedQuota && `"signup";q=${publishedQuota.limit};w=${publishedQuota.window}`
  const successFields = {
    ...securityFields,
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'set-cookie': cookie,
  }

  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const client = clientOf(request)
    if (client === null) return refuse(reply, unavailable)
    const { admitted, remaining, seconds } = await limiter.take(client)
    if (policy !== null) {
      // draft-ietf-httpapi-ratelimit-headers-11, Structured Fields (RFC 9651).
      reply.headers({ 'ratelimit-policy': policy, ratelimit: `"signup";r=${remaining};t=${seconds}` })
    }
    if (!admitted) return refuse(reply, tooManyAttempts(seconds))

    const body = await readJson(request.raw, reply.raw)
    if ('refusal' in body) return refuse(reply, body.refusal)
    const signup = parseSignup(body.object)
    if ('problem' in signup) return refuse(reply, invalidSignup(signup.problem))

    const joined = await join(signup, store)
    const result: SignupResult =
      joined.is === 'new'
        ? {
            success: true,
            message: 'You are on the waitlist.',
            ...(joined.contactId === undefined ? {} : { contactId: joined.contactId }),
            alreadyExisted: false,
            automationTriggered: joined.automationTriggered,
          }
        : {
            success: true,
            message: 'You are already on the waitlist.',
            alreadyExisted: true,
            automationTriggered: false,
          }
    return reply.headers(successFields).send(json(result))
  }
}
