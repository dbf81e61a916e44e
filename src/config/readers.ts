import { isIP } from 'node:net'
import { httpUrl } from '../http-client/addresses.ts'

/** How a text is read. */
export interface Reader<Value> {
  /** What is allowed: the end of a sentence that begins with the setting's name. */
  readonly allowed: string
  /** The value; undefined if the text is not allowed. */
  read(text: string): Value | undefined
}

/** One environment variable. */
export interface Setting<Value> extends Reader<Value> {
  readonly meaning: string
  /** Where to find its value. */
  readonly where?: string | undefined
  readonly required?: boolean
  /** The text that is used while it is unset, as the documentation shows it. */
  readonly default?: string
}

export type SettingsTable = Readonly<Record<string, Setting<unknown>>>
export type Environment = Readonly<Record<string, string | undefined>>

type ValueOf<S> = S extends Reader<infer Value> ? NonNullable<Value> : never
type Certain = { readonly required: true } | { readonly default: string }

/** The values of a table. Those that are neither required nor have a default may be missing. */
export type ValuesOf<Table> = {
  readonly [Name in keyof Table as Table[Name] extends Certain ? Name : never]: ValueOf<Table[Name]>
} & {
  readonly [Name in keyof Table as Table[Name] extends Certain ? never : Name]?: ValueOf<Table[Name]> | undefined
}

export const required = <Value>(reader: Reader<Value>, meaning: string, where: string) => ({
  ...reader,
  meaning,
  where,
  required: true as const,
})

export const optional = <Value>(reader: Reader<Value>, meaning: string, where?: string) => ({
  ...reader,
  meaning,
  where,
})

export const withDefault = <Value>(reader: Reader<Value>, standard: string, meaning: string, where?: string) => ({
  ...optional(reader, meaning, where),
  default: standard,
})

/** An empty value counts as unset: Compose files and shells often cannot unset a variable. */
export const given = (env: Environment, name: string): string | undefined => env[name]?.trim() || undefined

/** The secrets that our own documents show. */
const samples = [
  '0123456789abcdef',
  'whsec_bm90IGEgc2VjcmV0LCBidXQgYW4gZXhhbXBsZSBrZXk=',
  'Zm9yLXRoZS1yZWFkbWUtYW5kLW5vdGhpbmctZWxzZQ',
  'the-secret-key-of-your-widget',
  'your-password',
  'XXXXXXXXXXXXXXXXXXXXXXXX',
  'aVeryLongToken',
]
/** As a whole, or in an address. */
const hasSample = (text: string): boolean => text.split(/[\s:/@]+/).some(part => samples.includes(part))

/**
 * Reads a whole table. Adds a sentence to `mistakes` for each one, which begins with the setting's name and never repeats
 * its value; the result is only valid if there was none. `requiredBy`: what needs the required settings.
 */
export function readSettings<Table extends SettingsTable>(
  table: Table,
  env: Environment,
  mistakes: string[],
  requiredBy = '',
): ValuesOf<Table> {
  const values: Record<string, unknown> = {}
  for (const [name, { meaning, where, required, default: standard, allowed, read }] of Object.entries(table)) {
    const text = given(env, name)
    const value = text === undefined ? undefined : read(text)
    const hint = where === undefined ? '' : `. ${meaning} Where to find it: ${where}`
    if (text === undefined && required) mistakes.push(`${name} is missing: ${requiredBy} needs it${hint}`)
    else if (text !== undefined && hasSample(text))
      mistakes.push(`${name} is a sample from our documents: use your own${hint}`)
    else if (text !== undefined && value === undefined) mistakes.push(`${name} ${allowed}${hint}`)
    // After a mistake, too, so that what depends on it is checked as well.
    values[name] = value ?? (standard === undefined ? undefined : read(standard))
  }
  return values as ValuesOf<Table>
}

export const whole = (minimum: number, maximum: number): Reader<number> => ({
  allowed: `must be a whole number from ${minimum} to ${maximum}`,
  read(text) {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return value >= minimum && value <= maximum ? value : undefined
  },
})

