import { createHmac, pbkdf2, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { jsonIn } from '../outbound/reply.ts'
import type { Challenge, Verdict } from '../waitlist/ports/challenge.ts'

export interface AltchaOptions {
  /** Any text. All instances that accept each other's challenges have the same. */
  readonly secret: string
  /** Guesses at most. */
  readonly range: number
  /** Milliseconds in which a challenge can be solved and sent. */
  readonly lifetime?: number
}

const ALGORITHM = 'PBKDF2/SHA-256'
/** Iterations of PBKDF2 for each guess. */
const COST = 5_000
/** Bytes of a derived key. */
const KEY = 32
const LIFETIME = 600_000
/** Characters of a solution. Those of ALTCHA's widget have about 750. */
const LONGEST = 2_048

const derive = promisify(pbkdf2)

/** What is signed, its members in the order of the alphabet. */
interface Parameters {
  readonly algorithm: string
  readonly cost: number
  /** The counter stays ours, so this says how hard it was. */
  readonly data: { readonly range: number }
  /** Seconds since 1970. */
  readonly expiresAt: number
  readonly keyLength: number
  readonly keyPrefix: string
  readonly keySignature: string
  readonly nonce: string
  readonly salt: string
}

const wrong: Verdict = { is: 'unsolved', why: 'wrong' }
const expired: Verdict = { is: 'unsolved', why: 'expired' }

/**
 * ALTCHA, protocol 2: the browser guesses the number from which a key was derived. The number is ours, so that one
 * derivation makes a challenge, and two HMACs verify its solution ("deterministic mode").
 */
export function altcha({ secret, range, lifetime = LIFETIME }: AltchaOptions): Challenge {
  const signing = (purpose: string) => {
    const key = createHmac('sha256', secret).update(`altcha ${purpose}`).digest('hex')
    return (text: string | Buffer) => createHmac('sha256', key).update(text).digest('hex')
  }
  const signatureOf = signing('challenge')
  const keySignatureOf = signing('solution')

  return {
    name: 'altcha',
    member: 'altcha',
    title: 'ALTCHA',
    widget: null,

    async issue() {
      const [nonce, salt] = [randomBytes(16), randomBytes(16)]
      const counter = Buffer.alloc(4)
      counter.writeUInt32BE(randomInt(1, range + 1))
      const key = await derive(Buffer.concat([nonce, counter]), salt, COST, KEY, 'sha256')
      const parameters: Parameters = {
        algorithm: ALGORITHM,
        cost: COST,
        data: { range },
        expiresAt: Math.floor((Date.now() + lifetime) / 1000),
        keyLength: KEY,
        keyPrefix: key.toString('hex', 0, KEY / 2),
        keySignature: keySignatureOf(key),
        nonce: nonce.toString('hex'),
        salt: salt.toString('hex'),
      }
      return JSON.stringify({ parameters, signature: signatureOf(JSON.stringify(parameters)) })
    },

    async verify(text) {
      if (text.length > LONGEST) return wrong
      const { challenge, solution } = membersOf(jsonIn(Buffer.from(text, 'base64').toString()))
      const { parameters, signature } = membersOf(challenge)
      const signed = signedIn(membersOf(parameters))
      if (!isSame(signature, signatureOf(signed))) return wrong
      // So we made it, though perhaps when it cost less.
      const { data, expiresAt, keySignature, nonce } = JSON.parse(signed) as Parameters
      if (expiresAt * 1000 < Date.now()) return expired
      if (data.range < range) return wrong
      const { derivedKey } = membersOf(solution)
      if (!isDigest(derivedKey) || !isSame(keySignature, keySignatureOf(Buffer.from(derivedKey, 'hex')))) return wrong
      return { is: 'solved', proof: { nonce, expires: new Date(expiresAt * 1000) } }
    },

    check: () => Promise.resolve(null),
    close: () => Promise.resolve(),
  }
}

/** The text that was signed, if these are parameters of ours. */
const signedIn = (given: Members): string => JSON.stringify(given, SIGNED)

/** What is signed, in order; `range` is a member of `data`. */
const SIGNED = 'algorithm cost data range expiresAt keyLength keyPrefix keySignature nonce salt'.split(' ')

type Members = Readonly<Record<string, unknown>>

/** Those of an object; of anything else none. */
const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})

const isDigest = (value: unknown): value is string => typeof value === 'string' && /^[\da-f]{64}$/.test(value)

const isSame = (given: unknown, digest: string): boolean =>
  isDigest(given) && timingSafeEqual(Buffer.from(given), Buffer.from(digest))
