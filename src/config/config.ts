import type { ChallengeChoice } from '../challenges/index.ts'
import type { HoldRules } from '../holds/rules.ts'
import type { HttpSettings } from '../http/context.ts'
import { isLoopback, isPrivate } from '../http-client/addresses.ts'
import { heloNameOf, type MailSettings } from '../mail/settings.ts'
import { type Choice, providerWarnings, readProvider } from '../providers/settings.ts'
import { storeName } from '../store/location.ts'
import { type Environment, given, readSettings, type ValuesOf } from './kinds.ts'
import { settings } from './settings.ts'

export type LogLevel = ValuesOf<typeof settings>['LOG_LEVEL']

/** The configuration of the service: complete and free of contradictions. */
export type Config = HttpSettings &
  ReturnType<typeof configOf> & {
    /** One sentence for each setting that is allowed but unsafe for a public service, with what to do. */
    readonly warnings: readonly string[]
  }

type Values = ValuesOf<typeof settings>

/** Either a configuration or all mistakes in the settings, one sentence each. */
export type ConfigResult = { readonly config: Config } | { readonly mistakes: readonly string[] }

/** Reads all settings and reports all mistakes at once, each with its variable and what is allowed. Pure. */
export async function readConfig(env: Environment): Promise<ConfigResult> {
  const { values, mistakes: wrong } = readSettings(settings, env)
  const mistakes = [...wrong]

  const certFile = values.TLS_CERT_FILE
  const keyFile = values.TLS_KEY_FILE
  const missing = (['TLS_CERT_FILE', 'TLS_KEY_FILE'] as const).filter(name => given(env, name) === undefined)
  if (missing.length === 1) {
    mistakes.push(`${missing[0]} is missing: HTTPS needs both TLS_CERT_FILE and TLS_KEY_FILE`)
  }
  const tls = certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : null

  const baseUrl = values.BASE_URL ?? null
  if (tls !== null && baseUrl?.startsWith('http:')) {
    mistakes.push('BASE_URL must start with https: when TLS_CERT_FILE and TLS_KEY_FILE are set')
  }
  const secure = baseUrl === null ? tls !== null : baseUrl.startsWith('https:')

  // 0 is any free port, each time another one.
  if (values.ADMIN_LISTEN?.port && values.ADMIN_LISTEN.port === values.PORT) {
    mistakes.push('ADMIN_LISTEN must not have the same port as PORT: the public must not reach it')
  }

  const { EVENT_NAME, INVITED_EVENT_NAME } = values
  if (INVITED_EVENT_NAME === EVENT_NAME) {
    mistakes.push('INVITED_EVENT_NAME must not be the same as EVENT_NAME: nobody could tell the two events apart')
  }

  const vendor = values.PROVIDER
  const provider = vendor === 'none' ? null : await readProvider(vendor, env, values.PROVIDER_FIELDS, mistakes)

  const webhookUrl = values.WEBHOOK_URL
  const secrets = values.WEBHOOK_SECRET
  if (webhookUrl !== undefined && given(env, 'WEBHOOK_SECRET') === undefined) {
    mistakes.push(
      'WEBHOOK_SECRET is missing: what is sent to WEBHOOK_URL is signed (docs/events.md says how to make one)',
    )
  }
  const webhook = webhookUrl !== undefined && secrets !== undefined ? { url: webhookUrl, secrets } : null

  const challenge = readChallenge(values, env, mistakes)

  const mailServer = values.SMTP_URL
  const from = values.MAIL_FROM
  if (mailServer !== undefined && given(env, 'MAIL_FROM') === undefined) {
    mistakes.push('MAIL_FROM is missing: mails that are sent through SMTP_URL need a sender')
  }
  if (values.OWNER_MAIL !== undefined && given(env, 'SMTP_URL') === undefined) {
    mistakes.push('SMTP_URL is missing: mails to OWNER_MAIL need a mail server')
  }
  const confirm = values.CONFIRM === 'mail'
  if (confirm && given(env, 'SMTP_URL') === undefined) {
    mistakes.push('SMTP_URL is missing: CONFIRM=mail needs a mail server')
  }
  if (confirm && !isPublicOrLocal(baseUrl)) {
    mistakes.push(
      'BASE_URL must be an https address with CONFIRM=mail, or one of this machine: links in mails begin with it',
    )
  }
  const mail = mailServer !== undefined && from !== undefined ? mailSettings(mailServer, from, values) : null

  if (mistakes.length > 0) return { mistakes }
  const config = configOf(values, { tls, secure, provider, webhook, challenge, mail, confirm })
  return { config: { ...config, warnings: warningsFor(config) } }
}

