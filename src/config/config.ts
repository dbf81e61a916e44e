import type { ChallengeChoice } from '../challenges/settings.ts'
import { heloNameOf, type Mailbox, type MailSettings } from '../destinations/mail-settings.ts'
import type { HttpSettings } from '../http/settings.ts'
import { nameOf, type RedisLocation } from '../limiters/redis-url.ts'
import { isLoopback, isMetadata, isPrivate } from '../outbound/addresses.ts'
import { type Choice, providerWarnings, readProvider } from '../providers/settings.ts'
import { type StoreLocation, storeName } from '../stores/location.ts'
import { eventKinds } from '../waitlist/rules/contact.ts'
import type { HoldRules } from '../waitlist/rules/hold.ts'
import { type Environment, given, readSettings, type ValuesOf } from './kinds.ts'
import { settings } from './settings.ts'

export type LogLevel = ValuesOf<typeof settings>['LOG_LEVEL']
export type LogFormat = ValuesOf<typeof settings>['LOG_FORMAT']

/** The configuration of the service: complete and free of contradictions. */
export interface Config extends HttpSettings {
  readonly store: StoreLocation
  /** The most connections to PostgreSQL. */
  readonly storeConnections: number
  /** Null: each process counts attempts by itself. */
  readonly redis: RedisLocation | null
  /** Null: the store is the list. */
  readonly provider: Choice | null
  /** Milliseconds. */
  readonly providerTimeout: number
  /** Null: a signup is taken without a proof. */
  readonly challenge: ChallengeChoice | null
  /** The file with email domains that are not accepted; null: there is none. */
  readonly blockedDomainsFile: string | null
  /** What becomes of contacts that the provider had before. */
  readonly providerExisting: ValuesOf<typeof settings>['PROVIDER_EXISTING']
  readonly webhook: { readonly url: string; readonly secrets: readonly string[] } | null
  readonly mail: MailSettings | null
  /** Channels by their name. The addresses of chats are secret; a mailbox needs `mail`. */
  readonly channels: {
    readonly slack?: string | undefined
    readonly discord?: string | undefined
    readonly 'owner-mail'?: Mailbox | undefined
  }
  /** Milliseconds between two messages to a chat. */
  readonly chatInterval: number
  readonly chatNames: boolean
  /** Milliseconds between two mails to the owner about those who joined. */
  readonly ownerMailInterval: number
  readonly eventName: string
  readonly invitedEventName: string
  /** A second listener, never the public one, for the operator; null: there is none. */
  readonly admin: { readonly host: string; readonly port: number; readonly token: string | null } | null
  readonly logLevel: LogLevel
  readonly logFormat: LogFormat
  /** One sentence for each setting that is allowed but unsafe for a public service, with what to do. */
  readonly warnings: readonly string[]
}

/** Either a configuration or all mistakes in the settings, one sentence each. */
export type ConfigResult = { readonly config: Config } | { readonly mistakes: readonly string[] }

