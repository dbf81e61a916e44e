import ipaddr from 'ipaddr.js'

const privateRanges = new Set(['private', 'loopback', 'linkLocal', 'uniqueLocal'])

/**
 * Whether a URL leads, by its host as written, to this machine or a private network: localhost, a name without a dot (of
 * a container next door), `.local`, `.internal`, `.localhost`, or a private address (RFC 1918, 4193, 3927, 4291).
 */
export function isPrivate(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (ipaddr.isValid(host)) return privateRanges.has(ipaddr.process(host).range())
  return !host.includes('.') || /\.(?:local|internal|localhost|home\.arpa)$/.test(host)
}
