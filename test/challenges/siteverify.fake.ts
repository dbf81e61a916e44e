import type { TestContext } from 'node:test'
import type { Siteverify } from '../../src/challenges/siteverify.ts'
import { type Received, type Receiver, type Said, startReceiver } from '../harness/receiver.ts'

export type Kind = Siteverify['kind']
export const kinds: readonly Kind[] = ['turnstile', 'hcaptcha', 'cap']

export const SECRET = 'the-secret-of-the-site'
export const SITE_KEY = 'd9256640cb53'

export const members: Readonly<Record<Kind, string>> = {
  turnstile: 'cf-turnstile-response',
  hcaptcha: 'h-captcha-response',
  cap: 'cap-token',
}

const paths: Readonly<Record<Kind, string>> = {
  turnstile: '/turnstile/v0/siteverify',
  hcaptcha: '/siteverify',
  cap: `/${SITE_KEY}/siteverify`,
}

export interface Verifier extends Receiver {
  /** For CHALLENGE_URL. */
  readonly address: string
  /** A token as the widget makes it; it can be verified once. */
  solve(): string
}

/** A verifier that answers as its vendor documents; Cap by its source, standalone/src/siteverify.js of August 2026. */
export async function startVerifier(t: Pick<TestContext, 'after'>, kind: Kind): Promise<Verifier> {
  const tokens = new Map<string, 'fresh' | 'spent'>()
  const server = await startReceiver(t, received => {
    if (received.method !== 'POST' || received.path !== paths[kind]) return { status: 404, body: 'Not found' }
    const { secret, response } = kind === 'cap' ? received.json : formIn(received)
    const token = tokens.get(response)
    if (secret === SECRET && token === 'fresh') tokens.set(response, 'spent')
    return kind === 'cap' ? ofCap(secret, response, token) : listed(kind, secret, token)
  })
  return {
    ...server,
    address: server.url + paths[kind],
    solve() {
      const token = kind === 'cap' ? `${SITE_KEY}:${tokens.size}:0a1b2c` : `0.token_of-${kind}.${tokens.size}`
      tokens.set(token, 'fresh')
      return token
    },
  }
}

const formIn = ({ headers, text }: Received): Readonly<Record<string, string>> =>
  headers['content-type'] === 'application/x-www-form-urlencoded' ? Object.fromEntries(new URLSearchParams(text)) : {}

function listed(kind: Kind, secret: string | undefined, token: 'fresh' | 'spent' | undefined): Said {
  const failed = (code: string): Said => ({ status: 200, body: { success: false, 'error-codes': [code] } })
  if (secret !== SECRET) return failed('invalid-input-secret')
  if (token === 'fresh') return { status: 200, body: { success: true, hostname: 'landing.example.com' } }
  if (kind === 'hcaptcha') return failed('invalid-or-already-seen-response')
  return failed(token === undefined ? 'invalid-input-response' : 'timeout-or-duplicate')
}

function ofCap(secret: string, response: string, token: 'fresh' | 'spent' | undefined): Said {
  const failed = (status: number, error: string): Said => ({ status, body: { success: false, error } })
  if (response.split(':').length !== 3) return failed(400, 'Missing required parameters')
  if (!response.startsWith(SITE_KEY)) return failed(404, 'Invalid site key or secret')
  if (secret !== SECRET) return failed(403, 'Invalid site key or secret')
  return token === 'fresh' ? { status: 200, body: { success: true } } : failed(404, 'Token not found')
}
