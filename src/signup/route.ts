import type { IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Outcome } from '../app/telemetry.ts'
import { readJson } from '../http/body.ts'
import { clientKey, warnUntrusted } from '../http/client-address.ts'
import type { Context } from '../http/context.ts'
import {
  addressRefused,
  challengeSpent,
  domainNotAccepted,
  invalidSignup,
  providerUnreachable,
  savedForLater,
  tooManyAttempts,
  unavailable,
} from '../http/errors.ts'
import { type Answer, type Headers, jsonAnswer, securityHeaders, withHeaders } from '../http/response.ts'
import type { Route } from '../http/router.ts'
import { sentences } from '../messages/sentences.ts'
import { StoreUnavailable } from '../store/database.ts'
import type { Signup } from './contact.ts'
import { membershipCookie } from './cookie.ts'
import type { Joined } from './join.ts'
import { parseSignup, parseSource } from './parse.ts'

/** Milliseconds that every answer takes at least while membership is not disclosed. */
const NEUTRAL = 25

const overloaded = new StoreUnavailable('more signups arrive than can be stored in time')

type Result = readonly [outcome: Outcome, answer: Answer]

/** Verifies the challenge of a signup. Resolves with the signup and its proof. */
export type Prove = (
  request: IncomingMessage,
  body: object,
  signup: Signup,
) => Promise<{ readonly signup: Signup } | { readonly refusal: Answer }>

/**
 * `POST /api/waitlist`; `prove` is null while no challenge is asked for. The checks, in order: overload, attempts, encoding,
 * media type, size, syntax, name, email, and where they are set, its domain and the challenge.
 */
export function signupRoute(context: Context, prove: Prove | null): Route {
  const { settings, store, limiter, join, accepts, telemetry, corsHeaders, failed } = context
  const { quota, disclosesMembership, trackSources } = settings
  const warn = warnUntrusted(settings.proxies, context.log)
  const { resultOf, anybody } = results(settings)
  const policy = `"signup";q=${quota.limit};w=${quota.window}`

  return async (request, response, reqId) => {
    const headers = { ...corsHeaders(request) }
    const end = ([outcome, answer]: Result): Answer => {
      telemetry?.countSignup(outcome)
      return withHeaders(answer, headers)
    }
    try {
      if (store.isBehind()) throw overloaded
      warn(request)
      const { admitted, remaining, seconds } = await limiter.take(clientKey(context.addressOf(request)))
      // draft-ietf-httpapi-ratelimit-headers-11, Structured Fields (RFC 9651).
      headers['ratelimit-policy'] = policy
      headers.ratelimit = `"signup";r=${remaining};t=${seconds}`
      if (!admitted) return end(['limited', tooManyAttempts(seconds)])

      const body = await readJson(request, response)
      if ('refusal' in body) return end(['invalid', body.refusal])
      const parsed = parseSignup(body.object, trackSources ? parseSource(queryOf(request.url)) : undefined)
      if ('problem' in parsed) return end(['invalid', invalidSignup(parsed.problem)])
      if (accepts !== null && !accepts(parsed.email)) return end(['blocked', domainNotAccepted])
      const proven = prove === null ? { signup: parsed } : await prove(request, body.object, parsed)
      if ('refusal' in proven) return end([proven.refusal === unavailable ? 'failed' : 'unsolved', proven.refusal])

      if (disclosesMembership) return end(resultOf(await join(proven.signup)))
      const [joined] = await Promise.all([join(proven.signup), wait(NEUTRAL)])
      const [outcome, answer] = resultOf(joined)
      return end([outcome, answer.status === 200 ? anybody : answer])
    } catch (error) {
      return end([error === overloaded ? 'overloaded' : 'failed', failed(error, reqId)])
    }
  }
}

/** What a visitor is answered once the signup was looked at. */
function results({ cookie, confirm }: Context['settings']) {
  const headers: Headers = {
    ...securityHeaders,
    'cache-control': 'no-store',
    'set-cookie': membershipCookie(cookie),
  }
  const ok = (body: object): Answer => jsonAnswer(200, headers, { success: true, ...body })
  const recorded = (alreadyExisted: boolean, message: string = sentences.recorded): Answer =>
    ok({ message, alreadyExisted, automationTriggered: false })

  return {
    resultOf(joined: Joined): Result {
      switch (joined.is) {
        case 'new': {
          const { contactId } = joined
          return ['new', ok({ message: sentences.new, contactId, alreadyExisted: false, automationTriggered: true })]
        }
        case 'known':
          return ['known', recorded(true, sentences.known)]
        case 'held':
        case 'still held':
          return ['held', recorded(joined.is === 'still held')]
        case 'unconfirmed':
          return ['unconfirmed', recorded(false, sentences.unconfirmed)]
        case 'recorded':
          return ['kept', recorded(false)]
        case 'spent':
          return ['unsolved', challengeSpent]
        case 'kept':
          return ['kept', joined.because === 'unreachable' ? providerUnreachable : savedForLater]
        case 'lost':
          return ['failed', unavailable]
        case 'refused':
          return ['refused', addressRefused(joined.reason)]
      }
    },
    /** What everybody is answered where membership is not disclosed. */
    anybody: ok({ message: confirm ? sentences.recordedOrAsked : sentences.recorded }),
  }
}

/** Empty if there is none. A target should have no fragment, but may (RFC 9112 §3.2). */
function queryOf(url = ''): string {
  const [target = ''] = url.split('#', 1)
  const mark = target.indexOf('?')
  return mark === -1 ? '' : target.slice(mark + 1)
}
