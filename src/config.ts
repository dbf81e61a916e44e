import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import type { ServerSettings } from './http/server.ts'
import type { RedisPlace } from './limiters/redis-url.ts'
import { isPrivate } from './outbound/private-address.ts'
import { type Choice, providerWarnings, readProvider, vendorOf } from './providers/settings.ts'
import { type SettingName, settings } from './settings.ts'
import type { StorePlace } from './stores/place.ts'
import { CannotOpen } from './waitlist/ports.ts'

export type LogLevel = NonNullable<ReturnType<(typeof settings)['LOG_LEVEL']['read']>>

/** What the service is told to be: complete and free of contradictions. */
export interface Config {
  readonly server: Omit<ServerSettings, 'version'>
  readonly store: StorePlace
  /** Connections at most, where the store is a server. */
  readonly storeConnections: number
  /** Null: this process counts attempts by itself. */
  readonly redis: RedisPlace | null
  /** Null: the store is the list. */
  readonly provider: Choice | null
  /** Milliseconds. */
  readonly providerTimeout: number
  readonly webhook: { readonly url: string; readonly secrets: readonly string[] } | null
  readonly eventName: string
  readonly logLevel: LogLevel
  /** Settings that are allowed but not safe for a public service, each with what to do. */
  readonly warnings: readonly string[]
}

/** Either a configuration, or everything that is wrong with the settings, one sentence each. */
export type ConfigResult = { readonly config: Config } | { readonly mistakes: readonly string[] }

type Environment = Readonly<Record<string, string | undefined>>
type Value<Name extends SettingName> = NonNullable<ReturnType<(typeof settings)[Name]['read']>>

/**
 * The process's environment over the file `.env` of the working directory, where there is one.
 *
 * @throws {CannotOpen} when that file cannot be read.
 */
export function environment(): { env: Environment; unknown: readonly string[] } {
  const fromFile = readEnvFile()
  const unknown = Object.keys(fromFile).filter(name => !(name in settings) && vendorOf(name) === undefined)
  const given = Object.entries(process.env).filter(([, value]) => value !== '')
  return { env: { ...fromFile, ...Object.fromEntries(given) }, unknown }
}

