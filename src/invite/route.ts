import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { Database } from '../store/database.ts'
import { invitationOf, redeem } from './store.ts'

interface InvitationParts {
  readonly store: Pick<Database, 'transaction'>
  /** What the owner's app sends as a bearer token; null: only this machine may ask. */
  readonly token: string | null
  readonly log: Pick<Logger, 'error'>
}

const refusal = (status: number, error: string, headers = {}) => ({ status, body: { error }, headers })
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * Answers the owner's app about the code of an invitation: GET says whose it is, POST redeems it too. Neither the log nor an
 * error repeats the code.
 */
export function invitationRoute({ store, token, log }: InvitationParts) {
  const expected = token === null ? null : digest(token)

  function unauthorized({ headers: { authorization = '' } }: IncomingMessage, isLocal: boolean) {
    if (expected === null) {
      return isLocal ? null : refusal(403, 'Set ADMIN_TOKEN to ask for invitations from another machine.')
    }
    const [, sent] = /^Bearer +(\S+)$/i.exec(authorization) ?? []
    if (sent === undefined) return refusal(401, 'Send ADMIN_TOKEN as a bearer token.', { 'www-authenticate': 'Bearer' })
    if (timingSafeEqual(digest(sent), expected)) return null
    return refusal(401, 'This is not ADMIN_TOKEN.', { 'www-authenticate': 'Bearer error="invalid_token"' })
  }

  return async (request: IncomingMessage, code: string, isLocal: boolean) => {
    const refused = unauthorized(request, isLocal)
    if (refused !== null) return refused
    const { method } = request
    if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') {
      return refusal(405, 'An invitation is read by GET and redeemed by POST.', { allow: 'GET, HEAD, POST' })
    }
    try {
      const find = method === 'POST' ? redeem : invitationOf
      const found = await store.transaction(tx => find(tx, code))
      return found === null ? refusal(404, 'No contact has this invitation code.') : { status: 200, body: found }
    } catch (error) {
      log.error({ why: (error as Error).message }, 'an invitation could not be read')
      return refusal(503, 'The database does not answer. Try again.', { 'retry-after': '1' })
    }
  }
}
