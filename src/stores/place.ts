/** Where the list is kept. `path` may be `:memory:`; `url` has the password. */
export type StorePlace =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string }

/** As libpq knows them (https://postgresql.org/docs/current/libpq-ssl.html). */
const sslModes = [null, 'disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

/** Parameters of libpq's that mean something here; a typing error in one of them would go unnoticed. */
const parameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'application_name', 'options']

/** Reads `sqlite:<path>` or `postgres://user:password@host:port/database?sslmode=…`; undefined: the text is neither. */
export function readStorePlace(text: string): StorePlace | undefined {
  const path = /^sqlite:(?!\/\/[^/])(.+)$/.exec(text)?.[1]
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
export function storeName(place: StorePlace): string {
  if (place.kind === 'sqlite') return `sqlite:${place.path}`
  const { host, pathname } = new URL(place.url)
  return `postgres://${host}${pathname}`
}