interface Checked {
  readonly tls: HttpSettings['tls']
  readonly secure: boolean
  readonly provider: Choice | null
  readonly webhook: { readonly url: string; readonly secrets: readonly string[] } | null
  readonly challenge: ChallengeChoice | null
  readonly mail: MailSettings | null
  readonly confirm: HttpSettings['confirm']
}

const configOf = (values: Values, { secure, ...checked }: Checked) => ({
  ...checked,
  host: values.HOST,
  port: values.PORT,
  baseUrl: values.BASE_URL ?? null,
  proxies: values.TRUST_PROXY ?? ({ kind: 'none' } as const),
  quota: { limit: values.RATE_LIMIT.count, window: values.RATE_LIMIT.time / 1_000 },
  corsOrigins: values.CORS_ORIGINS ?? [],
  cookie: { secure, crossSite: values.CORS_ORIGINS !== undefined },
  trackSources: values.TRACK_SOURCES,
  disclosesMembership: values.DISCLOSE_MEMBERSHIP,
  holds: holdsOf(values, checked.challenge !== null),
  messagesFile: values.MESSAGES_FILE ?? null,
  service: values.SERVICE_NAME,
  description: values.SERVICE_DESCRIPTION,
  shutdownDelay: values.SHUTDOWN_DELAY,
  store: values.DATABASE_URL,
  blockedDomainsFile: values.BLOCKED_DOMAINS_FILE ?? null,
  channels: {
    slack: values.SLACK_WEBHOOK_URL,
    discord: values.DISCORD_WEBHOOK_URL,
    'owner-mail': values.OWNER_MAIL,
  },
  eventName: values.EVENT_NAME,
  invitedEventName: values.INVITED_EVENT_NAME,
  admin: values.ADMIN_LISTEN === undefined ? null : { ...values.ADMIN_LISTEN, token: values.ADMIN_TOKEN ?? null },
  logLevel: values.LOG_LEVEL,
})

/** A path other than that of the call alone. */
const SITE_KEY = /^https?:\/\/[^/]+(?!\/siteverify$)\/./

/** A challenge's settings, complete. */
function readChallenge(values: Values, env: Environment, mistakes: string[]): ChallengeChoice | null {
  const { CHALLENGE: kind, CHALLENGE_SECRET: secret, CHALLENGE_URL: url } = values
  if (kind === 'none') return null
  if (kind === 'altcha') return { kind, secret: secret ?? null }
  // One that is given and cannot be read is a mistake already.
  if (given(env, 'CHALLENGE_SECRET') === undefined) {
    mistakes.push(`CHALLENGE_SECRET is missing: ${kind} needs it`)
  }
  if (kind === 'cap') {
    const what = 'the address of your Cap with the site key, such as https://cap.example.com/d9256640cb53'
    if (given(env, 'CHALLENGE_URL') === undefined) mistakes.push(`CHALLENGE_URL is missing: cap needs ${what}`)
    else if (url !== undefined && !SITE_KEY.test(url)) mistakes.push(`CHALLENGE_URL must be ${what}`)
  }
  const siteKey = values.CHALLENGE_SITE_KEY ?? null
  return { kind, secret: secret ?? '', siteKey, url: url ?? null }
}

/** A signup whose challenge could not be verified is held, whatever else is. */
function holdsOf(values: Values, asksForProof: boolean): HoldRules | null {
  const { HOLD_ABOVE: above = null, HOLD_SUSPICIOUS: suspicious } = values
  if (above === null && !suspicious && !asksForProof) return null
  return { above, suspicious }
}

const mailSettings = (server: MailSettings['server'], from: MailSettings['from'], values: Values): MailSettings => ({
  server,
  from,
  letters: [
    ...(values.CONFIRM === 'mail' ? (['confirmation'] as const) : []),
    ...(values.MAILS.includes('welcome') ? (['joined'] as const) : []),
    ...(values.MAILS.includes('invite') ? (['invited'] as const) : []),
  ],
  templates: values.MAIL_TEMPLATES ?? null,
  inviteLink: values.INVITE_LINK ?? null,
  rate: values.MAIL_RATE,
  service: values.SERVICE_NAME,
  heloName: heloNameOf(values.BASE_URL ?? null, from),
})

/** Whether links may begin with it. Nobody else is on the way to this machine. */
const isPublicOrLocal = (baseUrl: string | null): boolean =>
  baseUrl !== null && (baseUrl.startsWith('https:') || isLoopback(new URL(baseUrl).hostname))

/** Characters of a key that nobody finds by trying, if they are random. */
const UNGUESSABLE = 32

