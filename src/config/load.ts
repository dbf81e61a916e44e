import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { ChallengeChoice } from '../challenges/index.ts'
import type { HttpSettings } from '../http/context.ts'
import { isLoopback, isPrivate } from '../http-client/addresses.ts'
import { heloNameOf, type MailSettings } from '../mail/settings.ts'
import { prefixOf, providerWarnings, readProvider, vendorNames, vendorOf } from '../providers/list.ts'
import { OperatorError } from './operator.ts'
import { type Environment, given, readSettings, type ValuesOf } from './readers.ts'
import { settings } from './settings.ts'

type Values = ValuesOf<typeof settings>
export type LogLevel = Values['LOG_LEVEL']

/** The configuration of the service: complete and free of contradictions. */
export type Config = ReturnType<typeof configOf> & {
  /** One sentence for each setting that is allowed but unsafe for a public service, with what to do. */
  readonly warnings: readonly string[]
}

/** Either a configuration or all mistakes in the settings, one sentence each. */
type ConfigResult = { readonly config: Config } | { readonly mistakes: readonly string[] }

/**
 * Reads the settings of this process: the environment goes before the file `.env` in the working directory, and a variable
 * of spaces counts as unset. `file`: the path of that file; null if there is none.
 *
 * @throws {OperatorError} with all mistakes, or when the file cannot be read.
 */
export async function loadConfig(environment: Environment) {
  const file = resolve('.env')
  const fromFile = readEnvFile(file)
  const set = Object.entries(environment).filter(([, value]) => value?.trim())
  const env = { ...fromFile, ...Object.fromEntries(set) }
  const unknown = await unknownIn(env)
  const misnamed =
    unknown.length === 0 ? [] : [`Misspelt, or of another PROVIDER, and without effect: ${unknown.join(', ')}`]
  const result = await readConfig(env)
  if ('mistakes' in result) throw new OperatorError('the settings are not right:', [...result.mistakes, ...misnamed])
  const { config } = result
  return { config, warnings: [...config.warnings, ...misnamed], file: fromFile && file }
}

/** Null: there is no such file. */
function readEnvFile(path: string): Environment | null {
  try {
    return parseEnv(readFileSync(path, 'utf8').replace(/^\uFEFF/, ''))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new OperatorError(`The file ${path} cannot be read: ${message}`)
  }
}

/** The names that begin like settings and are none. */
async function unknownIn(env: Environment): Promise<readonly string[]> {
  const vendor = vendorNames.find(name => name === given(env, 'PROVIDER'))
  const known = [...Object.keys(settings), ...(vendor ? Object.keys((await vendorOf(vendor)).settings) : [])]
  const prefixes = [...known.flatMap(name => name.match(/^[A-Z]+_/) ?? []), ...vendorNames.map(prefixOf)]
  return Object.keys(env).filter(name => !known.includes(name) && prefixes.some(prefix => name.startsWith(prefix)))
}

