import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Answer, fieldList, withFields } from './answer.ts'
import { clientAddress, type ForwardingSign, type TrustedProxies } from './client-address.ts'

/** The field in which `waitlist check` asks how the service sees it, and the one in which it is told. */
export const ASKS = 'waitlist-check'
export const TELLS = 'waitlist-seen'

/** The name of the secret that signs the question: whoever reads the store may ask, and nobody else. */
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

function isSigned(asked: string, secret: string): boolean {
  const at = Number(asked.split('.', 1)[0])
  if (!(Math.abs(Date.now() - at) < FRESH)) return false
  const [given, expected] = [Buffer.from(asked), Buffer.from(question(secret, at))]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** The health report, which also tells a signed question how it is seen. Everybody else gets it as it is. */
export function tellingSeen(
  health: () => Answer | Promise<Answer>,
  { proxies, secret }: { readonly proxies: TrustedProxies; secret(name: string): Promise<string> },
): (request: IncomingMessage) => Answer | Promise<Answer> {
  let known: string | undefined
  async function tell({ socket, headers }: IncomingMessage, asked: string): Promise<Answer> {
    const answer = await health()
    // A store that cannot say it now is what the report is about.
    known ??= await secret(SEEN_SECRET).catch(() => undefined)
    if (known === undefined || !isSigned(asked, known)) return answer
    const forwarded = String(headers['x-forwarded-for'] ?? '')
    let sign: ForwardingSign | null = null
    const notice = (each: ForwardingSign) => {
      sign = each
    }
    const client = clientAddress(proxies, notice)(socket.remoteAddress, forwarded)
    const peer = clientAddress({ kind: 'none' })(socket.remoteAddress, '')
    if (client === null || peer === null) return answer
    const seen: Seen = { client, peer, proxies, forwarded, sign }
    return withFields(answer, fieldList({ [TELLS]: JSON.stringify(seen) }))
  }
  return request => {
    const asked = request.headers[ASKS]
    return typeof asked === 'string' ? tell(request, asked) : health()
  }
}
