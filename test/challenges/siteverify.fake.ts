import type { TestContext } from 'node:test'
import type { Siteverify } from '../../src/challenges/siteverify.ts'
import { type Received, type Receiver, type Said, startReceiver } from '../harness/receiver.ts'

export type Kind = Siteverify['kind']
export const kinds: readonly Kind[] = ['turnstile', 'hcaptcha', 'cap']

export const SECRET = 'the-secret-of-the-site'
export const SITE_KEY = 'd9256640cb53'
/** Where challenges are solved. */
export const HOST = 'landing.example.com'

export const members: Readonly<Record<Kind, string>> = {
  turnstile: 'cf-turnstile-response',
  hcaptcha: 'h-captcha-response',
  cap: 'cap-token',
}

/** How a visitor solved a challenge. */
interface Solved {
  /** Empty: the vendor does not know. */
  readonly host: string
  isOld: boolean
  /** The key with which it was verified; null: without one. */
  verifiedWith?: string | null
}

export interface Verifier extends Receiver {
  /** For CHALLENGE_URL. */
  readonly address: string
  /** A token as the widget makes it. */
  solve(how?: { readonly host?: string }): string
  /** It can be verified no longer. */
  expire(token: string): void
}

const paths: Readonly<Record<Kind, string>> = {
  turnstile: '/turnstile/v0/siteverify',
  hcaptcha: '/siteverify',
  cap: `/${SITE_KEY}/siteverify`,
}

/**
 * A verifier that keeps state and answers as its vendor documents: status, members, codes, and that a token is verified
 * once. What it says of Cap is in no document but in its source, standalone/src/siteverify.js of August 2026.
 */
export async function startVerifier(t: Pick<TestContext, 'after'>, kind: Kind): Promise<Verifier> {
  const tokens = new Map<string, Solved>()
  let made = 0
  const server = await startReceiver(t, asked => {
    if (asked.method !== 'POST') return { status: 405 }
    if (asked.path !== paths[kind]) return { status: 404, body: 'Not found' }
    return answers[kind](asked as Received, tokens)
  })
  return {
    ...server,
    address: server.url + paths[kind],
    solve({ host = HOST } = {}) {
      const token = kind === 'cap' ? `${SITE_KEY}:${++made}:0a1b2c` : `0.token_of-${kind}.${++made}`
      tokens.set(token, { host, isOld: false })
      return token
    },
    expire(token) {
      tokens.get(token)!.isOld = true
    },
  }
}

type Tokens = ReadonlyMap<string, Solved>

const AT = '2026-11-22T15:14:30.096Z'

/** Form-encoded bodies alone have these members; the others are JSON. */
function formIn({ headers, text }: Received): Readonly<Record<string, string>> {
  const isForm = headers['content-type'] === 'application/x-www-form-urlencoded'
  return isForm ? Object.fromEntries(new URLSearchParams(text)) : {}
}

const isFresh = ({ isOld, verifiedWith }: Solved): boolean => !isOld && verifiedWith === undefined

const answers: Readonly<Record<Kind, (asked: Received, tokens: Tokens) => Said>> = {
  turnstile(asked, tokens) {
    const { secret, response = '', idempotency_key: key = null } = formIn(asked)
    const failed = (...codes: string[]): Said => ({
      status: 200,
      body: { success: false, 'error-codes': codes, messages: [] },
    })
    if (secret === undefined) return failed('missing-input-secret')
    if (secret !== SECRET) return failed('invalid-input-secret')
    if (response === '') return failed('missing-input-response')
    const solved = tokens.get(response)
    if (solved === undefined) return failed('invalid-input-response')
    const isRepeated = key !== null && solved.verifiedWith === key && !solved.isOld
    if (!isFresh(solved) && !isRepeated) return failed('timeout-or-duplicate')
    solved.verifiedWith = key
    return {
      status: 200,
      body: {
        success: true,
        'error-codes': [],
        challenge_ts: AT,
        hostname: solved.host || undefined,
        action: '',
        cdata: '',
        metadata: { interactive: false },
      },
    }
  },

  hcaptcha(asked, tokens) {
    const { secret, response = '' } = formIn(asked)
    const failed = (...codes: string[]): Said => ({ status: 200, body: { success: false, 'error-codes': codes } })
    if (secret === undefined) return failed('missing-input-secret')
    if (secret !== SECRET) return failed('invalid-input-secret')
    if (response.startsWith('10000000-aaaa-bbbb-cccc-')) return failed('not-using-dummy-passcode')
    const solved = tokens.get(response)
    if (solved === undefined || !isFresh(solved)) return failed('invalid-or-already-seen-response')
    solved.verifiedWith = null
    return { status: 200, body: { success: true, challenge_ts: AT, hostname: solved.host || 'not-provided' } }
  },

  cap({ json }: Received, tokens) {
    const failed = (status: number, error: string): Said => ({ status, body: { success: false, error } })
    const { secret, response } = json
    if (response.split(':').length !== 3) return failed(400, 'Missing required parameters')
    if (!response.startsWith(SITE_KEY)) return failed(404, 'Invalid site key or secret')
    if (secret !== SECRET) return failed(403, 'Invalid site key or secret')
    const solved = tokens.get(response)
    if (solved === undefined || solved.verifiedWith !== undefined) return failed(404, 'Token not found')
    solved.verifiedWith = null
    return solved.isOld ? failed(403, 'Token expired') : { status: 200, body: { success: true } }
  },
}
