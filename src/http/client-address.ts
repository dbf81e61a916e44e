import type { IncomingMessage } from 'node:http'
import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Logger } from 'pino'
import { listOf } from '../config/readers.ts'

/** Which proxies are trusted to name the client: none, the nearest few, or those in these networks (CIDR notation). */
export type TrustedProxies =
  | { readonly kind: 'none' }
  | { readonly kind: 'hops'; readonly hops: number }
  | { readonly kind: 'networks'; readonly networks: readonly string[] }

/** `10/8` and octal parts do not mean what they seem to; IPv4-mapped peers are compared as IPv4. */
const isNetwork = (text: string): boolean =>
  ipaddr.isValidCIDR(text) && isIP(text.split('/')[0]!) !== 0 && !/^::ffff:/i.test(text) && !/\/0\d/.test(text)

/** Reads TRUST_PROXY. */
export const trustedProxies = {
  allowed: 'must be a number of proxies (0 to 99) or a list of networks such as 10.0.0.0/8,fd00::/8',
  read(text: string): TrustedProxies | undefined {
    if (/^\d{1,2}$/.test(text)) return text === '0' ? { kind: 'none' } : { kind: 'hops', hops: Number(text) }
    const networks = listOf({ read: item => (isNetwork(item) ? item : undefined) }, text)
    return networks && { kind: 'networks', networks }
  },
}

type Trust = (address: string, hop: number) => boolean

/** Leading bits that the IPv6 addresses of one client have in common: what a provider gives to one home (RFC 6177 §2). */
const CLIENT_PREFIX = 56

export function clientAddresses(proxies: TrustedProxies) {
  const trusts = trustIn(proxies)
  return {
    /**
     * The address of the client behind a request. X-Forwarded-For, whose lines Node joins, is read from the right, as long as
     * each address is a trusted proxy. Everything further left may be forged.
     */
    of({ socket, headers }: IncomingMessage): string {
      const items = (headers['x-forwarded-for'] as string | undefined)?.split(',') ?? []
      let address = socket.remoteAddress!
      for (let hop = 0; items.length > 0 && trusts(address, hop); hop++) {
        const next = addressIn(items.pop()!)
        if (next === null) break
        address = next
      }
      return address
    },
    /** The client behind a connection, as a key; null for a trusted proxy, which brings many clients. */
    ofConnection: (peer: string): string | null => (trusts(peer, 0) ? null : clientKey(peer)),
    isTrusted: (peer: string): boolean => trusts(peer, 0),
  }
}

/** The key under which a client is counted: an IPv4 address (also of IPv4-mapped IPv6, RFC 4291 §2.5.5.2) or an IPv6 network. */
export function clientKey(address: string): string {
  if (isIPv4(address)) return address
  const parsed = ipaddr.process(withoutZone(address))
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${CLIENT_PREFIX}`)}/${CLIENT_PREFIX}`
}

/** Null for a private or reserved address, which says nothing to anybody else. */
export function publicAddress(address: string): string | null {
  const parsed = ipaddr.process(withoutZone(address))
  return parsed.range() === 'unicast' ? parsed.toString() : null
}

function trustIn(proxies: TrustedProxies): Trust {
  if (proxies.kind === 'none') return () => false
  if (proxies.kind === 'hops') return (_, hop) => hop < proxies.hops
  const networks = proxies.networks.map(network => ipaddr.parseCIDR(network))
  return address => {
    const parsed = ipaddr.process(withoutZone(address))
    return networks.some(([network, bits]) => parsed.kind() === network.kind() && parsed.match(network, bits))
  }
}

/** One item of X-Forwarded-For: an address, perhaps in brackets, perhaps with a port. Null for anything else. */
function addressIn(item: string): string | null {
  const text = item.trim()
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
  const address = withoutZone(bare)
  // IPv4 in four parts only: some parsers also take `1` or `0x7f.1`, which are never clients' addresses.
  return isIPv4(address) || ipaddr.IPv6.isValid(address) ? address : null
}

/** RFC 4007 §11: a zone names an interface, not a host. */
const withoutZone = (address: string): string => address.split('%', 1)[0]!

/** Warns once of a proxy that TRUST_PROXY does not trust. */
export function warnUntrusted(proxies: TrustedProxies, log: Logger): (request: IncomingMessage) => void {
  const { isTrusted } = clientAddresses(proxies)
  let hasWarned = false
  return ({ socket, headers }) => {
    if (hasWarned || headers['x-forwarded-for'] === undefined || isTrusted(socket.remoteAddress!)) return
    hasWarned = true
    log.warn(
      'X-Forwarded-For was ignored, since TRUST_PROXY does not trust its sender. If that is your proxy, all its visitors ' +
        'share one rate limit: let TRUST_PROXY count or name it (1 for a single proxy).',
    )
  }
}