/** Reads all settings and reports all mistakes at once, each with its variable and what is allowed. Pure. */
export async function readConfig(env: Environment): Promise<ConfigResult> {
  const { values, mistakes: wrong, idle } = readSettings(settings, env)
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
  const sameSite = values.COOKIE_SAME_SITE
  // rfc6265bis §5.7: browsers drop such a cookie unless it is Secure.
  if (!secure && sameSite === 'none') mistakes.push('COOKIE_SAME_SITE must not be none unless BASE_URL is https')

  // 0 is any free port, each time another one.
  if (values.ADMIN_PORT && values.ADMIN_PORT === values.PORT) {
    mistakes.push('ADMIN_PORT must not be the same as PORT: the public must not reach it')
  }

  const { EVENT_NAME, INVITED_EVENT_NAME } = values
  if (INVITED_EVENT_NAME === EVENT_NAME) {
    mistakes.push('INVITED_EVENT_NAME must not be the same as EVENT_NAME: nobody could tell the two events apart')
  }

  const vendor = values.PROVIDER
  const provider =
    vendor === 'none'
      ? null
      : await readProvider(vendor, env, values.PROVIDER_FIELDS, { EVENT_NAME, INVITED_EVENT_NAME }, mistakes)

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
  const confirm = values.CONFIRM === 'mail' ? { within: values.CONFIRM_WITHIN } : null
  if (confirm !== null && given(env, 'SMTP_URL') === undefined) {
    mistakes.push('SMTP_URL is missing: CONFIRM=mail needs a mail server')
  }
  if (confirm !== null && !baseUrl?.startsWith('https:')) {
    mistakes.push('BASE_URL must be an https address with CONFIRM=mail: it is what the links in mails begin with')
  }
  const mail = mailServer !== undefined && from !== undefined ? mailSettings(mailServer, from, values) : null

  const config: Config = {
    host: values.HOST,
    port: values.PORT,
    baseUrl,
    tls,
    proxies: values.TRUST_PROXY ?? { kind: 'none' },
    quota: { limit: values.RATE_LIMIT, window: values.RATE_LIMIT_WINDOW / 1_000 },
    corsOrigins: values.CORS_ORIGINS ?? [],
    cookie: { sameSite, secure },
    trackSources: values.TRACK_SOURCES,
    disclosesMembership: values.DISCLOSE_MEMBERSHIP,
    holds: holdsOf(values, challenge !== null),
    messagesFile: values.MESSAGES_FILE ?? null,
    service: values.SERVICE_NAME,
    description: values.SERVICE_DESCRIPTION,
    shutdownDelay: values.SHUTDOWN_DELAY,
    store: values.DATABASE_URL,
    storeConnections: values.DATABASE_CONNECTIONS,
    redis: values.REDIS_URL ?? null,
    provider,
    providerTimeout: values.PROVIDER_TIMEOUT,
    challenge,
    blockedDomainsFile: values.BLOCKED_DOMAINS_FILE ?? null,
    providerExisting: values.PROVIDER_EXISTING,
    webhook,
    mail,
    channels: {
      slack: values.SLACK_WEBHOOK_URL,
      discord: values.DISCORD_WEBHOOK_URL,
      'owner-mail': values.OWNER_MAIL,
    },
    chatInterval: values.CHAT_INTERVAL,
    chatNames: values.CHAT_NAMES,
    ownerMailInterval: values.OWNER_MAIL_INTERVAL,
    eventName: EVENT_NAME,
    invitedEventName: INVITED_EVENT_NAME,
    confirm,
    admin:
      values.ADMIN_PORT === undefined
        ? null
        : { host: values.ADMIN_HOST, port: values.ADMIN_PORT, token: values.ADMIN_TOKEN ?? null },
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT,
    warnings: [],
  }
  return mistakes.length > 0
    ? { mistakes }
    : { config: { ...config, warnings: [...(await warningsFor(config, env)), ...idle] } }
}

/** A path other than that of the call alone. */
const SITE_KEY = /^https?:\/\/[^/]+(?!\/siteverify$)\/./

/** Where each vendor shows its secret. */
const secretsOf: Readonly<Record<Exclude<ChallengeChoice['kind'], 'altcha'>, string>> = {
  turnstile: 'in the Cloudflare dashboard, Turnstile, the settings of the widget, Secret key.',
  hcaptcha: 'in the hCaptcha dashboard, Settings, Secret.',
  friendlycaptcha: 'in the Friendly Captcha dashboard, API Keys.',
  recaptcha: 'in the reCAPTCHA admin console, Settings, reCAPTCHA keys, Secret key.',
  cap: 'in the dashboard of your Cap, when the site key is made.',
}

/** A challenge's settings, complete. */
function readChallenge(
  values: ValuesOf<typeof settings>,
  env: Environment,
  mistakes: string[],
): ChallengeChoice | null {
  const { CHALLENGE: kind, CHALLENGE_SECRET: secret, CHALLENGE_URL: url } = values
  if (kind === 'none') return null
  if (kind === 'altcha') return { kind, secret: secret ?? null, range: values.CHALLENGE_RANGE }
  // One that is given and cannot be read is a mistake already.
  if (given(env, 'CHALLENGE_SECRET') === undefined) {
    mistakes.push(`CHALLENGE_SECRET is missing: ${kind} needs it. Where to find it: ${secretsOf[kind]}`)
  }
  if (kind === 'cap') {
    const what = 'the address of your Cap with the site key, such as https://cap.example.com/d9256640cb53'
    if (given(env, 'CHALLENGE_URL') === undefined) mistakes.push(`CHALLENGE_URL is missing: cap needs ${what}`)
    else if (url !== undefined && !SITE_KEY.test(url)) mistakes.push(`CHALLENGE_URL must be ${what}`)
  }
  const siteKey = values.CHALLENGE_SITE_KEY ?? null
  return { kind, secret: secret ?? '', siteKey, url: url ?? null, score: values.CHALLENGE_SCORE }
}

/** A signup whose challenge could not be verified is held, whatever else is. */
function holdsOf(values: ValuesOf<typeof settings>, asksForProof: boolean): HoldRules | null {
  const { HOLD_ABOVE: above = null, HOLD_SUSPICIOUS: suspicious } = values
  if (above === null && !suspicious && !asksForProof) return null
  return { above, suspicious, window: values.HOLD_WINDOW }
}

