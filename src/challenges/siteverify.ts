import { createHash } from 'node:crypto'
import { type Log, summary } from '../config/operator.ts'
import { call, deadline } from '../http-client/call.ts'
import type { Challenge, ChallengeChoice, Verdict, Widget } from './index.ts'

/** One vendor: what a page has of it, and how its verifier is asked. */
interface Vendor {
  readonly title: string
  /** Null: it is self-hosted. */
  readonly url: string | null
  /** The member of a form that its widget fills. */
  readonly member: string
  /** Whether it takes a form, with the visitor's address; otherwise JSON. */
  readonly takesForm: boolean
  /** What its verifier says of a wrong secret, as "status codes". No visitor can bring this about. */
  readonly refusesSecret: RegExp
  /** `key`: the site key; of Cap the address with it. */
  widget(key: string): Widget
}

export const vendors = {
  /** https://developers.cloudflare.com/turnstile/get-started/server-side-validation/ */
  turnstile: {
    title: 'Turnstile',
    url: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
    member: 'cf-turnstile-response',
    takesForm: true,
    refusesSecret: /-input-secret/,
    widget: key => ({
      script: 'https://challenges.cloudflare.com/turnstile/v0/api.js',
      isModule: false,
      tag: 'div',
      attributes: { class: 'cf-turnstile', 'data-sitekey': key },
      api: 'turnstile',
    }),
  },
  /** https://docs.hcaptcha.com/, "Verify the User Response Server Side" */
  hcaptcha: {
    title: 'hCaptcha',
    url: 'https://api.hcaptcha.com/siteverify',
    member: 'h-captcha-response',
    takesForm: true,
    refusesSecret: /-input-secret/,
    widget: key => ({
      script: 'https://js.hcaptcha.com/1/api.js',
      isModule: false,
      tag: 'div',
      attributes: { class: 'h-captcha', 'data-sitekey': key },
      api: 'hcaptcha',
    }),
  },
  /** https://capjs.js.org/guide/standalone/, "Server-side". A 404 with the same words is about the site key of the token. */
  cap: {
    title: 'Cap',
    url: null,
    member: 'cap-token',
    takesForm: false,
    refusesSecret: /^403 Invalid site key or secret/,
    widget: endpoint => ({
      script: 'https://cdn.jsdelivr.net/npm/cap-widget@0.1.57',
      isModule: true,
      tag: 'cap-widget',
      attributes: { 'data-cap-api-endpoint': endpoint },
      api: null,
    }),
  },
} as const satisfies Readonly<Record<string, Vendor>>

export type Siteverify = Exclude<ChallengeChoice, { readonly kind: 'altcha' }>

/** Milliseconds that a visitor waits for the verifier. */
const TIMEOUT = 4_000
/** Milliseconds for which a proof is kept. No vendor verifies a token after that. */
const LIFETIME = 300_000

/** The verifier of a vendor: one call for each token. The hash of a token is the nonce of its proof. */
export function siteverify({ kind, secret, siteKey, url: given }: Siteverify, log: Log): Challenge {
  const vendor: Vendor = vendors[kind]
  // The address of Cap may be as its widget has it: without the end.
  const endpoint = `${given?.replace(/\/(?:siteverify)?$/, '')}/`
  const url = kind === 'cap' ? `${endpoint}siteverify` : (given ?? vendors[kind].url)
  const foreign = summary<string>((signups, reason) =>
    log.warn({ challenge: kind, reason, signups }, 'signups are refused: their challenge belongs to another site key'),
  )

  async function verify(token: string, visitor: string | null, stop: AbortSignal): Promise<Verdict> {
    const body = { secret, response: token, ...(vendor.takesForm && visitor !== null && { remoteip: visitor }) }
    const { status, json, why } = await call({
      ...{ action: 'verify a challenge', method: 'POST', url, safe: true, secrets: [secret, token] },
      ...(vendor.takesForm
        ? {
            headers: { 'content-type': 'application/x-www-form-urlencoded' },
            body: String(new URLSearchParams(body)),
          }
        : { body }),
      signal: deadline(TIMEOUT, stop),
    })
    const codes = [json?.['error-codes'] ?? json?.error ?? []].flat().join(', ')
    if (vendor.refusesSecret.test(`${status} ${codes}`)) {
      return { is: 'misconfigured', why: `${vendor.title} says "${codes}": CHALLENGE_SECRET must belong to the widget` }
    }
    if (typeof json?.success !== 'boolean' || codes.includes('internal-error')) return { is: 'unverified', why }
    if (json.success) {
      const nonce = createHash('sha256').update(`${kind} ${token}`).digest('base64url')
      return { is: 'solved', proof: { nonce, expires: new Date(Date.now() + LIFETIME) } }
    }
    if (/mismatch|dummy|invalid site key/i.test(codes)) foreign(codes)
    return { is: 'unsolved', why: /duplicate|already|expired|not found/i.test(codes) ? 'expired' : 'wrong' }
  }

  return {
    name: kind,
    member: vendor.member,
    widget: vendor.widget(siteKey ?? (kind === 'cap' ? endpoint : '')),
    issue: null,
    verify,

    /** With a token that nobody was given: it must be refused, and for no other reason. */
    async check(stop) {
      // Cap's tokens begin with the site key, which is in the path.
      const verdict = await verify(`${new URL(url).pathname.split('/').at(-2)}:waitlist:check`, null, stop)
      if (verdict.is === 'unsolved') return null
      if (verdict.is === 'solved') {
        return { is: 'misconfigured', why: `${vendor.title} takes any solution: CHALLENGE_SECRET is one for tests` }
      }
      return { is: verdict.is === 'unverified' ? 'unreachable' : verdict.is, why: verdict.why }
    },
  }
}