/** Reads all settings and reports all mistakes at once, each with its variable and what is allowed. Reads no file. */
export async function readConfig(env: Environment): Promise<ConfigResult> {
  const mistakes: string[] = []
  const values = readSettings(settings, env, mistakes)
  const refuse = (isWrong: boolean, mistake: string) => {
    if (isWrong) mistakes.push(mistake)
  }
  const isSet = (name: keyof Values) => given(env, name) !== undefined
  const { BASE_URL: baseUrl = null, TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, PROVIDER: vendor } = values
  const tls = certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : null
  const confirms = values.CONFIRM === 'mail'

  const missing = (['TLS_CERT_FILE', 'TLS_KEY_FILE'] as const).filter(name => !isSet(name))
  refuse(missing.length === 1, `${missing[0]} is missing: HTTPS needs both TLS_CERT_FILE and TLS_KEY_FILE`)
  refuse(
    tls !== null && baseUrl?.startsWith('http:') === true,
    'BASE_URL must start with https: when TLS_CERT_FILE and TLS_KEY_FILE are set',
  )
  refuse(
    // 0 is any free port, each time another one.
    values.PORT !== 0 && values.ADMIN_LISTEN?.port === values.PORT,
    'ADMIN_LISTEN must not have the same port as PORT: the public must not reach it',
  )
  refuse(
    values.INVITED_EVENT_NAME === values.EVENT_NAME,
    'INVITED_EVENT_NAME must not be the same as EVENT_NAME: nobody could tell the two events apart',
  )
  refuse(
    values.WEBHOOK_URL !== undefined && !isSet('WEBHOOK_SECRET'),
    'WEBHOOK_SECRET is missing: what is sent to WEBHOOK_URL is signed (docs/events.md says how to make one)',
  )
  const { CHALLENGE: challenge, CHALLENGE_URL: verifier } = values
  const asksVendor = challenge !== 'none' && challenge !== 'altcha'
  refuse(asksVendor && !isSet('CHALLENGE_SECRET'), `CHALLENGE_SECRET is missing: ${challenge} needs it`)
  const ofCap = 'the address of your Cap with the site key, such as https://cap.example.com/d9256640cb53'
  refuse(challenge === 'cap' && !isSet('CHALLENGE_URL'), `CHALLENGE_URL is missing: cap needs ${ofCap}`)
  refuse(challenge === 'cap' && verifier !== undefined && !CAP_URL.test(verifier), `CHALLENGE_URL must be ${ofCap}`)
  refuse(
    values.SMTP_URL !== undefined && !isSet('MAIL_FROM'),
    'MAIL_FROM is missing: mails that are sent through SMTP_URL need a sender',
  )
  refuse(
    values.OWNER_MAIL !== undefined && !isSet('SMTP_URL'),
    'SMTP_URL is missing: mails to OWNER_MAIL need a mail server',
  )
  refuse(confirms && !isSet('SMTP_URL'), 'SMTP_URL is missing: CONFIRM=mail needs a mail server')
  refuse(
    confirms && !(baseUrl?.startsWith('https:') || (baseUrl !== null && isLoopback(new URL(baseUrl).hostname))),
    'BASE_URL must be an https address with CONFIRM=mail, or one of this machine: links in mails begin with it',
  )
  const provider = vendor === 'none' ? null : await readProvider(vendor, env, values.PROVIDER_FIELDS, mistakes)
  if (mistakes.length > 0) return { mistakes }
  const config = configOf(values, tls, provider)
  return { config: { ...config, warnings: warningsFor(config) } }
}

/** With a path other than that of the call alone. */
const CAP_URL = /^https?:\/\/[^/]+(?!\/siteverify$)\/./

function configOf(values: Values, tls: HttpSettings['tls'], provider: Awaited<ReturnType<typeof readProvider>> | null) {
  const { BASE_URL: baseUrl = null, CHALLENGE: challenge, CORS_ORIGINS: corsOrigins, HOLD_ABOVE: above = null } = values
  const { HOLD_SUSPICIOUS: suspicious, WEBHOOK_URL: webhookUrl, WEBHOOK_SECRET: secrets = [] } = values
  return {
    host: values.HOST,
    port: values.PORT,
    baseUrl,
    tls,
    store: values.DATABASE_URL,
    proxies: values.TRUST_PROXY ?? ({ kind: 'none' } as const),
    quota: { limit: values.RATE_LIMIT.count, window: values.RATE_LIMIT.time / 1_000 },
    corsOrigins: corsOrigins ?? [],
    cookie: {
      secure: baseUrl === null ? tls !== null : baseUrl.startsWith('https:'),
      crossSite: corsOrigins !== undefined,
    },
    challenge: challengeOf(values),
    // A signup whose challenge could not be verified is held, whatever else is.
    holds: above === null && !suspicious && challenge === 'none' ? null : { above, suspicious },
    blockedDomainsFile: values.BLOCKED_DOMAINS_FILE ?? null,
    disclosesMembership: values.DISCLOSE_MEMBERSHIP,
    trackSources: values.TRACK_SOURCES,
    provider,
    webhook: webhookUrl === undefined ? null : { url: webhookUrl, secrets },
    mail: mailOf(values),
    confirm: values.CONFIRM === 'mail',
    channels: {
      slack: values.SLACK_WEBHOOK_URL,
      discord: values.DISCORD_WEBHOOK_URL,
      'owner-mail': values.OWNER_MAIL,
    },
    eventName: values.EVENT_NAME,
    invitedEventName: values.INVITED_EVENT_NAME,
    messagesFile: values.MESSAGES_FILE ?? null,
    service: values.SERVICE_NAME,
    description: values.SERVICE_DESCRIPTION,
    shutdownDelay: values.SHUTDOWN_DELAY,
    admin: values.ADMIN_LISTEN === undefined ? null : { ...values.ADMIN_LISTEN, token: values.ADMIN_TOKEN ?? null },
    logLevel: values.LOG_LEVEL,
  }
}

