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

const paths: Readonly<Record<Kind, string>> = {
  turnstile: '/turnstile/v0/siteverify',
  hcaptcha: '/siteverify',
  cap: `/${SITE_KEY}/siteverify`,
}

export interface Verifier extends Receiver {
  /** For CHALLENGE_URL. */
  readonly address: string
  /** A token as the widget makes it; it can be verified once. */
  solve(how?: { readonly host?: string }): string
  /** It can be verified no longer. */
  expire(token: string): void
}

/** A verifier that answers as its vendor documents; Cap by its source, standalone/src/siteverify.js of August 2026. */
export async function startVerifier(t: Pick<TestContext, 'after'>, kind: Kind): Promise<Verifier> {
  /** Where each was solved; null: it is too old, or was verified before. */
  const tokens = new Map<string, string | null>()
  const server = await startReceiver(t, asked => {
    if (asked.method !== 'POST' || asked.path !== paths[kind]) return { status: 404, body: 'Not found' }
    const { secret, response } = kind === 'cap' ? asked.json : formIn(asked)
    const host = tokens.get(response)
    if (secret === SECRET && typeof host === 'string') tokens.set(response, null)
    return kind === 'cap' ? ofCap(secret, response, host) : listed(kind, secret, host)
  })
  return {
    ...server,
    address: server.url + paths[kind],
    solve({ host = HOST } = {}) {
      const token = kind === 'cap' ? `${SITE_KEY}:${tokens.size}:0a1b2c` : `0.token_of-${kind}.${tokens.size}`
      tokens.set(token, host)
      return token
    },
    expire: token => void tokens.set(token, null),
  }
}

const formIn = ({ headers, text }: Received): Readonly<Record<string, string>> =>
  headers['content-type'] === 'application/x-www-form-urlencoded' ? Object.fromEntries(new URLSearchParams(text)) : {}

function listed(kind: Kind, secret: string | undefined, host: string | null | undefined): Said {
  const failed = (code: string): Said => ({ status: 200, body: { success: false, 'error-codes': [code] } })
  if (secret !== SECRET) return failed('invalid-input-secret')
  if (kind === 'hcaptcha' && typeof host !== 'string') return failed('invalid-or-already-seen-response')
  if (host === undefined) return failed('invalid-input-response')
  return host === null ? failed('timeout-or-duplicate') : { status: 200, body: { success: true, hostname: host } }
}

function ofCap(secret: string, token: string, host: string | null | undefined): Said {
  const failed = (status: number, error: string): Said => ({ status, body: { success: false, error } })
  if (token.split(':').length !== 3) return failed(400, 'Missing required parameters')
  if (!token.startsWith(SITE_KEY)) return failed(404, 'Invalid site key or secret')
  if (secret !== SECRET) return failed(403, 'Invalid site key or secret')
  return typeof host === 'string' ? { status: 200, body: { success: true } } : failed(404, 'Token not found')
}