/** Milliseconds of each unit. */
const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Those of a duration such as 500ms, 8s, 10m, 1h or 30d; NaN for anything else. */
function milliseconds(text: string): number {
  const [, count, unit] = /^(\d{1,9})(ms|[smhd])$/.exec(text) ?? []
  return Number(count) * UNITS[unit as keyof typeof UNITS]
}

/** Read as milliseconds; zero needs no unit. */
export const duration = (minimum: string, maximum: string): Reader<number> => ({
  allowed: `must be a duration from ${minimum} to ${maximum}, written with its unit (${Object.keys(UNITS).join(', ')})`,
  read(text) {
    const value = text === '0' ? 0 : milliseconds(text)
    return value >= milliseconds(minimum) && value <= milliseconds(maximum) ? value : undefined
  },
})

/** So many within a time, which is read as milliseconds: 20/10m. */
export function countPerTime(minimum: number, standard: string): Reader<{ count: number; time: number }> {
  const [counts, times] = [whole(minimum, 1_000_000), duration('1s', '1d')]
  return {
    allowed: `${counts.allowed}, and after a slash a time from 1s to 1d, such as 20/10m`,
    read(text) {
      const [before = '', after = standard, ...others] = text.split('/')
      const [count, time] = [counts.read(before), times.read(after)]
      return count === undefined || time === undefined || others.length > 0 ? undefined : { count, time }
    },
  }
}

export const oneOf = <const Choice extends string>(...choices: Choice[]): Reader<Choice> => ({
  allowed: `must be one of ${choices.join(', ')}`,
  read: text => choices.find(choice => choice === text),
})

export const yesOrNo: Reader<boolean> = {
  allowed: 'must be true or false',
  read: text => ({ true: true, false: false })[text],
}

/** A text of one shape, which `allowed` describes. */
export const shaped = (shape: RegExp, allowed: string): Reader<string> => ({
  allowed,
  read: text => (shape.test(text) ? text : undefined),
})

export const line = (maximum: number): Reader<string> =>
  shaped(new RegExp(`^\\P{Cc}{0,${maximum}}$`, 'u'), `must be one line of at most ${maximum} characters`)

/** Of a file or a folder, which is read later. */
export const path = shaped(/./s, 'must be a path')

/** A key or an identifier. Only visible ASCII, since it becomes part of a header field or a path. */
export const word = shaped(/^[\x21-\x7E]{1,500}$/, 'must be one word of at most 500 visible ASCII characters')

/** Where to listen. A name is looked up later, so what cannot be one is refused here. */
export const host: Reader<string> = {
  allowed: 'must be a host name or an address, such as localhost, 0.0.0.0 or ::, without scheme and port',
  read: text => (isIP(text) !== 0 || /^(?!\d+$)[^\s:/@?#[\]\p{Cc}]{1,255}$/u.test(text) ? text : undefined),
}

/** A host as above, a colon and a port; an IPv6 address is bracketed, and port 0 takes any free one. */
export const hostAndPort: Reader<{ readonly host: string; readonly port: number }> = {
  allowed: 'must be a host and a port, such as localhost:9090, 0.0.0.0:9090 or [::1]:9090',
  read(text) {
    const [, bracketed, name, digits] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? []
    const [address, port] = [host.read(bracketed ?? name ?? ''), Number(digits)]
    return address !== undefined && port <= 65_535 ? { host: address, port } : undefined
  },
}

/** Scheme, host and port, as a browser writes an origin. */
export const origin: Reader<string> = {
  allowed: 'must be an http or https origin without a path, such as https://waitlist.example.com',
  read(text) {
    const url = httpUrl(text)
    return url?.pathname === '/' && !url.search ? url.origin : undefined
  },
}

/** The address of an API, which may have a path. Without a slash at the end. */
export const address: Reader<string> = {
  allowed: 'must be an http or https address such as https://api.example.com, without user, query or fragment',
  read(text) {
    const url = httpUrl(text)
    return url === undefined || url.search ? undefined : (url.origin + url.pathname).replace(/\/+$/, '')
  },
}

/** The items between commas, if each is allowed. */
export function listOf<Value>({ read }: Pick<Reader<Value>, 'read'>, text: string, maximum = Infinity) {
  const values = text.split(',').map(item => read(item.trim()))
  return values.length <= maximum && values.every(value => value !== undefined) ? values : undefined
}
