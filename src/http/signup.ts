import type { Joined } from '../waitlist/join.ts'
import { type Limiter, StoreUnavailable } from '../waitlist/ports.ts'
import { parseSignup, type Signup } from '../waitlist/signup.ts'
import { type Answer, type FieldList, fieldList, jsonAnswer, withFields } from './answer.ts'
import { readJson } from './body.ts'
import type { SignupResult } from './discovery/schemas.ts'
import { securityFields } from './headers.ts'
import type { Incoming, Outgoing } from './protocol.ts'
import {
  addressRefused,
  invalidSignup,
  providerUnreachable,
  refuse,
  savedForLater,
  tooManyAttempts,
  unavailable,
} from './refusals.ts'

export interface SignupParts {
  /** Null: a signup may enter; otherwise it is refused when the promise resolves. */
  sheds(): Promise<void> | null
  join(signup: Signup): Promise<Joined>
  readonly limiter: Limiter
  /** The key under which a client's attempts are counted; null when its socket is gone. */
  clientOf(request: Incoming): string | null
  /** The key of the network that the client is in and that has a quota too. */
  networkOf(client: string): string | undefined
  /** The value of Set-Cookie. */
  readonly cookie: string
  /** Attempts and seconds; null: answers do not mention the quota. */
  readonly publishedQuota: { readonly limit: number; readonly window: number } | null
  /** The CORS fields of every answer. */
  corsFields(request: Incoming): FieldList
  /** The answer after a throw. */
  failed(error: unknown, reqId: number): Answer
}

const overloaded = new StoreUnavailable('more signups arrive than can be stored in time')

/**
 * `POST /api/waitlist`. The checks, in order: overload, attempts, encoding, media type, size, syntax, name, email.
 */
export function signupRoute({
  sheds,
  join,
  limiter,
  clientOf,
  networkOf,
  cookie,
  publishedQuota,
  corsFields,
  failed,
}: SignupParts) {
  const policy = publishedQuota && `"signup";q=${publishedQuota.limit};w=${publishedQuota.window}`
  const fields = fieldList({ ...securityFields, 'cache-control': 'no-store', 'set-cookie': cookie })
  const accepted = (joined: Accepted) => jsonAnswer(200, fields, resultOf(joined))
  const alreadyListed = accepted({ is: 'known' })

  return async (request: Incoming, response: Outgoing, reqId: number): Promise<Answer> => {
    let common = corsFields(request)
    const answer = (answer: Answer) => withFields(answer, common)
    try {
      const shed = sheds()
      if (shed !== null) {
        await shed
        return answer(failed(overloaded, reqId))
      }
      const client = clientOf(request)
      if (client === null) return answer(refuse(unavailable))
      const { admitted, remaining, seconds } = await limiter.take(client, networkOf(client))
      if (policy !== null) {
        // draft-ietf-httpapi-ratelimit-headers-11, Structured Fields (RFC 9651).
        common = [...common, 'ratelimit-policy', policy, 'ratelimit', `"signup";r=${remaining};t=${seconds}`]
      }
      if (!admitted) return answer(refuse(tooManyAttempts(seconds)))

      const body = await readJson(request, response)
      if ('refusal' in body) return answer(refuse(body.refusal))
      const signup = parseSignup(body.object)
      if ('problem' in signup) return answer(refuse(invalidSignup(signup.problem)))

      const joined = await join(signup)
      if (joined.is === 'kept') {
        return answer(refuse(joined.because === 'unreachable' ? providerUnreachable : savedForLater))
      }
      if (joined.is === 'refused') return answer(refuse(addressRefused(joined.reason)))
      return answer(joined.is === 'known' ? alreadyListed : accepted(joined))
    } catch (error) {
      return answer(failed(error, reqId))
    }
  }
}

type Accepted = Extract<Joined, { is: 'new' | 'known' }>

function resultOf(joined: Accepted): SignupResult {
  const isNew = joined.is === 'new'
  return {
    success: true,
    message: isNew ? 'You are on the waitlist.' : 'You are already on the waitlist.',
    contactId: isNew ? joined.contactId : undefined,
    alreadyExisted: !isNew,
    automationTriggered: isNew,
  }
}
