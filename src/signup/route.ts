import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Outcome } from '../app/telemetry.ts'
import type { proving } from '../challenges/route.ts'
import { readJson } from '../http/body.ts'
import type { HttpParts, HttpSettings, RouteParts } from '../http/context.ts'
import {
  addressRefused,
  challengeSpent,
  domainNotAccepted,
  invalidSignup,
  providerUnreachable,
  type Refusal,
  refuse,
  savedForLater,
  tooManyAttempts,
  unavailable,
} from '../http/errors.ts'
import { type Language, type Languages, say } from '../http/messages/languages.ts'
import { type Key, sentences } from '../http/messages/sentences.ts'
import { type Answer, fieldList, jsonAnswer, securityFields, withFields } from '../http/response.ts'
import { StoreUnavailable } from '../store/database.ts'
import { membershipCookie } from './cookie.ts'
import type { Joined } from './join.ts'
import { parseSignup, parseSource } from './parse.ts'

interface SignupParts extends RouteParts, Pick<HttpParts, 'store' | 'join' | 'limiter' | 'accepts' | 'telemetry'> {
  /** Asks for the proof of a signup; null: none is asked for. */
  readonly prove: ReturnType<typeof proving> | null
  /** What is answered after a throw. */
  failed(error: unknown, reqId: number): Refusal
  readonly languages: Languages
}

/** Milliseconds that every answer takes at least while membership is not disclosed. */
const NEUTRAL = 25

const overloaded = new StoreUnavailable('more signups arrive than can be stored in time')

/**
 * `POST /api/waitlist`. The checks, in order: overload, attempts, encoding, media type, size, syntax, name, email, and where
 * they are set, its domain and the challenge.
 */
export function signupRoute(
  { quota, cookie, trackSources, disclosesMembership, confirm }: HttpSettings,
  { store, join, limiter, accepts, telemetry, clientOf, prove, corsFields, failed, languages }: SignupParts,
) {
  const policy = `"signup";q=${quota.limit};w=${quota.window}`
  const fields = { ...securityFields, 'cache-control': 'no-store', 'set-cookie': membershipCookie(cookie) }
  const answersIn = (language: Language) => {
    const telling = (key: Key) => {
      const { sentence, is } = say(language, { key }, sentences[key])
      const all = fieldList({ ...fields, ...is.fields })
      return (resultOf: (message: string) => object) => jsonAnswer(200, all, resultOf(sentence))
    }
    const told = {
      new: telling('new'),
      recorded: telling('recorded'),
      unconfirmed: telling('unconfirmed'),
      known: telling('known'),
    }
    const toAnybody = confirm ? telling('recordedOrAsked') : told.recorded
    const accepted = (joined: Accepted) => told[messages[joined.is]](message => resultOf(joined, message))
    return {
      accepted,
      alreadyListed: accepted({ is: 'known' }),
      /** What everybody hears if membership is not disclosed. */
      anybody: toAnybody(message => ({ success: true, message })),
    }
  }
  const answers = new Map(languages.all.map(language => [language, answersIn(language)]))

  return async (request: IncomingMessage, response: ServerResponse, reqId: number): Promise<Answer> => {
    let common = corsFields(request)
    const language = languages.of(request.headers['accept-language'])
    const { accepted, alreadyListed, anybody } = answers.get(language)!
    const end = (outcome: Outcome, answer: Answer) => {
      telemetry?.countSignup(outcome)
      return withFields(answer, common)
    }
    const no = (outcome: Outcome, refusal: Refusal) => end(outcome, refuse(refusal, language))
    try {
      if (store.isBehind()) return no('overloaded', failed(overloaded, reqId))
      const { admitted, remaining, seconds } = await limiter.take(clientOf(request))
      // draft-ietf-httpapi-ratelimit-headers-11, Structured Fields (RFC 9651).
      common = [...common, 'ratelimit-policy', policy, 'ratelimit', `"signup";r=${remaining};t=${seconds}`]
      if (!admitted) return no('limited', tooManyAttempts(seconds))

      const body = await readJson(request, response)
      if ('refusal' in body) return no('invalid', body.refusal)
      const parsed = parseSignup(body.object, trackSources ? parseSource(queryOf(request.url)) : undefined)
      if ('problem' in parsed) return no('invalid', invalidSignup(parsed.problem))
      if (accepts !== null && !accepts(parsed.email)) return no('blocked', domainNotAccepted)
      let signup = parsed
      if (prove !== null) {
        const proven = await prove(request, body.object, parsed)
        if ('refusal' in proven) return no(proven.refusal === unavailable ? 'failed' : 'unsolved', proven.refusal)
        signup = proven.signup
      }

      const [joined] = await Promise.all([join(signup), disclosesMembership ? null : wait(NEUTRAL)])
      if (joined.is === 'spent') return no('unsolved', challengeSpent)
      if (joined.is === 'recorded') return end('kept', anybody)
      if (joined.is === 'kept') {
        return no('kept', joined.because === 'unreachable' ? providerUnreachable : savedForLater)
      }
      if (joined.is === 'lost') return no('failed', unavailable)
      if (joined.is === 'refused') return no('refused', addressRefused(joined.reason))
      const outcome = joined.is === 'still held' ? 'held' : joined.is
      if (!disclosesMembership) return end(outcome, anybody)
      return end(outcome, joined.is === 'known' ? alreadyListed : accepted(joined))
    } catch (error) {
      return no('failed', failed(error, reqId))
    }
  }
}

/** Empty if there is none. A target should have no fragment, but may (RFC 9112 §3.2). */
function queryOf(url = ''): string {
  const [target = ''] = url.split('#', 1)
  const mark = target.indexOf('?')
  return mark === -1 ? '' : target.slice(mark + 1)
}

type Accepted = Extract<Joined, { is: 'new' | 'held' | 'still held' | 'unconfirmed' | 'known' }>

/** What each is told. */
const messages = {
  new: 'new',
  held: 'recorded',
  'still held': 'recorded',
  unconfirmed: 'unconfirmed',
  known: 'known',
} as const satisfies Record<Accepted['is'], Key>

function resultOf(joined: Accepted, message: string) {
  return {
    success: true,
    message,
    contactId: joined.is === 'new' ? joined.contactId : undefined,
    alreadyExisted: joined.is === 'known' || joined.is === 'still held',
    automationTriggered: joined.is === 'new',
  }
}
