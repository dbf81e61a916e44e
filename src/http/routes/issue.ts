import type { IncomingMessage } from 'node:http'
import type { Limiter } from '../../waitlist/ports/limiter.ts'
import { type Answer, contentFields, type FieldList, fieldList, withFields } from '../wire/answer.ts'
import { securityFields } from '../wire/headers.ts'
import { ISSUING } from '../wire/limits.ts'
import { refuse, tooManyChallenges, unavailable } from '../wire/refusals.ts'

export interface IssueParts {
  /** A new challenge as JSON. */
  issue(): Promise<string>
  /** Counts challenges. */
  readonly limiter: Limiter
  /** The key under which a client's challenges are counted; null when its socket is gone. */
  clientOf(request: IncomingMessage): string | null
  /** The key of the network that the client is in and that has a quota too. */
  networkOf(client: string): string | undefined
  /** The CORS fields of every answer. */
  corsFields(request: IncomingMessage): FieldList
}

/**
 * `GET /api/challenge`, for the widgets of the landing pages. Nothing else that a stranger can ask for costs as much to make.
 */
export function issueRoute({ issue, limiter, clientOf, networkOf, corsFields }: IssueParts) {
  const fields = fieldList({ ...securityFields, 'cache-control': 'no-store' })
  let underWay = 0

  async function issued(request: IncomingMessage): Promise<Answer> {
    const client = clientOf(request)
    if (client === null) return refuse(unavailable)
    const { admitted, seconds } = await limiter.take(client, networkOf(client))
    if (!admitted) return refuse(tooManyChallenges(seconds))
    if (underWay === ISSUING) return refuse(unavailable)
    underWay++
    try {
      const body = await issue()
      return {
        status: 200,
        fields: [...fields, ...contentFields('application/json', body.length)],
        body,
        isAscii: true,
      }
    } finally {
      underWay--
    }
  }

  return async (request: IncomingMessage): Promise<Answer> => withFields(await issued(request), corsFields(request))
}
