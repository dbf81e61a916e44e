/** The membership cookie says "this browser signed up". It authorises nothing, and holds nothing about the visitor. */
export interface CookieSettings {
  readonly sameSite: 'lax' | 'strict' | 'none'
  /** Whether the public base URL is https. */
  readonly secure: boolean
}

/** Seconds: a year. Browsers keep no cookie longer than 400 days (rfc6265bis §5.5). */
const MAX_AGE = 31_536_000

/** The `Set-Cookie` value (rfc6265bis §4.1.1), the same for every visitor. */
export function membershipCookie({ sameSite, secure }: CookieSettings): string {
  const policy = { lax: 'Lax', strict: 'Strict', none: 'None' }[sameSite]
  return [
    // rfc6265bis §4.1.3: browsers drop a cookie with the prefix unless it is Secure.
    `${secure ? '__Host-' : ''}waitlist=1`,
    'Path=/',
    `Max-Age=${MAX_AGE}`,
    'HttpOnly',
    ...(secure ? ['Secure'] : []),
    `SameSite=${policy}`,
    // Browsers drop a cross-site cookie unless it is partitioned by site (CHIPS).
    ...(sameSite === 'none' ? ['Partitioned'] : []),
  ].join('; ')
}
