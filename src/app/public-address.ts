import { connect, isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/config.ts'
import { paths } from '../http/paths.ts'
import { SOLUTION_FIELD } from '../http/routes/challenge.ts'
import { clientAddress, connectionClient, forwardingAdvice } from '../http/routes/client-address.ts'
import { ASKS, question, type Seen, TELLS } from '../http/routes/seen.ts'
import { draining, unhealthy } from '../http/wire/refusals.ts'

/** Milliseconds for one answer, and for finding out whether the service listens here. */
const TIMEOUT = 5_000
const LISTENS_TIMEOUT = 1_000
/** Bytes that are read of an answer. */
const MAX_BYTES = 65_536
/** A visitor's forgery (RFC 5737: nobody has this address). */
const FORGED = '192.0.2.1'

/**
 * Goes the way of a visitor: through BASE_URL to the service, and as a preflight of each landing page. `secretOf` reads what
 * the service signs with; null: it has none yet, or the store cannot be read.
 */
export async function checkPublicAddress(
  config: Config,
  secretOf: () => Promise<string | null>,
): Promise<readonly CheckResult[]> {
  const { baseUrl, corsOrigins, proxies, challenge } = config
  if (baseUrl === null) {
    if (corsOrigins.length === 0 && proxies.kind === 'none') return []
    return [address('note', 'BASE_URL is not set, so CORS_ORIGINS and TRUST_PROXY were not tried')]
  }
  let secret = await secretOf()
  const health = (more: Record<string, string> = {}) =>
    ask(baseUrl + paths.health, 'GET', { [ASKS]: question(secret ?? '', Date.now()), ...more })
  let answer = await health()
  if (secret === null && !('why' in answer)) {
    // The question has made the service have one.
    secret = await secretOf()
    if (secret !== null) answer = await health()
  }
  const found = await verdictOn(answer, config)
  if ('why' in answer || answer.status !== 200 || found.is === 'wrong') return [found]
  const seen = seenIn(answer)
  return [
    found,
    ...(seen === null ? [] : [await clientSeen(seen, config, health)]),
    ...(await Promise.all(corsOrigins.map(origin => preflight(baseUrl, origin, challenge !== null)))),
  ]
}

const address = (is: CheckResult['is'], why: string): CheckResult => ({ what: 'public address', is, why })

interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

interface Unanswered {
  readonly why: string
  /** Whether it may only be that nothing is running. */
  readonly mayBeStopped: boolean
}

async function verdictOn(
  answer: Answered | Unanswered,
  { baseUrl, service, host, port }: Config,
): Promise<CheckResult> {
  const verdict = (is: CheckResult['is'], why: string) => address(is, `${baseUrl}: ${why}`)
  const unreached = async (why: string) =>
    (await listens(host, port))
      ? verdict(
          'wrong',
          `${why}, but port ${port} answers here. Is the proxy right, and does a firewall let it through?`,
        )
      : verdict(
          'note',
          `${why}, and nothing listens on port ${port} here. If the service is stopped, start it and check again.`,
        )
  if ('why' in answer) return answer.mayBeStopped ? unreached(answer.why) : verdict('wrong', answer.why)

  const { status, headers } = answer
  const said: Record<string, unknown> = Object(parsed(answer.text))
  const by = headers.has('server') ? ` by ${headers.get('server')}` : ''
  const isTold = seenIn(answer) !== null
  if (status === 200 && (isTold || (said.status === 'ok' && typeof said.service === 'string'))) {
    if (isTold) return verdict('ok', 'the service answers')
    if (said.service !== service)
      return verdict('wrong', `another Waitlist answers, called ${JSON.stringify(said.service)}`)
    return verdict(
      'note',
      'a Waitlist answers, but does not know this check: it uses another database, or something in front takes away ' +
        `the header field ${ASKS}`,
    )
  }
  const isUnhealthy = [unhealthy, draining].some(({ error }) => error === said.error)
  if (status === 503 && isUnhealthy) return verdict('wrong', `the service answers 503: ${said.error}`)
  // Our proxies say 503 themselves, in JSON as the service does.
  if (status >= 502 && status <= 504) return unreached(`the proxy answers itself, with ${status}${by}`)
  if (status >= 300 && status < 400) {
    return verdict('wrong', `it leads to ${headers.get('location')}: set BASE_URL to the address that answers itself`)
  }
  if ([401, 403, 407, 429].includes(status)) {
    return verdict('wrong', `the proxy answers itself, with ${status}${by}: let everybody through`)
  }
  if (typeof said.error === 'string') return verdict('wrong', `the answer is ${status}${by}: ${said.error}`)
  return verdict('wrong', `another program answers, with ${status}${by}`)
}

/** What the service says of who asks, held against what was sent: no forwarded address, and then a forged one. */
async function clientSeen(
  { client, peer, proxies, forwarded, sign }: Seen,
  { proxies: trusted, baseUrl, tls }: Config,
  health: (more: Record<string, string>) => Promise<Answered | Unanswered>,
): Promise<CheckResult> {
  const through = client === peer ? '' : `, through ${peer}`
  const verdict = (is: CheckResult['is'], why = '') => ({
    what: 'client address',
    is,
    why: `the service sees this check come from ${client}${through}${why}`,
  })
  if (!isDeepStrictEqual(proxies, trusted)) {
    return verdict('wrong', ', and has another TRUST_PROXY than these settings: restart it')
  }
  if (sign !== null) return verdict('wrong', `. ${forwardingAdvice[sign]}`)
  const [first = ''] = forwarded.split(',', 1)
  const own = isIP(first.trim()) === 0 ? client : clientAddress({ kind: 'none' })(first.trim(), '')
  if (own !== client) {
    return verdict(
      'wrong',
      `, a proxy that speaks for ${own}: let TRUST_PROXY count or name it, or all visitors share one rate limit`,
    )
  }
  if (trusted.kind === 'none' && tls === null && baseUrl?.startsWith('https:')) {
    return verdict('wrong', ', which is the proxy: let it add X-Forwarded-For, and set TRUST_PROXY')
  }
  // Where this machine is one of the trusted proxies, it may say for whom it speaks.
  const isProxy = trusted.kind === 'networks' && connectionClient(trusted)(client.split('/', 1)[0]!) === null
  if (!isProxy) {
    const answer = await health({ 'x-forwarded-for': FORGED })
    if (!('why' in answer) && seenIn(answer)?.client === FORGED) {
      return verdict('wrong', ', and believes a forged X-Forwarded-For: let the proxy add to that field or replace it')
    }
  }
  return verdict('ok')
}

/** As a browser asks before a page on another origin may send a signup (Fetch standard, "CORS-preflight fetch"). */
async function preflight(baseUrl: string, origin: string, asksForProof: boolean): Promise<CheckResult> {
  const verdict = (is: CheckResult['is'], why: string): CheckResult => ({ what: `page ${origin}`, is, why })
  const fields = ['content-type', ...(asksForProof ? [SOLUTION_FIELD.toLowerCase()] : [])]
  const answer = await ask(baseUrl + paths.waitlist, 'OPTIONS', {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': fields.join(','),
  })
  if ('why' in answer) return verdict('wrong', answer.why)
  const { status, headers } = answer
  const listed = (name: string) => (headers.get(name) ?? '').toLowerCase().split(/\s*,\s*/)
  const allowed = headers.get('access-control-allow-origin')
  if (status < 200 || status > 299) return verdict('wrong', `its preflight is answered with ${status}`)
  if (allowed === null) {
    return verdict(
      'wrong',
      'its preflight is not allowed: restart the service with these CORS_ORIGINS, and let the proxy pass OPTIONS on',
    )
  }
  if (
    allowed !== origin ||
    headers.get('access-control-allow-credentials') !== 'true' ||
    !listed('access-control-allow-methods').includes('post') ||
    !fields.every(field => listed('access-control-allow-headers').includes(field))
  ) {
    return verdict(
      'wrong',
      `its preflight is answered for "${allowed}" and not as the service does: the proxy must add no CORS fields`,
    )
  }
  return verdict('ok', 'it may send signups')
}

async function ask(url: string, method: string, headers: Record<string, string>): Promise<Answered | Unanswered> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT)
    const answer = await fetch(url, { method, headers, redirect: 'manual', signal })
    return { status: answer.status, headers: answer.headers, text: await beginningOf(answer) }
  } catch (error) {
    const { name, cause = error } = error as Error
    return whyNot((cause as { code?: string }).code ?? name, new URL(url).hostname)
  }
}

