import { createHmac, randomInt } from 'node:crypto'
import { createChallenge, type Payload, verifySolution } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import type { Challenge, Verdict, Widget } from '../waitlist/ports.ts'

export interface AltchaOptions {
  /** Any text. All instances that accept each other's challenges have the same. */
  readonly secret: string
  /** Iterations of PBKDF2 for each guess, and guesses at most. */
  readonly cost: number
  readonly range: number
  /** Milliseconds in which a challenge can be solved and sent. */
  readonly lifetime?: number
}

const ALGORITHM = 'PBKDF2/SHA-256'
const LIFETIME = 600_000
/** Characters of a solution. The widget's have about 750. */
const LONGEST = 2_048

/** https://altcha.org/docs/v3/widget-integration/. It is told by the page where challenges come from. */
const widget: Widget = {
  title: 'ALTCHA',
  script: '<script type="module" src="altcha.min.js"></script>',
  element: `<altcha-widget auto="onfocus" configuration='{"hideFooter":true,"hideLogo":true,"humanInteractionSignature":false}'></altcha-widget>`,
  reset: 'widget.reset()',
}

const wrong: Verdict = { is: 'unsolved', why: 'wrong' }
const expired: Verdict = { is: 'unsolved', why: 'expired' }

/**
 * ALTCHA, protocol 2: the browser guesses the number from which a key was derived. The number is ours, so that one
 * derivation makes a challenge, and two HMACs verify its solution ("deterministic mode").
 */
export function altcha({ secret, cost, range, lifetime = LIFETIME }: AltchaOptions): Challenge {
  const keyFor = (purpose: string) => createHmac('sha256', secret).update(`altcha ${purpose}`).digest('hex')
  const keys = { hmacSignatureSecret: keyFor('challenge'), hmacKeySignatureSecret: keyFor('solution') }

  return {
    name: 'altcha',
    member: 'altcha',
    widget,

    async issue() {
      const challenge = await createChallenge({
        ...keys,
        algorithm: ALGORITHM,
        cost,
        counter: randomInt(1, range + 1),
        deriveKey,
        expiresAt: Math.floor((Date.now() + lifetime) / 1000),
        // The counter stays ours, so this says how hard it was.
        data: { range },
      })
      return JSON.stringify(challenge)
    },

    async verify(text) {
      const payload = payloadIn(text)
      if (payload === null) return wrong
      const { challenge, solution } = payload
      const verdict = await verifySolution({ ...keys, challenge, solution, deriveKey })
      if (verdict.expired) return expired
      if (!verdict.verified) return wrong
      // So we made it, though perhaps when it cost less.
      const { algorithm, cost: paid, data, nonce, expiresAt } = challenge.parameters
      if (algorithm !== ALGORITHM || paid < cost || !(Number(data?.range) >= range)) return wrong
      return { is: 'solved', proof: { nonce, expires: new Date(Number(expiresAt) * 1000) } }
    },

    check: () => Promise.resolve(null),
    close: () => Promise.resolve(),
  }
}

/** What the widget sends, or null. The library trusts the types of what it looks at. */
function payloadIn(text: string): Payload | null {
  if (text.length > LONGEST) return null
  const payload = parsed(Buffer.from(text, 'base64').toString())
  if (!isObject(payload) || !isObject(payload.challenge)) return null
  const { parameters, signature } = payload.challenge
  return isObject(parameters) && typeof signature === 'string' ? (payload as unknown as Payload) : null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
