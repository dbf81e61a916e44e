import { type Log, OperatorError } from '../config/operator.ts'
import { type Database, StoreUnavailable } from './database.ts'

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

/**
 * Opens the database of a service. Only the engine that is used is loaded.
 *
 * @throws {OperatorError} when it cannot be used as it is.
 */
export async function openDatabase(location: StoreLocation, log: Log, clock?: () => number): Promise<Database> {
  if (location.kind === 'sqlite') {
    const { sqliteDatabase } = await import('./sqlite/database.ts')
    return sqliteDatabase({ path: location.path, log, ...(clock && { clock }) })
  }
  const { postgresDatabase } = await import('./postgres/open.ts')
  return postgresDatabase({ url: location.url, log, clock })
}

/**
 * Opens the database for as long as a command uses it, beside services or without one. `make`: if there is none, it is made.
 *
 * @throws {OperatorError} when it cannot be used as it is.
 */
export async function withDatabase<T>(
  location: StoreLocation,
  use: (database: Database) => Promise<T>,
  options: { readonly make?: boolean } = {},
): Promise<T> {
  const database =
    location.kind === 'sqlite'
      ? (await import('./sqlite/database.ts')).sqliteForCommand(location.path, options)
      : await (await import('./postgres/open.ts')).postgresForCommand(location.url, options)
  try {
    return await use(database)
  } catch (error) {
    throw error instanceof StoreUnavailable
      ? new OperatorError(`${database.name} cannot be used: ${error.message}`)
      : error
  } finally {
    await database.close()
  }
}
