/** Where the list is kept. `url` contains the password. */
export type StoreLocation =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string }

/** As libpq knows them (https://postgresql.org/docs/current/libpq-ssl.html); those that protect from nobody are refused. */
const sslModes = [null, 'disable', 'require', 'verify-ca', 'verify-full']

/** The supported parameters of libpq. Others are refused, so that a typing error does not go unnoticed. */
const parameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'application_name', 'options']

/** Reads `sqlite:<path>` or `postgres://user:password@host:port/database?sslmode=…`; undefined if the text is neither. */
export function readStoreLocation(text: string): StoreLocation | undefined {
  const path = /^sqlite:(?!\/\/[^/]|:memory:)(.+)$/.exec(text)?.[1]
  if (path !== undefined) return { kind: 'sqlite', path }
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, pathname, searchParams, hash } = new URL(text)
  const whole = /^[^,]+$/.test(hostname) && /^\/[^/]+$/.test(pathname) && hash === ''
  const known = [...searchParams.keys()].every(name => parameters.includes(name))
  const secured = sslModes.includes(searchParams.get('sslmode'))
  if (!/^postgres(?:ql)?:$/.test(protocol) || !whole || !known || !secured) return undefined
  return { kind: 'postgres', url: text }
}

/** For logs and messages: without user and password. */
export function storeName(place: StoreLocation): string {
  if (place.kind === 'sqlite') return `sqlite:${place.path}`
  const { host, pathname } = new URL(place.url)
  return `postgres://${host}${pathname}`
}
