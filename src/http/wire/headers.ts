import { fieldList } from './answer.ts'

/** Response fields that many answers share. */

type Fields = Readonly<Record<string, string>>

/** OWASP REST Security cheat sheet, "Security Headers". The HTML page replaces some of them. */
export const securityFields: Fields = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}

const anyOrigin: Fields = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Link, ETag',
}

/** For public, read-only resources: any page may read them, without credentials. */
export const publicFields: Fields = { ...securityFields, ...anyOrigin, 'cross-origin-resource-policy': 'cross-origin' }

/** The same for their errors. */
export const readableAnywhere = fieldList(anyOrigin)

/** RFC 6797 §6.1. Only sent over TLS (§7.2). */
export const strictTransportSecurity = fieldList({ 'strict-transport-security': 'max-age=31536000' })
