import type { Logger } from 'pino'
import type { ForwardingSign } from './client-address.ts'

/**
 * Tells the operator that TRUST_PROXY does not seem to fit, once for each sign. The sentences say "if" where somebody on the
 * same network may have sent the signup straight here, which looks the same.
 */
export function forwardingLog(log: Logger): (sign: ForwardingSign) => void {
  const told = new Set<ForwardingSign>()
  return sign => {
    if (told.has(sign)) return
    told.add(sign)
    log.warn(forwardingAdvice[sign])
  }
}

/** What each sign means, and what helps. */
export const forwardingAdvice: Readonly<Record<ForwardingSign, string>> = {
  'no address':
    'A request came without an address in X-Forwarded-For, where TRUST_PROXY expects one. If it came through a proxy, all ' +
    'visitors share one rate limit, or choose the address that their attempts count for: let the proxy add the ' +
    "visitor's address to that field. If it came past the proxy, let nobody else reach this port.",
  'too few':
    'X-Forwarded-For of a request names fewer addresses than TRUST_PROXY counts proxies. Visitors may share one rate ' +
    'limit, or choose the address that their attempts count for. Set TRUST_PROXY to the number of proxies that add to ' +
    'the field, and let nobody reach one past those before it.',
  'not trusted':
    'A request came from a private address with X-Forwarded-For, which was ignored, since TRUST_PROXY does not trust that ' +
    'address. If it is your proxy, all its visitors share one rate limit: let TRUST_PROXY count or name it (1 for a ' +
    'single proxy).',
  'one more':
    'X-Forwarded-For of a request names a visitor before a private address that TRUST_PROXY does not trust. If that is ' +
    'one more proxy, all its visitors share one rate limit: let TRUST_PROXY count or name it, too.',
}
