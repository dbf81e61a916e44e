import ipaddr from 'ipaddr.js'

const privateRanges = new Set(['private', 'loopback', 'linkLocal', 'uniqueLocal'])

/**
 * Whether the host of a URL, as written, is this machine or in a private network: localhost, a name without a dot (such
 * as a container's), `.local`, `.internal`, `.localhost`, `.home.arpa`, or a private address (RFC 1918, 4193, 3927,
 * 4291). Nothing is resolved.
 */
export function isPrivate(url: string): boolean {
  const host = hostOf(url)
  if (ipaddr.isValid(host)) return privateRanges.has(ipaddr.process(host).range())
  return !host.includes('.') || /\.(?:local|internal|localhost|home\.arpa)$/.test(host)
}

/** Whether a host, as written, is this machine. Nothing is resolved. */
export const isLoopback = (host: string): boolean =>
  ipaddr.isValid(host) ? ipaddr.process(host).range() === 'loopback' : host === 'localhost'

/** Metadata services that are not link-local: of Amazon, Google and Alibaba. */
const metadata = new Set(['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200'])
const metadataNames = new Set(['metadata.google.internal', 'metadata.goog', 'instance-data.ec2.internal'])

/**
 * Whether the host of a URL, as written, is link-local (RFC 3927; RFC 4291 §2.5.6) or the metadata service of a cloud,
 * which tells a machine its credentials. Nothing is resolved.
 */
export function isMetadata(url: string): boolean {
  const host = hostOf(url)
  if (!ipaddr.isValid(host)) return metadataNames.has(host)
  const address = ipaddr.process(host)
  return address.range() === 'linkLocal' || metadata.has(address.toString())
}

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

/** An http or https address without user and fragment; undefined if the text is not one. */
export function httpUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const { protocol, hash, username, password } = url
  return /^https?:$/.test(protocol) && !hash && !username && !password ? url : undefined
}
