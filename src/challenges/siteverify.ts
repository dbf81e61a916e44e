import { createHash } from 'node:crypto'
import { attempting } from '../outbound/attempt.ts'
import { type Caller, caller } from '../outbound/caller.ts'
import type { Rate } from '../outbound/pace.ts'
import { judge, memberAt, type Reply } from '../outbound/reply.ts'
import type { Challenge, Verdict, Widget } from '../waitlist/ports/challenge.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Log } from '../waitlist/ports/log.ts'
import { throttle } from '../waitlist/quiet-log.ts'
import { verifierBreaker } from './breaker.ts'
import type { ChallengeChoice } from './settings.ts'
import { listed, type Meaning, meanings, type Vendor, vendors } from './vendors.ts'

export type Siteverify = Exclude<ChallengeChoice, { readonly kind: 'altcha' }>

export interface SiteverifyParts {
  /** Hosts on which a challenge may have been solved; none: on any. */
  readonly hosts: readonly string[]
  readonly log: Log
  /** Milliseconds that a visitor waits for the verifier. */
  readonly timeout?: number
}

const TIMEOUT = 4_000
/**
 * Milliseconds for which a verified token is good for a repeated signup. No shorter than the time for which a vendor verifies
 * a token twice (Turnstile: 300 seconds).
 */
const REPEATABLE = 300_000
/** Verified tokens that are remembered, of about 450 bytes each. */
const REMEMBERED = 20_000
/** No vendor documents a limit. */
const RATE: Rate = { calls: 1_000, per: 1_000, connections: 64 }
/** Milliseconds between two log lines. */
const QUIET = 60_000

/** What an answer says about a token. */
type Judgement =
  | { readonly is: 'valid'; readonly host: string | null }
  | { readonly is: Meaning; readonly code: string }
  | Failure

/**
 * The verifier of a vendor: one call for each token. Every vendor verifies a token once, so a repeated signup is recognised
 * by this process, for five minutes. What a vendor cannot promise beyond that:
 *
 * | the same token again | to the same process | to another instance, or after a restart   |
 * |----------------------|---------------------|-------------------------------------------|
 * | Turnstile            | verified            | verified: its `idempotency_key`           |
 * | all others           | verified            | expired: the visitor must solve a new one |
 *
 * That a token is good for one address is up to the store, for which its hash is the nonce of the proof.
 */
export function siteverify(choice: Siteverify, { hosts, log, timeout = TIMEOUT }: SiteverifyParts): Challenge {
  const { kind, secret } = choice
  const vendor: Vendor = vendors[kind]
  const { origin, pathname } = new URL(addressOf(choice))
  const { call, close } = caller({ base: origin, headers: {}, rate: RATE, secrets: [secret] })
  const breaker = verifierBreaker()
  const remembered = verdicts()
  const mayTell = throttle(QUIET)
  const unsolved = (why: 'wrong' | 'expired'): Verdict => ({ is: 'unsolved', why })

  function request(token: string, visitor: string | null): Parameters<Caller['call']>[0] {
    const body = {
      secret,
      response: token,
      ...(vendor.takesAddress && visitor !== null && { remoteip: visitor }),
      ...(vendor.idempotency !== undefined && { [vendor.idempotency]: uuidOf(token) }),
    }
    const post = { to: 'verify a challenge', method: 'POST', safe: true, path: pathname } as const
    if (!vendor.form) return { ...post, body }
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return { ...post, headers, body: new URLSearchParams(body as Record<string, string>).toString() }
  }

  const ask = (token: string, visitor: string | null, signal: AbortSignal, mayBegin?: () => boolean) =>
    attempting(timeout, signal, attempt => call(request(token, visitor), attempt), mayBegin, 'visitor')

  /** For the operator: it may be somebody's attempt, or a wrong setting. */
  function refuseForeign(why: string): Verdict {
    if (mayTell())
      log.warn({ challenge: kind, why }, 'a challenge was solved for another site, so a signup was refused')
    return unsolved('wrong')
  }

  async function verify(token: string, nonce: string, visitor: string | null, signal: AbortSignal): Promise<Verdict> {
    const permit = breaker.begin()
    if (permit === null) return { is: 'unverified', why: 'not asked, since it did not answer before' }
    const reply = await ask(token, visitor, signal, permit.isDue)
    // Only silence makes visitors wait, so any answer will do. No visitor can bring about the others.
    if (!('notSent' in reply)) permit.ended(reply.is === 'answered')
    const judgement = judgementOf(vendor, reply)
    switch (judgement.is) {
      case 'valid': {
        const { host } = judgement
        if (host !== null && hosts.length > 0 && !hosts.includes(host)) {
          return refuseForeign(`${host} is in neither CORS_ORIGINS nor BASE_URL`)
        }
        return { is: 'solved', proof: { nonce, expires: new Date(Date.now() + REPEATABLE) } }
      }
      case 'secret':
        return { is: 'misconfigured', why: refusalBy(vendor, judgement.code) }
      case 'foreign':
        return refuseForeign(refusalBy(vendor, judgement.code))
      case 'wrong':
      case 'expired':
        return unsolved(judgement.is)
      default:
        // Even if a redirect shows that the address is wrong: what cannot be verified is held, not lost.
        return { is: 'unverified', why: judgement.why }
    }
  }

  return {
    name: kind,
    member: vendor.member,
    title: vendor.title,
    widget: widgetOf(choice),
    issue: null,

    async verify(token, visitor, signal) {
      if (token.length > (vendor.longest ?? Number.POSITIVE_INFINITY)) return unsolved('wrong')
      const nonce = createHash('sha256').update(`${kind} ${token}`).digest('base64url')
      // A double click asks once.
      return remembered(nonce, () => verify(token, nonce, visitor, signal))
    },

    /** With a token that nobody was given: it must be refused, and for no other reason. */
    async check(signal) {
      const judgement = judgementOf(vendor, await ask(checkToken(pathname), null, signal))
      switch (judgement.is) {
        case 'wrong':
        case 'expired':
          return null
        case 'secret':
        case 'foreign':
          return { is: 'misconfigured', why: refusalBy(vendor, judgement.code) }
        case 'valid':
          return { is: 'misconfigured', why: `${vendor.title} takes any solution: CHALLENGE_SECRET is one for tests` }
        default:
          return judgement
      }
    },

    close,
  }
}