const mailSettings = (
  server: MailSettings['server'],
  from: MailSettings['from'],
  values: ValuesOf<typeof settings>,
): MailSettings => ({
  server,
  from,
  tells: eventKinds.filter(
    kind => ({ joined: values.MAIL_WELCOME, invited: values.INVITE_MAIL, asked: values.CONFIRM === 'mail' })[kind],
  ),
  letters: {
    joined: {
      subject: values.MAIL_SUBJECT,
      textFile: values.MAIL_TEXT_FILE ?? null,
      htmlFile: values.MAIL_HTML_FILE ?? null,
    },
    invited: {
      subject: values.INVITE_SUBJECT,
      textFile: values.INVITE_TEXT_FILE ?? null,
      htmlFile: values.INVITE_HTML_FILE ?? null,
    },
    asked: {
      subject: values.CONFIRM_SUBJECT,
      textFile: values.CONFIRM_TEXT_FILE ?? null,
      htmlFile: values.CONFIRM_HTML_FILE ?? null,
    },
  },
  inviteLink: values.INVITE_LINK ?? null,
  rate: values.MAIL_RATE,
  service: values.SERVICE_NAME,
  heloName: heloNameOf(values.BASE_URL ?? null, from),
})

/** What people call each chat, and the hosts on which it takes messages. */
const CHATS = {
  slack: { title: 'Slack', home: 'hooks.slack.com', hosts: /^hooks\.slack(?:-gov)?\.com$/ },
  discord: { title: 'Discord', home: 'discord.com', hosts: /^(?:(?:ptb|canary)\.)?discord(?:app)?\.com$/ },
} as const

function* chatWarnings({ webhook, channels }: Config): Generator<string> {
  for (const name of ['slack', 'discord'] as const) {
    const { title, home, hosts } = CHATS[name]
    const setting = `${name.toUpperCase()}_WEBHOOK_URL`
    if (webhook !== null && hosts.test(new URL(webhook.url).hostname)) {
      yield `WEBHOOK_URL is an address of ${title}, which does not understand events: set ${setting} to it instead.`
    }
    const url = channels[name]
    if (url !== undefined && !isPrivate(url) && !hosts.test(new URL(url).hostname)) {
      yield `${setting} is not an address of ${home}: only ${title} understands what is sent there.`
    }
  }
}

/** The settings of each letter, by the switch that it is sent with. */
const LETTERS = {
  MAIL_WELCOME: { kind: 'joined', settings: ['MAIL_SUBJECT', 'MAIL_TEXT_FILE', 'MAIL_HTML_FILE'] },
  INVITE_MAIL: {
    kind: 'invited',
    settings: ['INVITE_SUBJECT', 'INVITE_TEXT_FILE', 'INVITE_HTML_FILE', 'INVITE_LINK'],
  },
} as const

function* mailWarnings({ tells, service }: MailSettings, { channels }: Config, env: Environment): Generator<string> {
  if ((tells.includes('joined') || tells.includes('asked')) && service === settings.SERVICE_NAME.default) {
    yield `SERVICE_NAME is not set: mails call the service "${service}".`
  }
  for (const [name, letter] of Object.entries(LETTERS)) {
    if (tells.includes(letter.kind)) continue
    for (const idle of letter.settings) {
      if (given(env, idle) !== undefined) yield `${idle} has no effect with ${name}=false.`
    }
  }
  if (tells.length === 0 && channels['owner-mail'] === undefined) {
    yield 'SMTP_URL has no effect: set MAIL_WELCOME or INVITE_MAIL to true, CONFIRM to mail, or OWNER_MAIL.'
  }
}

async function warningsFor(config: Config, env: Environment): Promise<readonly string[]> {
  const { baseUrl, tls, cookie, proxies, host, store, provider, challenge, holds, webhook, mail, admin } = config
  const warnings = [...(await providerWarnings(provider, config.providerExisting, env))]
  if (webhook?.url.startsWith('http:') && !isPrivate(webhook.url)) {
    warnings.push('WEBHOOK_URL is plain HTTP to a public address: names and addresses travel in the clear. Use https.')
  }
  if (holds?.above === 0) warnings.push('HOLD_ABOVE is 0: every new signup is held until you release it.')
  if (challenge !== null) warnings.push(...challengeWarnings(challenge, config, env))
  warnings.push(...chatWarnings(config))
  if (webhook !== null && isMetadata(webhook.url)) {
    warnings.push(
      'WEBHOOK_URL is a link-local or metadata address, where clouds keep credentials: names and addresses are sent ' +
        'there. Set it to the address of your receiver.',
    )
  }
  if (mail !== null) warnings.push(...mailWarnings(mail, config, env))
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
  if (baseUrl === null && !['localhost', '127.0.0.1', '::1'].includes(host)) {
    warnings.push(
      'BASE_URL is not set: links, catalog and documentation point to this machine only. Set it to the public address.',
    )
  }
  if (admin !== null && !isLoopback(admin.host)) {
    warnings.push(
      'ADMIN_HOST is not this machine alone: everybody who can reach it sees how many people sign up. Nobody has to log ' +
        'in there, so let only your monitoring reach it.',
    )
  }
  if (store.kind === 'postgres' && !store.url.includes('sslmode=') && !isPrivate(store.url)) {
    warnings.push(
      'DATABASE_URL has no sslmode and a public host: names and addresses may travel in the clear. Add ' +
        '?sslmode=verify-full.',
    )
  }
  if (store.kind === 'sqlite' && String(config.storeConnections) !== settings.DATABASE_CONNECTIONS.default) {
    warnings.push('DATABASE_CONNECTIONS has no effect without a DATABASE_URL of PostgreSQL.')
  }
  if (store.kind === 'sqlite' && store.path === ':memory:')
    warnings.push('DATABASE_URL is sqlite::memory: every signup is lost when the process ends.')
  return warnings
}

