import { memberAt, textAt } from '../outbound/reply.ts'

/** What a code in a verifier's answer says. */
export type Meaning =
  /** Our secret is refused. No visitor can bring this about. */
  | 'secret'
  | 'wrong'
  /** Too old, or verified before. */
  | 'expired'
  /** Solved for another site: forged, or our secret belongs to that site. */
  | 'foreign'

/** One vendor: what a page has of it, how its verifier is asked, and how its answer is read. */
export interface Vendor {
  readonly title: string
  /** Null: it is self-hosted. */
  readonly url: string | null
  /** The member of a form that its widget fills. */
  readonly member: string
  readonly widget: {
    /** The address of its script. */
    readonly script: string
    readonly isModule?: boolean
    /** The class of its place in the form; null: that is an element of its own. */
    readonly place: string | null
    /** The object in the page that makes it ask for a new solution; null: its element does. */
    readonly api: string | null
  }
  /** Characters of a token, if the vendor says so. */
  readonly longest?: number
  /** Sent as a form; otherwise as JSON. */
  readonly form?: true
  /** Whether it takes the visitor's address. */
  readonly takesAddress?: true
  /** The member for a UUID with which a token may be verified again. */
  readonly idempotency?: string
  /** Where its answer names the site on which the challenge was solved; `always`: with every solution. */
  readonly site?: { readonly path: readonly string[]; readonly always: boolean }
  /** Those of an answer; by default, the list that most vendors have. */
  readonly codes?: (json: unknown, status: number) => readonly string[]
}

export function listed(json: unknown): readonly string[] {
  const codes = memberAt(json, 'error-codes')
  return [codes].flat().filter(code => typeof code === 'string')
}

export const vendors = {
  /** https://developers.cloudflare.com/turnstile/get-started/server-side-validation/, "Validate the token"; client-side-rendering/. */
  turnstile: {
    title: 'Turnstile',
    url: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
    member: 'cf-turnstile-response',
    widget: {
      script: 'https://challenges.cloudflare.com/turnstile/v0/api.js',
      place: 'cf-turnstile',
      api: 'turnstile',
    },
    longest: 2_048,
    form: true,
    takesAddress: true,
    idempotency: 'idempotency_key',
    site: { path: ['hostname'], always: true },
  },
  /**
   * https://docs.hcaptcha.com/, "Add the hCaptcha Widget", "Verify the User Response Server Side". Under load its `hostname` is `not-provided`; its
   * score, for enterprises, is the worse the higher it is.
   */
  hcaptcha: {
    title: 'hCaptcha',
    url: 'https://api.hcaptcha.com/siteverify',
    member: 'h-captcha-response',
    widget: {
      script: 'https://js.hcaptcha.com/1/api.js',
      place: 'h-captcha',
      api: 'hcaptcha',
    },
    form: true,
    takesAddress: true,
    site: { path: ['hostname'], always: false },
  },
  /** https://capjs.js.org/guide/standalone/, "Server-side", …/widget. It says what is wrong in a sentence. */
  cap: {
    title: 'Cap',
    url: null,
    member: 'cap-token',
    widget: {
      script: 'https://cdn.jsdelivr.net/npm/cap-widget@0.1.57',
      isModule: true,
      place: null,
      api: null,
    },
    codes: (json, status) => [`${status} ${textAt(json, 'error') ?? ''}`],
  },
} as const satisfies Readonly<Record<string, Vendor>>

/** Those of all vendors. Any other code, such as `internal-error` or `bad-request`, leaves a token unverified. */
export const meanings: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ['missing-input-secret', 'secret'],
  ['invalid-input-secret', 'secret'],
  ['403 Invalid site key or secret', 'secret'],
  ['missing-input-response', 'wrong'],
  ['invalid-input-response', 'wrong'],
  ['400 Missing required parameters', 'wrong'],
  ['timeout-or-duplicate', 'expired'],
  ['expired-input-response', 'expired'],
  ['already-seen-response', 'expired'],
  ['invalid-or-already-seen-response', 'expired'],
  ['403 Token expired', 'expired'],
  ['404 Token not found', 'expired'],
  ['sitekey-secret-mismatch', 'foreign'],
  ['not-using-dummy-passcode', 'foreign'],
  ['404 Invalid site key or secret', 'foreign'],
])