const refusalBy = ({ title, url }: Vendor, code: string): string =>
  `${title} says "${code}": CHALLENGE_SECRET${url === null ? ' and CHALLENGE_URL' : ''} must belong to the site of the widget`

function judgementOf({ site, codes = listed }: Vendor, reply: Reply | Failure): Judgement {
  if (reply.is !== 'answered') return reply
  const { json, status } = reply
  const success = memberAt(json, 'success')
  if (success === true && status < 300) {
    const where = site && memberAt(json, ...site.path)
    const host = typeof where === 'string' ? hostIn(where) : null
    return host === null && site?.always ? senseless(reply) : { is: 'valid', host }
  }
  const said = codes(json, status)
  const known = said.flatMap(code => {
    const is = meanings.get(code)
    return is === undefined ? [] : [{ is, code }]
  })
  // A made-up token and a wrong secret may be refused together.
  const [first = known[0]] = known.filter(({ is }) => is === 'secret')
  if (first !== undefined && success !== true) return first
  if (success === false && status < 300 && said.length === 0) return { is: 'wrong', code: 'no reason' }
  return senseless(reply, said)
}

/** Our request is refused for a reason that we do not know, or nothing is said about the token. */
function senseless(reply: Reply, codes: readonly string[] = []): Failure {
  const told = codes.filter(code => /^[\w -]{1,60}$/.test(code)).slice(0, 3)
  const why = told.length === 0 ? `${reply.summary}, which makes no sense here` : `${reply.summary}: ${told.join(', ')}`
  return { ...judge(reply), why }
}

/** Null: it is not told. */
function hostIn(text: string): string | null {
  const origin = `http://${text}`
  return text === '' || text === 'not-provided' || !URL.canParse(origin) ? null : new URL(origin).hostname
}

/** A page gets the address of Cap with its site key, and of the others the key alone. */
function widgetOf(choice: Siteverify): Widget {
  const { widget }: Vendor = vendors[choice.kind]
  const { script, isModule = false, place, api } = widget
  const key = choice.siteKey ?? ''
  return place === null
    ? {
        script,
        isModule,
        tag: 'cap-widget',
        attributes: { 'data-cap-api-endpoint': key || addressOf(choice).replace(/siteverify$/, '') },
        api,
      }
    : { script, isModule, tag: 'div', attributes: { class: place, 'data-sitekey': key }, api }
}

/** That of Cap may be given as its widget has it: without the end. */
function addressOf({ kind, url }: Siteverify): string {
  if (url === null) return vendors[kind].url!
  return kind === 'cap' && !url.endsWith('/siteverify') ? `${url}/siteverify` : url
}

/** Cap's tokens begin with the site key, which is in the path. */
const checkToken = (path: string): string => `${path.split('/').at(-2)}:waitlist:check`

/** The same for the same token, in the form of a random one (RFC 9562 §5.4), which is what Cloudflare shows. */
function uuidOf(token: string): string {
  const hex = createHash('sha256').update(token).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * Verdicts by nonce: those that are under way, and those that were `solved`, for `REPEATABLE`. The oldest make room for new
 * ones. Returns the verdict that is remembered, or a new one.
 */
function verdicts() {
  const kept = new Map<string, { readonly verdict: Promise<Verdict>; readonly until: number }>()

  return (nonce: string, make: () => Promise<Verdict>): Promise<Verdict> => {
    const now = performance.now()
    const known = kept.get(nonce)
    if (known !== undefined && known.until > now) return known.verdict
    for (const [old, { until }] of kept) {
      if (until > now && kept.size < REMEMBERED) break
      kept.delete(old)
    }
    const own = { verdict: make(), until: now + REPEATABLE }
    kept.set(nonce, own)
    const forget = () => {
      if (kept.get(nonce) === own) kept.delete(nonce)
    }
    own.verdict.then(({ is }) => {
      if (is !== 'solved') forget()
    }, forget)
    return own.verdict
  }
}