function challengeOf(values: Values): ChallengeChoice | null {
  const { CHALLENGE: kind, CHALLENGE_SECRET: secret, CHALLENGE_SITE_KEY: siteKey, CHALLENGE_URL: url } = values
  if (kind === 'none') return null
  if (kind === 'altcha') return { kind, secret: secret ?? null }
  return { kind, secret: secret ?? '', siteKey: siteKey ?? null, url: url ?? null }
}

function mailOf(values: Values): MailSettings | null {
  const { SMTP_URL: server, MAIL_FROM: from, MAILS: mails } = values
  if (server === undefined || from === undefined) return null
  return {
    server,
    from,
    letters: [
      ...(values.CONFIRM === 'mail' ? (['confirmation'] as const) : []),
      ...(mails.includes('welcome') ? (['joined'] as const) : []),
      ...(mails.includes('invite') ? (['invited'] as const) : []),
    ],
    templates: values.MAIL_TEMPLATES ?? null,
    inviteLink: values.INVITE_LINK ?? null,
    rate: values.MAIL_RATE,
    service: values.SERVICE_NAME,
    heloName: heloNameOf(values.BASE_URL ?? null, from),
  }
}

/** Whether what is sent there can be read on its way. */
const isInTheClear = (url: string | null | undefined): boolean => url?.startsWith('http:') === true && !isPrivate(url)

/** Characters of a key that nobody finds by trying, if they are random. */
const UNGUESSABLE = 32

function warningsFor(config: ReturnType<typeof configOf>): readonly string[] {
  const { baseUrl, tls, cookie, proxies, host, store, provider, challenge, webhook, admin, mail } = config
  const warnings = provider === null ? [] : [...providerWarnings(provider)]
  const warn = (isUnsafe: boolean, warning: string) => {
    if (isUnsafe) warnings.push(warning)
  }
  warn(
    isInTheClear(webhook?.url),
    'WEBHOOK_URL is plain HTTP to a public address: names and addresses travel in the clear. Use https.',
  )
  if (challenge?.kind === 'altcha') {
    warn(
      challenge.secret !== null && challenge.secret.length < UNGUESSABLE,
      `CHALLENGE_SECRET is shorter than ${UNGUESSABLE} characters: it can be found by trying, and then nobody has to ` +
        'solve anything. Use a longer one, or none.',
    )
  } else if (challenge !== null) {
    warn(
      // What Cap answers does not say where its challenge was solved.
      challenge.kind !== 'cap' && config.corsOrigins.length === 0 && baseUrl === null,
      'Neither CORS_ORIGINS nor BASE_URL is set: a challenge that was solved on any site is accepted.',
    )
    warn(
      isInTheClear(challenge.url),
      'CHALLENGE_URL is plain HTTP to a public address: the secret travels in the clear. Use https.',
    )
  }
  warn(
    tls === null && !cookie.secure,
    'Signups travel in the clear: this is plain HTTP, meant for development. For the public, set TLS_CERT_FILE and ' +
      'TLS_KEY_FILE, or put a TLS proxy in front and set BASE_URL to its https address.',
  )
  warn(
    tls === null && cookie.secure && proxies.kind === 'none',
    'BASE_URL is https, but no proxy is trusted: all clients behind the TLS proxy share one rate limit. ' +
      'Set TRUST_PROXY (1 for a single proxy).',
  )
  warn(
    proxies.kind === 'networks' && proxies.networks.some(network => network.endsWith('/0')),
    'TRUST_PROXY trusts every address: each client can choose the address that its attempts count for.',
  )
  const sendsLinks = mail !== null && mail.letters.length > 0
  warn(
    baseUrl === null && (sendsLinks || !isLoopback(host)),
    `BASE_URL is not set: links${sendsLinks ? ' in mails' : ''}, catalog and documentation point to this machine only. ` +
      'Set it to the public address.',
  )
  warn(
    admin !== null && !isLoopback(admin.host),
    'ADMIN_LISTEN is not this machine alone: everybody who can reach it sees how many people sign up. Nobody has to log ' +
      'in there, so let only your monitoring reach it.',
  )
  warn(
    store.kind === 'postgres' && !store.url.includes('sslmode=') && !isPrivate(store.url),
    'DATABASE_URL has no sslmode and a public host: names and addresses may travel in the clear. Add ' +
      '?sslmode=verify-full.',
  )
  return warnings
}
