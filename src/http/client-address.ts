import type { IncomingMessage } from 'node:http'
import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Logger } from 'pino'

/** Which proxies are trusted to name the client: none, the nearest few, or those in these networks (CIDR notation). */
export type TrustedProxies =
  | { readonly kind: 'none' }
  | { readonly kind: 'hops'; readonly hops: number }
  | { readonly kind: 'networks'; readonly networks: readonly string[] }

/**
 * Makes the function that returns the key under which a client's attempts are counted.
 *
 * `peer` is the address of the socket, `forwardedFor` the value of X-Forwarded-For (several field lines joined by
 * commas). The key is an IPv4 address (also for IPv4-mapped IPv6, RFC 4291 §2.5.5.2) or an IPv6 network.
 *
 * The list is read from the right, as long as each address is a trusted proxy. Everything further left may be forged.
 */
export function clientAddress(proxies: TrustedProxies): AddressOf<string> {
  const addressOf = forwardedAddress(proxies)
  return (...request) => clientKey(addressOf(...request))
}

export type AddressOf<Address> = (peer: string, forwardedFor: string | undefined) => Address

/**
 * Makes the function that returns the client's own address, read in the same way; null for a private one too, which says
 * nothing to anybody else and may be that of a proxy.
 */
export function visitorAddress(proxies: TrustedProxies): AddressOf<string | null> {
  const addressOf = forwardedAddress(proxies)
  return (...request) => {
    const address = addressOf(...request)
    return isPrivate(address) ? null : ipaddr.process(withoutZone(address)).toString()
  }
}

function forwardedAddress(proxies: TrustedProxies): AddressOf<string> {
  const trusts = trustIn(proxies)
  return (peer, forwardedFor = '') => {
    let address = peer
    let rest = forwardedFor
    let hop = 0
    while (rest !== '' && trusts(address, hop)) {
      const comma = rest.lastIndexOf(',')
      const next = addressIn(rest.slice(comma + 1))
      rest = comma === -1 || next === null ? '' : rest.slice(0, comma)
      if (next === null) break
      address = next
      hop++
    }
    return address
  }
}

/** Leading bits that the IPv6 addresses of one client have in common: what a provider gives to one home (RFC 6177 §2). */
const CLIENT_PREFIX = 56

/**
 * Makes the function that returns the client behind a connection, under the same key; null for a trusted proxy, which brings
 * many clients. With a number of hops, every connection comes from a proxy.
 */
export function connectionClient(proxies: TrustedProxies): (peer: string) => string | null {
  const trusts = trustIn(proxies)
  return peer => (trusts(peer, 0) ? null : clientKey(peer))
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

function clientKey(address: string): string {
  if (isIPv4(address)) return address
  const parsed = ipaddr.IPv6.parse(withoutZone(address))
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${CLIENT_PREFIX}`)}/${CLIENT_PREFIX}`
}

/** Where proxies stand, and the visitors of a public service do not (RFC 1918, 3927, 4193, 4291, 6598). */
const privateRanges = new Set(['private', 'loopback', 'linkLocal', 'uniqueLocal', 'carrierGradeNat'])

const isPrivate = (address: string): boolean => privateRanges.has(ipaddr.process(withoutZone(address)).range())

/** RFC 4007 §11: a zone names an interface, not a host. */
function withoutZone(address: string): string {
  const percent = address.indexOf('%')
  return percent === -1 ? address : address.slice(0, percent)
}

/** Warns once of a proxy that TRUST_PROXY does not trust. A public address may be a visitor's, who may send any field. */
export function warnUntrusted(proxies: TrustedProxies, log: Logger): (request: IncomingMessage) => void {
  const trusts = trustIn(proxies)
  let hasWarned = false
  return ({ socket, headers }) => {
    if (hasWarned || headers['x-forwarded-for'] === undefined) return
    const peer = socket.remoteAddress!
    if (trusts(peer, 0) || !isPrivate(peer)) return
    hasWarned = true
    log.warn(
      'A request came from a private address with X-Forwarded-For, which was ignored, since TRUST_PROXY does not trust that ' +
        'address. If it is your proxy, all its visitors share one rate limit: let TRUST_PROXY count or name it (1 for a ' +
        'single proxy).',
    )
  }
}
