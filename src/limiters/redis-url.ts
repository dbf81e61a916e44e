/** Paths of PEM files. Without `ca`: the authorities that Node trusts. `cert` and `key`: both or neither. */
export interface RedisTls {
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
}

/** A server of Redis or Valkey, and how to connect. `username` is empty for the default user, `password` if there is none. */
export interface RedisLocation {
  /** An IPv6 address has no brackets here. */
  readonly host: string
  readonly port: number
  readonly db: number
  readonly username: string
  readonly password: string
  /** Null: without TLS. */
  readonly tls: RedisTls | null
}

/** The end of a sentence that begins with the setting's name. */
export const redisUrlAllowed =
  'must be the address of one server, redis://user:password@host:port/db, or rediss:// with TLS; ' +
  'clusters and sentinels are not supported'

/**
 * Reads `redis[s]://[[user]:password@]host[:6379][/db]`; undefined if the text is not that. With TLS, the parameters
 * `cacert`, `cert` and `key` name files, like the options of redis-cli. Special characters are percent-encoded.
 */
export function readRedisUrl(text: string): RedisLocation | undefined {
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, port, username, password, pathname, searchParams, hash } = new URL(text)
  const isServer = /^rediss?:$/.test(protocol) && /^(?:\[.+\]|[\w.-]+)$/.test(hostname) && port !== '0' && hash === ''
  const db = /^\/?(\d{0,5})$/.exec(pathname)?.[1]
  // A name alone would leave unclear which of the two it is.
  const isUser = username === '' || password !== ''
  const tls = protocol === 'rediss:' ? readTls(searchParams) : searchParams.size === 0 ? null : undefined
  if (!isServer || db === undefined || !isUser || tls === undefined) return undefined
  try {
    return {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || 6379),
      db: Number(db),
      username: decodeURIComponent(username),
      password: decodeURIComponent(password),
      tls,
    }
  } catch {
    return undefined
  }
}

function readTls(parameters: URLSearchParams): RedisTls | undefined {
  const { cacert: ca, cert, key, ...unknown } = Object.fromEntries(parameters)
  const files = [ca, cert, key].filter(Boolean)
  const isClear = Object.keys(unknown).length === 0 && parameters.size === files.length
  return isClear && (cert === undefined) === (key === undefined) ? { ca, cert, key } : undefined
}

/** The URL for the log, without user, password and files. */
export function nameOf({ host, port, db, tls }: RedisLocation): string {
  return `${tls === null ? 'redis' : 'rediss'}://${host.includes(':') ? `[${host}]` : host}:${port}/${db}`
}
