/** The membership cookie says "this browser signed up". It authorises nothing, and holds nothing about the visitor. */
export interface CookieSettings {
  /** Whether the public base URL is https. */
  readonly secure: boolean
  /** Whether a page of another site may sign up. */
  readonly crossSite: boolean
}

/** Seconds: a year. Browsers keep no cookie longer than 400 days (rfc6265bis §5.5). */
const MAX_AGE = 31_536_000

/** The `Set-Cookie` value (rfc6265bis §4.1.1), the same for every visitor. */
export function membershipCookie({ secure, crossSite }: CookieSettings): string {
  // rfc6265bis §4.1.3, §5.7: browsers drop a cookie with the prefix, or for other sites, unless it is Secure.
  const common = `${secure ? '__Host-' : ''}waitlist=1; Path=/; Max-Age=${MAX_AGE}; HttpOnly`
  if (!secure) return `${common}; SameSite=Lax`
  // A cross-site cookie must be partitioned by site (CHIPS).
  return crossSite ? `${common}; Secure; SameSite=None; Partitioned` : `${common}; Secure; SameSite=Lax`
}