/** Characters of a key that nobody finds by trying, if they are random. */
const UNGUESSABLE = 32

/** The settings that only some challenges have. */
const SETTINGS_OF = {
  CHALLENGE_RANGE: ['altcha'],
  CHALLENGE_SCORE: ['recaptcha'],
  CHALLENGE_SITE_KEY: ['turnstile', 'hcaptcha', 'friendlycaptcha', 'recaptcha', 'cap'],
  CHALLENGE_URL: ['turnstile', 'hcaptcha', 'friendlycaptcha', 'recaptcha', 'cap'],
} as const

function* challengeWarnings(
  challenge: ChallengeChoice,
  { corsOrigins, baseUrl }: Config,
  env: Environment,
): Generator<string> {
  const { kind } = challenge
  for (const [name, kinds] of Object.entries(SETTINGS_OF)) {
    if (given(env, name) !== undefined && !kinds.some(each => each === kind)) {
      yield `${name} has no effect with CHALLENGE=${kind}.`
    }
  }
  if (kind === 'altcha' && challenge.secret !== null && challenge.secret.length < UNGUESSABLE) {
    yield `CHALLENGE_SECRET is shorter than ${UNGUESSABLE} characters: it can be found by trying, and then nobody has to solve anything. Use a longer one, or none.`
  }
  if (kind !== 'altcha' && kind !== 'cap' && challenge.siteKey === null) {
    yield 'CHALLENGE_SITE_KEY is not set: nobody can sign up with form.js, as its widget does not work without it. A form of your own brings its own.'
  }
  // What Cap answers does not say where its challenge was solved.
  if (kind !== 'altcha' && kind !== 'cap' && corsOrigins.length === 0 && baseUrl === null) {
    yield 'Neither CORS_ORIGINS nor BASE_URL is set: a challenge that was solved on any site is accepted.'
  }
  if (kind !== 'altcha' && challenge.url?.startsWith('http:') && !isPrivate(challenge.url)) {
    yield 'CHALLENGE_URL is plain HTTP to a public address: the secret travels in the clear. Use https.'
  }
}

/** The channels that are told. */
const namesOf = (channels: Config['channels']): string[] =>
  Object.entries(channels).flatMap(([name, url]) => (url === undefined ? [] : [name]))

function heldIn(holds: Config['holds']): Record<string, unknown> {
  if (holds === null) return {}
  const { above, window, suspicious } = holds
  return {
    ...(above !== null && { holdsAbove: `${above} in ${window / 1_000} s` }),
    ...(suspicious && { holdsSuspicious: true }),
  }
}

/** The configuration in force, for the log line at the start. Contains no secrets. */
export function inForce(config: Config): Record<string, unknown> {
  const { redis, quota, challenge, blockedDomainsFile, webhook, mail } = config
  return {
    store: storeName(config.store),
    limiter: `${redis === null ? 'memory' : nameOf(redis)}, ${quota.limit} attempts in ${quota.window} s`,
    clients: `IPv4 address or IPv6 /64, ${config.proxies.kind === 'none' ? 'of the socket' : 'told by trusted proxies'}`,
    tls: config.tls !== null,
    provider: config.provider?.name ?? 'none',
    ...(challenge !== null && { challenge: challenge.kind }),
    ...heldIn(config.holds),
    ...(blockedDomainsFile !== null && { blockedDomains: blockedDomainsFile }),
    ...(!config.disclosesMembership && { disclosesMembership: false }),
    ...(config.messagesFile !== null && { messages: config.messagesFile }),
    webhook: webhook === null ? 'none' : new URL(webhook.url).origin,
    mail: mail === null ? 'none' : `${mail.server.host}:${mail.server.port}`,
    ...(mail?.tells.includes('joined') === false && { welcomeMails: false }),
    ...(mail?.tells.includes('invited') === false && { invitationMails: false }),
    ...(config.confirm !== null && { confirmsWithin: `${config.confirm.within / 1_000} s` }),
    channels: namesOf(config.channels).join(', ') || 'none',
    event: config.eventName,
  }
}
