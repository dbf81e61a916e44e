/** Response fields that many answers share. Names are lower case, as in HTTP/2. */

type Fields = Readonly<Record<string, string>>

/** OWASP REST Security cheat sheet, "Security Headers". A page of HTML replaces some of them. */
export const securityFields: Fields = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}

/** Public, read-only resources: any page may read them and their errors, no credentials are involved. */
export const readableAnywhere: Fields = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Link, ETag',
}

export const publicFields: Fields = {
  ...securityFields,
  ...readableAnywhere,
  'cross-origin-resource-policy': 'cross-origin',
}

/** RFC 6797 §6.1; sent over TLS alone (§7.2). */
export const strictTransportSecurity = (includeSubdomains: boolean): string =>
  `max-age=31536000${includeSubdomains ? '; includeSubDomains' : ''}`
