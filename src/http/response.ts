import type { ServerResponse } from 'node:http'

/** Response headers; names are lower case. */
export type Headers = Readonly<Record<string, string>>

/** A whole answer, except for Content-Length and what Node adds (Date, Connection). */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** Null if the status has no content (204, 304). */
  readonly body: string | Buffer | null
}

/** The media type has no `charset` parameter (RFC 8259 §11). */
export const jsonAnswer = (status: number, headers: Headers, value: object): Answer => ({
  status,
  headers: { ...headers, 'content-type': 'application/json' },
  body: JSON.stringify(value),
})

export const withHeaders = (answer: Answer, headers: Headers): Answer => ({
  ...answer,
  headers: { ...answer.headers, ...headers },
})

/** To a HEAD request Node sends only the head (RFC 9110 §9.3.2). */
export function send(response: ServerResponse, { status, headers, body }: Answer): void {
  if (body === null) return void response.writeHead(status, headers).end()
  const length = Buffer.byteLength(body)
  // Node copies ASCII as it is, together with the head.
  const encoding = length === body.length ? 'latin1' : 'utf8'
  response.writeHead(status, { ...headers, 'content-length': length }).end(body, encoding)
}

// Headers that many answers share.

/** OWASP REST Security cheat sheet, "Security Headers". HTML pages replace some of them. */
export const securityHeaders: Headers = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}

/** Any page may read the answer, without credentials. */
export const readableAnywhere: Headers = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Link, ETag',
}

/** For public, read-only resources. */
export const publicHeaders: Headers = {
  ...securityHeaders,
  ...readableAnywhere,
  'cross-origin-resource-policy': 'cross-origin',
}

/** RFC 6797 §6.1. Only sent over TLS (§7.2). */
export const strictTransportSecurity: Headers = { 'strict-transport-security': 'max-age=31536000' }
