import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Redeemable } from '../invite/store.ts'
import { isCode } from '../signup/contact.ts'
import { within } from '../waitlist/timers.ts'

/** What the owner's app asks of the store about the code of an invitation. */
export interface Invitations {
  invitation(code: string): Promise<Redeemable | null>
  redeem(code: string): Promise<Redeemable | null>
}

export interface InvitationRequest {
  readonly method: string | undefined
  /** Without the query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Whether it came to an address of this machine alone. */
  readonly isLocal: boolean
}

export interface InvitationAnswer {
  readonly status: number
  readonly body: Redeemable | { readonly error: string }
  readonly headers?: Readonly<Record<string, string>>
}

const PREFIX = '/invitations/'
/** Milliseconds for the store. */
const PATIENCE = 4_000

const refusal = (status: number, error: string, headers = {}): InvitationAnswer => ({
  status,
  body: { error },
  headers,
})

/**
 * Answers the owner's app about a code: `GET` says whose it is, `POST` redeems it, too. It names people, so it asks for the
 * token, or answers this machine alone where none is set. Null: the path is no code's.
 *
 * `failed` is told why the store did not answer. Neither it nor an answer repeats the code.
 */
export function invitationRoute(store: Invitations, token: string | null, failed: (why: string) => void) {
  const expected = token === null ? null : digest(token)

  function unauthorized({ headers: { authorization = '' }, isLocal }: InvitationRequest): InvitationAnswer | null {
    if (expected === null) {
      return isLocal
        ? null
        : refusal(403, 'From another machine, invitations can be asked for once ADMIN_TOKEN is set.')
    }
    const [, given] = /^Bearer +(\S+)$/i.exec(authorization) ?? []
    if (given === undefined)
      return refusal(401, 'Send ADMIN_TOKEN as a bearer token.', { 'www-authenticate': 'Bearer' })
    // Of equal length, and compared in constant time.
    if (timingSafeEqual(digest(given), expected)) return null
    return refusal(401, 'This is not ADMIN_TOKEN.', { 'www-authenticate': 'Bearer error="invalid_token"' })
  }

  return async (request: InvitationRequest): Promise<InvitationAnswer | null> => {
    const { method, path } = request
    if (!path.startsWith(PREFIX)) return null
    const refused = unauthorized(request)
    if (refused !== null) return refused
    if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') {
      return refusal(405, 'An invitation is read by GET and redeemed by POST.', { allow: 'GET, HEAD, POST' })
    }
    const code = path.slice(PREFIX.length)
    // Before the store is asked, so that what is long costs nothing.
    const found = isCode(code) ? await ask(method === 'POST' ? store.redeem(code) : store.invitation(code)) : null
    if (found === 'no answer') return refusal(503, 'The database does not answer. Try again.', { 'retry-after': '1' })
    return found === null ? refusal(404, 'This code is nobody’s.') : { status: 200, body: found }
  }

  function ask(asked: Promise<Redeemable | null>): Promise<Redeemable | null | 'no answer'> {
    const answered = asked.catch((error: Error) => {
      failed(error.message)
      return 'no answer' as const
    })
    return within(answered, PATIENCE, 'no answer')
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
