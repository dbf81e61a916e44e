import ipaddr from 'ipaddr.js'

const privateRanges = new Set(['private', 'loopback', 'linkLocal', 'uniqueLocal'])

/**
 * Whether the host of a URL, as written, is this machine or in a private network: localhost, a name without a dot (such
 * as a container's), `.local`, `.internal`, `.localhost`, `.home.arpa`, or a private address (RFC 1918, 4193, 3927,
 * 4291). Nothing is resolved.
 */
export function isPrivate(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (ipaddr.isValid(host)) return privateRanges.has(ipaddr.process(host).range())
  return !host.includes('.') || /\.(?:local|internal|localhost|home\.arpa)$/.test(host)
}

/** Whether a host, as written, is this machine. Nothing is resolved. */
export const isLoopback = (host: string): boolean =>
  ipaddr.isValid(host) ? ipaddr.process(host).range() === 'loopback' : host === 'localhost'

/** An http or https address without user and fragment; undefined if the text is not one. */
export function httpUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const { protocol, hash, username, password } = url
  return /^https?:$/.test(protocol) && !hash && !username && !password ? url : undefined
}
