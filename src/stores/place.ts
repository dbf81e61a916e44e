/** Where the list is kept. `path` may be `:memory:`; `url` has the password. */
export type StorePlace =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string }

/** As libpq knows them (https://postgresql.org/docs/current/libpq-ssl.html). */
const sslModes = [null, 'disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

/** Reads `sqlite:<path>` or `postgres://user:password@host:port/database?sslmode=…`; undefined: the text is neither. */
export function readStorePlace(text: string): StorePlace | undefined {
  const path = /^sqlite:(?!\/\/[^/])(.+)$/.exec(text)?.[1]
  if (path !== undefined) return { kind: 'sqlite', path }
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, pathname, searchParams, hash } = new URL(text)
  const whole = hostname !== '' && /^\/[^/]+$/.test(pathname) && hash === ''
  if (!/^postgres(?:ql)?:$/.test(protocol) || !whole || !sslModes.includes(searchParams.get('sslmode')))
    return undefined
  return { kind: 'postgres', url: text }
}

/** For logs and messages: without user and password. */
export function storeName(place: StorePlace): string {
  if (place.kind === 'sqlite') return `sqlite:${place.path}`
  const { host, pathname } = new URL(place.url)
  return `postgres://${host}${pathname}`
}
