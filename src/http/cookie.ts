/** The membership cookie says "this browser signed up". It authorises nothing, and holds nothing about the visitor. */
export interface CookieSettings {
  readonly name: string
  readonly sameSite: 'lax' | 'strict' | 'none'
  /** Seconds; browsers keep no cookie longer than 400 days (rfc6265bis §5.5). */
  readonly maxAge: number
  /** Whether the public base URL is https. */
  readonly secure: boolean
}

export const COOKIE_MAX_AGE = 400 * 24 * 60 * 60

/** A cookie name is a token (RFC 9110 §5.6.2). */
export const isCookieName = (name: string): boolean => /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)

/** The `Set-Cookie` value (rfc6265bis §4.1.1), the same for every visitor. */
export function membershipCookie({ name, sameSite, maxAge, secure }: CookieSettings): string {
  const policy = { lax: 'Lax', strict: 'Strict', none: 'None' }[sameSite]
  return [
    `${name}=1`,
    'Path=/',
    `Max-Age=${maxAge}`,
    'HttpOnly',
    ...(secure ? ['Secure'] : []),
    `SameSite=${policy}`,
    // Browsers drop a cross-site cookie unless it is partitioned by site (CHIPS).
    ...(sameSite === 'none' ? ['Partitioned'] : []),
  ].join('; ')
}
