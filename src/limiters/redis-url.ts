import { isIP } from 'node:net'

/** Where one server listens. An IPv6 address has no brackets here. */
export interface RedisNode {
  readonly host: string
  readonly port: number
}

/** `username` is null for the default user. */
export interface RedisUser {
  readonly username: string | null
  readonly password: string
}

/** Paths of PEM files. `ca` null: the authorities that Node trusts. `pair` null: no client certificate. */
export interface RedisTls {
  readonly ca: string | null
  readonly pair: { readonly cert: string; readonly key: string } | null
}

interface Access {
  readonly user: RedisUser | null
  /** Null: without TLS. */
  readonly tls: RedisTls | null
}

/** Where Redis or Valkey is, and how to connect. Each list of nodes has at least one. */
export type RedisLocation =
  | ({ readonly kind: 'single'; readonly node: RedisNode; readonly db: number } & Access)
  /** Some of its nodes; the others are found through them. */
  | ({ readonly kind: 'cluster'; readonly nodes: readonly RedisNode[] } & Access)
  | ({
      readonly kind: 'sentinel'
      readonly sentinels: readonly RedisNode[]
      /** The sentinels' name for the group of servers. */
      readonly master: string
      readonly db: number
      /** `user` is for the servers, this one for the sentinels. */
      readonly sentinelUser: RedisUser | null
    } & Access)

/** The end of a sentence that begins with the setting's name. */
export const redisUrlAllowed =
  'must be redis://user:password@host:port/db, redis+cluster://host:port,host:port or ' +
  'redis+sentinel://host:port,host:port/master/db; with TLS rediss, rediss+cluster or rediss+sentinel'

/**
 * Reads the address of a Redis or Valkey server, cluster, or group under sentinels; undefined if the text is not one.
 *
 *     redis[s]://[[user]:password@]host[:6379][/db]
 *     redis[s]+cluster://[[user]:password@]host[:6379][,host…]
 *     redis[s]+sentinel://[[user]:password@]host[:26379][,host…]/master[/db]
 *
 * The parameters `cacert`, `cert` and `key` name files, like the options of redis-cli; `sentinel-user` and
 * `sentinel-pass` are for sentinels that require them. Special characters are percent-encoded.
 */
export function readRedisUrl(text: string): RedisLocation | undefined {
  try {
    return read(text)
  } catch (error) {
    if (error instanceof Unreadable || error instanceof URIError) return undefined
    throw error
  }
}

/** The URL for the log, without users, passwords and files. */
export function nameOf(place: RedisLocation): string {
  const scheme = place.tls === null ? 'redis' : 'rediss'
  switch (place.kind) {
    case 'single':
      return `${scheme}://${list([place.node])}/${place.db}`
    case 'cluster':
      return `${scheme}+cluster://${list(place.nodes)}`
    case 'sentinel':
      return `${scheme}+sentinel://${list(place.sentinels)}/${place.master}/${place.db}`
  }
}

const list = (nodes: readonly RedisNode[]): string =>
  nodes.map(({ host, port }) => `${isIP(host) === 6 ? `[${host}]` : host}:${port}`).join(',')

class Unreadable extends Error {}

// `URL` cannot read a list of hosts. As in a URL, the last @ ends the password.
const SHAPE = /^(rediss?)(?:\+(cluster|sentinel))?:\/\/(?:([^/?]*)@)?([^/?@]+)(\/[^?]*)?(?:\?(.*))?$/i

function read(text: string): RedisLocation {
  const [, scheme, kind = 'single', userinfo, hosts, path = '', query] =
    (/[\s#]|\p{Cc}/u.test(text) ? null : SHAPE.exec(text)) ?? unreadable()
  const parameters = readQuery(query)
  const tls = scheme!.toLowerCase() === 'rediss' ? readTls(parameters) : null
  const access = { user: readUser(userinfo), tls }
  const place = readPlace(kind.toLowerCase(), hosts!.split(','), path, access, parameters)
  // Parameters that are left are unknown, or have no meaning here.
  return parameters.size === 0 ? place : unreadable()
}

function readPlace(
  kind: string,
  hosts: readonly string[],
  path: string,
  access: Access,
  parameters: Map<string, string>,
): RedisLocation {
  const [, first = '', second = '', more] = path.split('/').map(decodeURIComponent)
  if (more !== undefined) return unreadable()
  const nodes = hosts.map(host => readNode(host, kind === 'sentinel' ? 26_379 : 6_379))
  if (kind === 'sentinel') {
    // The characters that Sentinel itself allows in a name.
    if (!/^[\w.-]+$/.test(first)) return unreadable()
    const username = take(parameters, 'sentinel-user')
    const password = take(parameters, 'sentinel-pass')
    if (password === null && username !== null) return unreadable()
    const sentinelUser = password === null ? null : { username, password }
    return { kind, sentinels: nodes, master: first, db: readDb(second), sentinelUser, ...access }
  }
  if (second !== '') return unreadable()
  if (kind === 'cluster') return first === '' ? { kind, nodes, ...access } : unreadable()
  return nodes.length === 1 ? { kind: 'single', node: nodes[0]!, db: readDb(first), ...access } : unreadable()
}

function readNode(text: string, defaultPort: number): RedisNode {
  const [, v6, name, port] = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i.exec(text) ?? unreadable()
  if (v6 !== undefined && isIP(v6) !== 6) return unreadable()
  const number = Number(port ?? defaultPort)
  return number >= 1 && number <= 65_535 ? { host: v6 ?? name!, port: number } : unreadable()
}

function readDb(text: string): number {
  return /^\d{0,5}$/.test(text) ? Number(text) : unreadable()
}

function readUser(userinfo: string | undefined): RedisUser | null {
  if (userinfo === undefined) return null
  // The colon and the password are required: a name alone would leave unclear which of the two it is.
  const [, username, password] = /^([^:]*):(.+)$/.exec(userinfo) ?? unreadable()
  return { username: decodeURIComponent(username!) || null, password: decodeURIComponent(password!) }
}

function readTls(parameters: Map<string, string>): RedisTls {
  const ca = take(parameters, 'cacert')
  const cert = take(parameters, 'cert')
  const key = take(parameters, 'key')
  if (cert !== null && key !== null) return { ca, pair: { cert, key } }
  return cert === null && key === null ? { ca, pair: null } : unreadable()
}

function readQuery(query: string | undefined): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const each of query ? query.split('&') : []) {
    const [, name, value] = /^([\w-]+)=(.+)$/.exec(each) ?? unreadable()
    if (parameters.has(name!)) return unreadable()
    parameters.set(name!, decodeURIComponent(value!))
  }
  return parameters
}

function take(parameters: Map<string, string>, name: string): string | null {
  const value = parameters.get(name) ?? null
  parameters.delete(name)
  return value
}

function unreadable(): never {
  throw new Unreadable()
}
