import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Answer, fieldList, withFields } from '../wire/answer.ts'
import { clientAddress, type ForwardingSign, type TrustedProxies } from './client-address.ts'

/** The field in which `waitlist check` asks how the service sees it, and the one in which it is told. */
export const ASKS = 'waitlist-check'
export const TELLS = 'waitlist-seen'

/** The name of the secret that signs the question: only those who can read the store may ask. */
export const SEEN_SECRET = 'check'

/** How the service sees a request. */
export interface Seen {
  /** The key that its attempts count for, and that of the other end of the connection. */
  readonly client: string
  readonly peer: string
  /** Whom it trusts to say who the client is. */
  readonly proxies: TrustedProxies
  /** X-Forwarded-For as it came. */
  readonly forwarded: string
  /** What it shows of a TRUST_PROXY that does not fit. */
  readonly sign: ForwardingSign | null
}

/** Milliseconds that the clocks of both sides may differ. */
const FRESH = 300_000

/** The question that is asked at a moment, in milliseconds since 1970. */
export const question = (secret: string, at: number): string =>
  `${at}.${createHmac('sha256', secret).update(String(at)).digest('hex')}`

const momentOf = (asked: string): number => Number(asked.split('.', 1)[0])

const isFresh = (asked: string): boolean => Math.abs(Date.now() - momentOf(asked)) < FRESH

function isSigned(asked: string, secret: string): boolean {
  const [given, expected] = [Buffer.from(asked), Buffer.from(question(secret, momentOf(asked)))]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** The health report, which also tells a signed question how it is seen. Everybody else gets it as it is. */
export function tellingSeen(
  health: () => Answer | Promise<Answer>,
  { proxies, secret }: { readonly proxies: TrustedProxies; secret(name: string): Promise<string> },
): (request: IncomingMessage) => Answer | Promise<Answer> {
  let known: Promise<string | null> | undefined
  async function tell({ socket, headers }: IncomingMessage, asked: string): Promise<Answer> {
    const answer = await health()
    // Anybody may send the field, so at most one read of the secret is under way, and none while the store is unwell.
    if (answer.status !== 200) return answer
    known ??= secret(SEEN_SECRET).catch(() => {
      known = undefined
      return null
    })
    const signedWith = await known
    if (signedWith === null || !isSigned(asked, signedWith)) return answer
    const forwarded = String(headers['x-forwarded-for'] ?? '')
    let sign: ForwardingSign | null = null
    const client = clientAddress(proxies, each => {
      sign = each
    })(socket.remoteAddress!, forwarded)
    const peer = clientAddress({ kind: 'none' })(socket.remoteAddress!, '')
    const seen: Seen = { client, peer, proxies, forwarded, sign }
    return withFields(answer, fieldList({ [TELLS]: JSON.stringify(seen) }))
  }
  return request => {
    const asked = request.headers[ASKS]
    return typeof asked === 'string' && isFresh(asked) ? tell(request, asked) : health()
  }
}