function readEnvFile(): Environment {
  try {
    return parseEnv(readFileSync('.env', 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new CannotOpen(`The file .env cannot be read: ${(error as Error).message}`)
  }
}

/** Reads all settings and reports all mistakes at once, each naming its variable and what is allowed. Pure. */
export function readConfig(env: Environment): ConfigResult {
  const mistakes: string[] = []

  /** An empty value counts as unset, as compose files and shells often cannot unset one. */
  function given<Name extends SettingName>(name: Name): Value<Name> | undefined {
    const text = env[name]?.trim()
    if (text === undefined || text === '') return undefined
    const value = settings[name].read(text)
    if (value === undefined) mistakes.push(`${name} ${settings[name].allowed}`)
    return value as Value<Name> | undefined
  }
  function setting<Name extends SettingName>(name: Name): Value<Name> {
    const setting: { default?: string; read(text: string): unknown } = settings[name]
    return given(name) ?? (setting.read(setting.default ?? '') as Value<Name>)
  }

  const certFile = given('TLS_CERT_FILE')
  const keyFile = given('TLS_KEY_FILE')
  if ((certFile === undefined) !== (keyFile === undefined)) {
    const missing = certFile === undefined ? 'TLS_CERT_FILE' : 'TLS_KEY_FILE'
    mistakes.push(`${missing} is missing: HTTPS needs both TLS_CERT_FILE and TLS_KEY_FILE`)
  }
  const tls = certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : null

  const baseUrl = given('BASE_URL') ?? null
  if (tls !== null && baseUrl?.startsWith('http:')) {
    mistakes.push('BASE_URL must start with https: when TLS_CERT_FILE and TLS_KEY_FILE are set')
  }
  const secure = baseUrl === null ? tls !== null : baseUrl.startsWith('https:')
  const cookieName = given('COOKIE_NAME') ?? (secure ? '__Host-waitlist' : 'waitlist')
  const sameSite = setting('COOKIE_SAME_SITE')
  // rfc6265bis §4.1.3: browsers drop such a cookie unless it is Secure; §5.7 says the same of SameSite=None.
  if (!secure && /^__(Host|Secure|Http|Host-Http)-/i.test(cookieName)) {
    mistakes.push('COOKIE_NAME must not start with __Host- or __Secure- unless BASE_URL is https')
  }
  if (!secure && sameSite === 'none') mistakes.push('COOKIE_SAME_SITE must not be none unless BASE_URL is https')

  const vendor = setting('PROVIDER')
  const provider = vendor === 'none' ? null : readProvider(vendor, env, setting('EVENT_NAME'), mistakes)

  const webhookUrl = given('WEBHOOK_URL')
  const secrets = given('WEBHOOK_SECRET')
  if (webhookUrl !== undefined && secrets === undefined && !env.WEBHOOK_SECRET?.trim()) {
    mistakes.push(
      'WEBHOOK_SECRET is missing: what is sent to WEBHOOK_URL is signed (docs/events.md says how to make one)',
    )
  }
  const webhook = webhookUrl !== undefined && secrets !== undefined ? { url: webhookUrl, secrets } : null

  const config: Config = {
    server: {
      host: setting('HOST'),
      port: setting('PORT'),
      baseUrl,
      tls,
      hstsIncludeSubdomains: setting('HSTS_INCLUDE_SUBDOMAINS'),
      client: { proxies: given('TRUST_PROXY') ?? { kind: 'none' }, ipv6Prefix: setting('RATE_LIMIT_IPV6_PREFIX') },
      quota: { limit: setting('RATE_LIMIT'), window: setting('RATE_LIMIT_WINDOW') },
      publishQuota: setting('RATE_LIMIT_FIELDS'),
      corsOrigins: given('CORS_ORIGINS') ?? [],
      cookie: { name: cookieName, sameSite, maxAge: setting('COOKIE_MAX_AGE'), secure },
      service: setting('SERVICE_NAME'),
      description: setting('SERVICE_DESCRIPTION'),
      shutdownDelay: setting('SHUTDOWN_DELAY'),
    },
    store: setting('DATABASE_URL'),
    storeConnections: setting('DATABASE_CONNECTIONS'),
    redis: given('REDIS_URL') ?? null,
    provider,
    providerTimeout: setting('PROVIDER_TIMEOUT'),
    webhook,
    eventName: setting('EVENT_NAME'),
    logLevel: setting('LOG_LEVEL'),
    warnings: [],
  }
  return mistakes.length > 0 ? { mistakes } : { config: { ...config, warnings: warningsFor(config, env) } }
}

function warningsFor({ server, store, provider, webhook }: Config, env: Environment): readonly string[] {
  const warnings = [...providerWarnings(provider?.vendor ?? null, env)]
  if (webhook?.url.startsWith('http:') && !isPrivate(webhook.url)) {
    warnings.push('WEBHOOK_URL is plain HTTP to a public address: names and addresses travel in the clear. Use https.')
  }
  if (server.tls === null && !server.cookie.secure) {
    warnings.push(
      'Signups travel in the clear: this is plain HTTP, meant for development. For the public, set TLS_CERT_FILE and ' +
        'TLS_KEY_FILE, or put a TLS proxy in front and set BASE_URL to its https address.',
    )
  }
  if (server.tls === null && server.cookie.secure && server.client.proxies.kind === 'none') {
    warnings.push(
      'BASE_URL is https, but nothing is known of the TLS proxy in front: all its clients share one rate limit. ' +
        'Set TRUST_PROXY (1 for a single proxy).',
    )
  }
  if (
    server.client.proxies.kind === 'networks' &&
    server.client.proxies.networks.some(network => network.endsWith('/0'))
  ) {
    warnings.push('TRUST_PROXY trusts every address: each client can choose under which one its attempts count.')
  }
  if (server.baseUrl === null && !['localhost', '127.0.0.1', '::1'].includes(server.host)) {
    warnings.push(
      'BASE_URL is not set: links, catalog and documentation point to this machine only. Set it to the public address.',
    )
  }
  if (store.kind === 'postgres' && !store.url.includes('sslmode=') && !isPrivate(store.url)) {
    warnings.push(
      'DATABASE_URL has no sslmode and a public host: names and addresses may travel in the clear. Add ' +
        '?sslmode=verify-full.',
    )
  }
  if (store.kind === 'sqlite' && store.path === ':memory:')
    warnings.push('DATABASE_URL is sqlite::memory: every signup is lost when the process ends.')
  return warnings
}
