import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Which proxies are trusted to name the client: none, the nearest few, or those in these networks (CIDR notation). */
export type TrustedProxies =
  | { readonly kind: 'none' }
  | { readonly kind: 'hops'; readonly hops: number }
  | { readonly kind: 'networks'; readonly networks: readonly string[] }

export interface ClientRule {
  readonly proxies: TrustedProxies
  /** IPv6 addresses with this many leading bits in common are one client. 64 is one host's own subnet (RFC 4291 §2.5.1). */
  readonly ipv6Prefix: number
}

/**
 * Makes the function that returns the key under which a client's attempts are counted.
 *
 * `peer` is the address of the socket, `forwardedFor` the value of X-Forwarded-For (several field lines joined by
 * commas). The key is an IPv4 address (also for IPv4-mapped IPv6, RFC 4291 §2.5.5.2) or an IPv6 network; null when the
 * socket no longer has an address.
 *
 * The list is read from the right, as long as each address is a trusted proxy. Everything further left may be forged.
 */
export function clientAddress({
  proxies,
  ipv6Prefix,
}: ClientRule): (peer: string | undefined, forwardedFor: string | undefined) => string | null {
  const trusts = trustIn(proxies)
  return (peer, forwardedFor) => {
    if (peer === undefined) return null
    if (forwardedFor === undefined || proxies.kind === 'none') return clientKey(peer, ipv6Prefix)
    let address = peer
    let rest = forwardedFor
    for (let hop = 0; rest !== '' && trusts(address, hop); hop++) {
      const comma = rest.lastIndexOf(',')
      const next = addressIn(rest.slice(comma + 1))
      if (next === null) break
      address = next
      rest = comma === -1 ? '' : rest.slice(0, comma)
    }
    return clientKey(address, ipv6Prefix)
  }
}

/** A site may have as much (RFC 6177): 65,536 clients of 64 bits. */
const SITE = 48

/** Makes the function that returns the key of the IPv6 site that a client is in; undefined if it is in none. */
export function networkOf({ ipv6Prefix }: ClientRule): (client: string) => string | undefined {
  if (ipv6Prefix <= SITE) return () => undefined
  return client => (client.includes(':') ? networkKey(client.slice(0, client.indexOf('/')), SITE) : undefined)
}

/**
 * Makes the function that returns the client behind a connection, under the same key; null for a trusted proxy, which brings
 * many clients. With a number of hops, every connection comes from a proxy.
 */
export function connectionClient({ proxies, ipv6Prefix }: ClientRule): (peer: string) => string | null {
  const trusts = trustIn(proxies)
  return peer => (trusts(peer, 0) ? null : clientKey(peer, ipv6Prefix))
}

function trustIn(proxies: TrustedProxies): (address: string, hop: number) => boolean {
  switch (proxies.kind) {
    case 'none':
      return () => false
    case 'hops':
      return (_, hop) => hop < proxies.hops
    case 'networks': {
      const networks = proxies.networks.map(network => ipaddr.parseCIDR(network))
      return address => {
        const parsed = ipaddr.process(withoutZone(address))
        return networks.some(([network, bits]) => parsed.kind() === network.kind() && parsed.match(network, bits))
      }
    }
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

function clientKey(address: string, ipv6Prefix: number): string {
  if (isIPv4(address)) return address
  const parsed = ipaddr.IPv6.parse(withoutZone(address))
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return networkKey(parsed.toString(), ipv6Prefix)
}

const networkKey = (address: string, bits: number): string =>
  `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`)}/${bits}`

/** RFC 4007 §11: a zone names an interface, not a host. */
function withoutZone(address: string): string {
  const percent = address.indexOf('%')
  return percent === -1 ? address : address.slice(0, percent)
}