function warningsFor(config: ReturnType<typeof configOf>): readonly string[] {
  const { baseUrl, tls, cookie, proxies, host, store, provider, challenge, webhook, admin } = config
  const warnings = [...(provider === null ? [] : providerWarnings(provider))]
  if (webhook?.url.startsWith('http:') && !isPrivate(webhook.url)) {
    warnings.push('WEBHOOK_URL is plain HTTP to a public address: names and addresses travel in the clear. Use https.')
  }
  if (challenge?.kind === 'altcha' && challenge.secret !== null && challenge.secret.length < UNGUESSABLE) {
    warnings.push(
      `CHALLENGE_SECRET is shorter than ${UNGUESSABLE} characters: it can be found by trying, and then nobody has to ` +
        'solve anything. Use a longer one, or none.',
    )
  }
  if (challenge !== null && challenge.kind !== 'altcha') {
    // What Cap answers does not say where its challenge was solved.
    if (challenge.kind !== 'cap' && config.corsOrigins.length === 0 && baseUrl === null) {
      warnings.push('Neither CORS_ORIGINS nor BASE_URL is set: a challenge that was solved on any site is accepted.')
    }
    if (challenge.url?.startsWith('http:') && !isPrivate(challenge.url)) {
      warnings.push('CHALLENGE_URL is plain HTTP to a public address: the secret travels in the clear. Use https.')
    }
  }
  if (tls === null && !cookie.secure) {
    warnings.push(
      'Signups travel in the clear: this is plain HTTP, meant for development. For the public, set TLS_CERT_FILE and ' +
        'TLS_KEY_FILE, or put a TLS proxy in front and set BASE_URL to its https address.',
    )
  }
  if (tls === null && cookie.secure && proxies.kind === 'none') {
    warnings.push(
      'BASE_URL is https, but no proxy is trusted: all clients behind the TLS proxy share one rate limit. ' +
        'Set TRUST_PROXY (1 for a single proxy).',
    )
  }
  if (proxies.kind === 'networks' && proxies.networks.some(network => network.endsWith('/0'))) {
    warnings.push('TRUST_PROXY trusts every address: each client can choose the address that its attempts count for.')
  }
  const mails = config.mail !== null && config.mail.letters.length > 0
  if (baseUrl === null && (mails || !['localhost', '127.0.0.1', '::1'].includes(host))) {
    warnings.push(
      `BASE_URL is not set: links${mails ? ' in mails' : ''}, catalog and documentation point to this machine only. Set it to ` +
        'the public address.',
    )
  }
  if (admin !== null && !isLoopback(admin.host)) {
    warnings.push(
      'ADMIN_LISTEN is not this machine alone: everybody who can reach it sees how many people sign up. Nobody has to log ' +
        'in there, so let only your monitoring reach it.',
    )
  }
  if (store.kind === 'postgres' && !store.url.includes('sslmode=') && !isPrivate(store.url)) {
    warnings.push(
      'DATABASE_URL has no sslmode and a public host: names and addresses may travel in the clear. Add ' +
        '?sslmode=verify-full.',
    )
  }
  return warnings
}

/** The channels that are told. */
const namesOf = (channels: Config['channels']): string[] =>
  Object.entries(channels).flatMap(([name, url]) => (url === undefined ? [] : [name]))

function heldIn(holds: Config['holds']): Record<string, unknown> {
  if (holds === null) return {}
  const { above, suspicious } = holds
  return {
    ...(above !== null && { holdsAbove: `${above.count} in ${above.time / 1_000} s` }),
    ...(suspicious && { holdsSuspicious: true }),
  }
}

/** The configuration in force, for the log line at the start. Contains no secrets. */
export function inForce(config: Config): Record<string, unknown> {
  const { quota, challenge, blockedDomainsFile, webhook, mail } = config
  return {
    store: storeName(config.store),
    limiter: `${config.store.kind === 'sqlite' ? 'memory' : 'PostgreSQL'}, ${quota.limit} attempts in ${quota.window} s`,
    clients: `IPv4 address or IPv6 /56, ${config.proxies.kind === 'none' ? 'of the socket' : 'told by trusted proxies'}`,
    tls: config.tls !== null,
    provider: config.provider?.name ?? 'none',
    ...(challenge !== null && { challenge: challenge.kind }),
    ...heldIn(config.holds),
    ...(blockedDomainsFile !== null && { blockedDomains: blockedDomainsFile }),
    ...(!config.disclosesMembership && { disclosesMembership: false }),
    ...(config.messagesFile !== null && { messages: config.messagesFile }),
    webhook: webhook === null ? 'none' : new URL(webhook.url).origin,
    mail: mail === null ? 'none' : `${mail.server.host}:${mail.server.port}`,
    ...(mail !== null && { mails: mail.letters.join(', ') || 'none' }),
    channels: namesOf(config.channels).join(', ') || 'none',
    event: config.eventName,
  }
}