async function beginningOf({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of body ?? []) {
    parts.push(part)
    size += part.length
    if (size > MAX_BYTES) break
  }
  return Buffer.concat(parts).toString()
}

const certificates: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has expired: renew it',
  CERT_NOT_YET_VALID: 'is not valid yet: one of the clocks is wrong',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is signed by itself, and browsers refuse it',
  SELF_SIGNED_CERT_IN_CHAIN: 'is of an authority that is not known here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'comes without its chain: use the full chain (fullchain.pem)',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'is of an authority that is not known here, or its chain is not complete',
}

/** What the code of a failed request means. */
function whyNot(code: string, name: string): Unanswered {
  const final = (why: string) => ({ why, mayBeStopped: false })
  if (code === 'ENOTFOUND') return final(`the name ${name} does not resolve: add it to your DNS, or correct BASE_URL`)
  if (code === 'EAI_AGAIN') return final(`the name ${name} could not be looked up: no name server answers`)
  const certificate =
    certificates[code] ?? (/^(?:CERT_|ERR_TLS_CERT|UNABLE_TO_)/.test(code) ? `is refused (${code})` : null)
  if (certificate !== null) return final(`its certificate ${certificate}`)
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return final(`no TLS is spoken there (${code})`)
  const why = code === 'TimeoutError' ? 'no answer in time' : `it cannot be reached (${code})`
  return { why, mayBeStopped: true }
}

function listens(host: string, port: number): Promise<boolean> {
  return new Promise(resolve => {
    const everywhere = host === '0.0.0.0' || host === '::'
    const socket = connect({ host: everywhere ? 'localhost' : host, port, timeout: LISTENS_TIMEOUT })
    const end = (is: boolean) => {
      socket.destroy()
      resolve(is)
    }
    socket
      .on('connect', () => end(true))
      .on('error', () => end(false))
      .on('timeout', () => end(false))
  })
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return null
  }
}

const seenIn = ({ headers }: Answered) => parsed(headers.get(TELLS)) as Seen | null

/** The result of trying one part of the configuration. */
export interface CheckResult {
  readonly what: string
  /** `note`: it works, and its owner should know. */
  readonly is: 'ok' | 'note' | 'wrong'
  readonly why: string
}
