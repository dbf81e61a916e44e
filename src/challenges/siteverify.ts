import { createHash } from 'node:crypto'
import { summary } from '../delivery/throttle.ts'
import { call, deadline } from '../http-client/call.ts'
import type { Challenge, ChallengeChoice, ChallengeParts, Verdict } from './index.ts'
import { type Vendor, vendors } from './vendors.ts'

export type Siteverify = Exclude<ChallengeChoice, { readonly kind: 'altcha' }>

/** Milliseconds that a visitor waits for the verifier. */
const TIMEOUT = 4_000
/** Milliseconds for which a proof is kept. No vendor verifies a token after that. */
const LIFETIME = 300_000

/** The verifier of a vendor: one call for each token. The hash of a token is the nonce of its proof. */
export function siteverify(choice: Siteverify, { hosts, log }: Omit<ChallengeParts, 'secret'>): Challenge {
  const { kind, secret } = choice
  const vendor: Vendor = vendors[kind]
  const url = addressOf(choice)
  const foreign = summary<string>((signups, reason) =>
    log.warn(
      { challenge: kind, reason, signups },
      'challenges were solved for another site: their signups are refused',
    ),
  )

  async function verify(token: string, visitor: string | null, stop: AbortSignal): Promise<Verdict> {
    const body = { secret, response: token, ...(vendor.takesForm && visitor !== null && { remoteip: visitor }) }
    const form = {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: String(new URLSearchParams(body)),
    }
    const { status, json, why } = await call({
      ...{ action: 'verify a challenge', method: 'POST', url, safe: true, secrets: [secret, token] },
      ...(vendor.takesForm ? form : { body }),
      signal: deadline(TIMEOUT, stop),
    })
    const codes = [json?.['error-codes'] ?? json?.error ?? []].flat().join(', ')
    if (vendor.refusesSecret.test(`${status} ${codes}`)) {
      const settings = vendor.url === null ? 'CHALLENGE_SECRET and CHALLENGE_URL' : 'CHALLENGE_SECRET'
      return {
        is: 'misconfigured',
        why: `${vendor.title} says "${codes}": ${settings} must belong to the site of the widget`,
      }
    }
    if (typeof json?.success !== 'boolean' || codes.includes('internal-error')) return { is: 'unverified', why }
    if (!json.success) {
      if (/mismatch|dummy|invalid site key/i.test(codes)) foreign(codes)
      return { is: 'unsolved', why: /duplicate|already|expired|not found/i.test(codes) ? 'expired' : 'wrong' }
    }
    const host: unknown = json.hostname
    // Under load hCaptcha does not say where, and Cap never does.
    if (typeof host === 'string' && host !== 'not-provided' && hosts.length > 0 && !hosts.includes(host)) {
      foreign(`${host} is in neither CORS_ORIGINS nor BASE_URL`)
      return { is: 'unsolved', why: 'wrong' }
    }
    const nonce = createHash('sha256').update(`${kind} ${token}`).digest('base64url')
    return { is: 'solved', proof: { nonce, expires: new Date(Date.now() + LIFETIME) } }
  }

  return {
    name: kind,
    title: vendor.title,
    member: vendor.member,
    widget: { script: vendor.script, ...vendor.widget(choice.siteKey ?? (kind === 'cap' ? endpointOf(url) : '')) },
    issue: null,
    verify,

    /** With a token that nobody was given: it must be refused, and for no other reason. */
    async check(stop) {
      // Cap's tokens begin with the site key, which is in the path.
      const verdict = await verify(`${new URL(url).pathname.split('/').at(-2)}:waitlist:check`, null, stop)
      if (verdict.is === 'unsolved') return null
      if (verdict.is === 'unverified') return { is: 'unreachable', why: verdict.why }
      if (verdict.is === 'misconfigured') return { is: 'misconfigured', why: verdict.why }
      return { is: 'misconfigured', why: `${vendor.title} takes any solution: CHALLENGE_SECRET is one for tests` }
    },
  }
}

/** That of Cap may be given as its widget has it: without the end. */
function addressOf({ kind, url }: Siteverify): string {
  if (url === null) return vendors[kind].url!
  return kind === 'cap' ? `${endpointOf(url)}siteverify` : url
}

const endpointOf = (url: string): string => `${url.replace(/\/(?:siteverify)?$/, '')}/`
