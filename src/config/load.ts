import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { ChallengeChoice } from '../challenges/index.ts'
import type { HttpSettings } from '../http/context.ts'
import { isLoopback, isPrivate } from '../http-client/addresses.ts'
import { heloNameOf, type MailSettings } from '../mail/settings.ts'
import { automatedEvents, type Choice, prefixOf, readProvider, vendorNames } from '../providers/list.ts'
import type { EventKind } from '../signup/contact.ts'
import { OperatorError } from './operator.ts'
import { type Environment, given, readSettings, type ValuesOf } from './readers.ts'
import { settings } from './settings.ts'

/** Of this program. */
export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string
}

type Values = ValuesOf<typeof settings>
export type LogLevel = Values['LOG_LEVEL']

/** The configuration of the service: complete and free of contradictions. */
export type Config = ReturnType<typeof configOf> & {
  /** One sentence for each setting that is allowed but unsafe for a public service, or that is unknown. */
  readonly warnings: readonly string[]
}

/**
 * Reads the settings of this process: the environment goes before the file `.env` in the working directory. `file`: the path
 * of that file; null if there is none.
 *
 * @throws {OperatorError} with all mistakes, or when the file cannot be read.
 */
export async function loadConfig(environment: Environment) {
  const file = resolve('.env')
  const fromFile = readEnvFile(file)
  const set = Object.entries(environment).filter(([, value]) => value?.trim())
  const config = await readConfig({ ...fromFile, ...Object.fromEntries(set) })
  return { config, file: fromFile && file }
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

/**
 * Reads all settings. A variable of spaces counts as unset.
 *
 * @throws {OperatorError} with all mistakes, a sentence each that begins with the variable and says what is allowed.
 */
export async function readConfig(env: Environment): Promise<Config> {
  const mistakes: string[] = []
  const values = readSettings(settings, env, mistakes)
  const { PROVIDER: vendor, PROVIDER_FIELDS: fields } = values
  mistakes.push(...contradictionsIn(values, name => given(env, name) !== undefined))
  const provider = vendor === 'none' ? null : await readProvider(vendor, env, fields, mistakes)
  const unknown = unknownIn(env, provider)
  if (mistakes.length > 0) throw new OperatorError('the settings are not right:', [...mistakes, ...unknown])
  return { ...configOf(values, provider), warnings: [...warningsFor(values, provider), ...unknown] }
}

function* contradictionsIn(values: Values, isSet: (name: keyof Values) => boolean): Generator<string> {
  const { BASE_URL: baseUrl, TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, CHALLENGE: challenge } = values
  const isMissing = (name: keyof Values, isNeeded: boolean) => isNeeded && !isSet(name)

  const both = 'HTTPS needs both TLS_CERT_FILE and TLS_KEY_FILE'
  if (isMissing('TLS_CERT_FILE', keyFile !== undefined)) yield `TLS_CERT_FILE is missing: ${both}`
  if (isMissing('TLS_KEY_FILE', certFile !== undefined)) yield `TLS_KEY_FILE is missing: ${both}`
  if (certFile !== undefined && baseUrl?.startsWith('http:'))
    yield 'BASE_URL must start with https: when TLS_CERT_FILE and TLS_KEY_FILE are set'
  if (values.INVITED_EVENT_NAME === values.EVENT_NAME)
    yield 'INVITED_EVENT_NAME must not be the same as EVENT_NAME: nobody could tell the two events apart'
  if (isMissing('WEBHOOK_SECRET', values.WEBHOOK_URL !== undefined))
    yield 'WEBHOOK_SECRET is missing: what is sent to WEBHOOK_URL is signed (docs/events.md says how to make one)'
  if (isMissing('CHALLENGE_SECRET', challenge !== 'none' && challenge !== 'altcha'))
    yield `CHALLENGE_SECRET is missing: ${challenge} needs it`
  if (challenge === 'cap' && !CAP_URL.test(values.CHALLENGE_URL ?? ''))
    yield 'CHALLENGE_URL must be the address of your Cap with the site key, such as https://cap.example.com/d9256640cb53'
  if (isMissing('MAIL_FROM', values.SMTP_URL !== undefined))
    yield 'MAIL_FROM is missing: mails that are sent through SMTP_URL need a sender'
  if (isMissing('SMTP_URL', values.OWNER_MAIL !== undefined))
    yield 'SMTP_URL is missing: mails to OWNER_MAIL need a mail server'
  if (values.CONFIRM === 'none') return
  if (isMissing('SMTP_URL', true)) yield 'SMTP_URL is missing: CONFIRM=mail needs a mail server'
  if (!baseUrl?.startsWith('https:') && !isLoopback(hostOf(baseUrl)))
    yield 'BASE_URL must be an https address with CONFIRM=mail, or one of this machine: links in mails begin with it'
}

/** With a path other than that of the call alone. */
const CAP_URL = /^https?:\/\/[^/]+(?!\/siteverify$)\/./

const hostOf = (url = 'http://unset'): string => new URL(url).hostname

/** One sentence about the names that begin like settings and are none. */
function unknownIn(env: Environment, provider: Choice | null): readonly string[] {
  const known = [...Object.keys(settings), ...Object.keys(provider?.vendor.settings ?? {})]
  const prefixes = [...known.flatMap(name => name.match(/^[A-Z]+_/) ?? []), ...vendorNames.map(prefixOf)]
  const unknown = Object.keys(env).filter(
    name => !known.includes(name) && prefixes.some(prefix => name.startsWith(prefix)),
  )
  return unknown.length === 0 ? [] : [`Misspelt, or of another PROVIDER, and without effect: ${unknown.join(', ')}`]
}

function configOf(values: Values, provider: Choice | null) {
  const { BASE_URL: baseUrl = null, CHALLENGE: challenge, CORS_ORIGINS: corsOrigins, HOLD_ABOVE: above = null } = values
  const { HOLD_SUSPICIOUS: suspicious, WEBHOOK_URL: webhookUrl, WEBHOOK_SECRET: secrets = [] } = values
  const { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } = values
  const tls: HttpSettings['tls'] = certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : null
  const mail = mailOf(values)
  /** The names that deliveries of an event are stored under. */
  const destinationsOf = (event: EventKind): readonly string[] => [
    ...(provider !== null && automatedEvents(provider).some(each => each === event)
      ? [`${provider.name}-automation`]
      : []),
    ...(webhookUrl !== undefined && event !== 'confirmation' ? ['webhook'] : []),
    ...(mail?.letters.includes(event) ? ['mail'] : []),
  ]
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
    mail,
    confirm: values.CONFIRM === 'mail',
    channels: {
      slack: values.SLACK_WEBHOOK_URL,
      discord: values.DISCORD_WEBHOOK_URL,
      'owner-mail': values.OWNER_MAIL,
    },
    /** What becomes of new signups. */
    signupTargets: {
      eventName: values.EVENT_NAME,
      provider: provider?.name ?? null,
      destinations: destinationsOf('joined'),
      confirmation: destinationsOf('confirmation')[0] ?? null,
    },
    /** Who is notified of an invitation. */
    invitationTargets: { eventName: values.INVITED_EVENT_NAME, destinations: destinationsOf('invited') },
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

function* warningsFor(values: Values, provider: Choice | null): Generator<string> {
  const {
    BASE_URL: baseUrl,
    TRUST_PROXY: proxies = { kind: 'none' },
    DATABASE_URL: store,
    ADMIN_LISTEN: admin,
  } = values
  const addresses = { ...provider?.settings, WEBHOOK_URL: values.WEBHOOK_URL, CHALLENGE_URL: values.CHALLENGE_URL }
  for (const [name, url] of Object.entries(addresses)) {
    if (typeof url === 'string' && url.startsWith('http:') && !isPrivate(url))
      yield `${name} is plain HTTP to a public address: what is sent there can be read on its way. Use https.`
  }
  if (values.TLS_CERT_FILE === undefined && !baseUrl?.startsWith('https:'))
    yield 'Signups travel in the clear: this is plain HTTP, meant for development. For the public, set TLS_CERT_FILE and ' +
      'TLS_KEY_FILE, or put a TLS proxy in front and set BASE_URL to its https address.'
  else if (values.TLS_CERT_FILE === undefined && proxies.kind === 'none')
    yield 'BASE_URL is https, but no proxy is trusted: all clients behind the TLS proxy share one rate limit. ' +
      'Set TRUST_PROXY (1 for a single proxy).'
  if (proxies.kind === 'networks' && proxies.networks.some(network => network.endsWith('/0')))
    yield 'TRUST_PROXY trusts every address: each client can choose the address that its attempts count for.'
  const sendsLinks = values.SMTP_URL !== undefined && values.MAILS.length > 0
  if (baseUrl === undefined && (sendsLinks || !isLoopback(values.HOST)))
    yield `BASE_URL is not set: links${sendsLinks ? ' in mails' : ''}, catalog and documentation point to this machine only. ` +
      'Set it to the public address.'
  if (admin !== undefined && !isLoopback(admin.host))
    yield 'ADMIN_LISTEN is not this machine alone: everybody who can reach it sees how many people sign up. Nobody has to ' +
      'log in there, so let only your monitoring reach it.'
  if (store.kind === 'postgres' && !store.url.includes('sslmode=') && !isPrivate(store.url))
    yield 'DATABASE_URL has no sslmode and a public host: names and addresses may travel in the clear. Add ' +
      '?sslmode=verify-full.'
}
