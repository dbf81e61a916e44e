import { isIP } from 'node:net'
import { httpUrl } from '../http-client/addresses.ts'

/** How a text is read. */
export interface Kind<Value> {
  /** What is allowed: the end of a sentence that begins with the setting's name. */
  readonly allowed: string
  /** The value; undefined if the text is not allowed. */
  read(text: string): Value | undefined
}

/** One environment variable. */
export interface Setting<Value> extends Kind<Value> {
  readonly meaning: string
  /** Where to find its value. */
  readonly where?: string
  readonly required?: boolean
  /** The text that is used while it is unset, as the documentation shows it. */
  readonly default?: string
  /** The same in words, if it depends on other settings. */
  readonly unset?: string
}

export type SettingsTable = Readonly<Record<string, Setting<unknown>>>
export type Environment = Readonly<Record<string, string | undefined>>

type ValueOf<S> = S extends Kind<infer Value> ? NonNullable<Value> : never

type Certain = { readonly required: true } | { readonly default: string }

/** The values of a table. Those that are neither required nor have a default may be missing. */
export type ValuesOf<Table> = {
  readonly [Name in keyof Table as Table[Name] extends Certain ? Name : never]: ValueOf<Table[Name]>
} & {
  readonly [Name in keyof Table as Table[Name] extends Certain ? never : Name]?: ValueOf<Table[Name]> | undefined
}

export interface Reading<Table> {
  /** Only valid if there are no mistakes. */
  readonly values: ValuesOf<Table>
  /** One sentence each, which begins with the setting's name and never repeats its value. */
  readonly mistakes: readonly string[]
}

/** The secrets that our own documents show: no longer secret, or of no use. */
const SAMPLES = [
  '0123456789abcdef',
  'whsec_bm90IGEgc2VjcmV0LCBidXQgYW4gZXhhbXBsZSBrZXk=',
  'Zm9yLXRoZS1yZWFkbWUtYW5kLW5vdGhpbmctZWxzZQ',
  'the-secret-key-of-your-widget',
  'your-password',
  'XXXXXXXXXXXXXXXXXXXXXXXX',
  'aVeryLongToken',
]

/** The whole value, or a part of an address. */
const isSample = (text: string): boolean => text.split(/[\s:/@]+/).some(part => SAMPLES.includes(part))

/** Compose files and shells often cannot unset a variable, so an empty value counts as unset. */
export const given = (env: Environment, name: string): string | undefined => env[name]?.trim() || undefined

/** Reads a whole table, and reports all mistakes at once. `asker`: what needs the required settings. */
export function readSettings<Table extends SettingsTable>(table: Table, env: Environment, asker = ''): Reading<Table> {
  const values: Record<string, unknown> = {}
  const mistakes: string[] = []
  for (const [name, setting] of Object.entries(table)) {
    const text = given(env, name)
    const { meaning, where, default: unset } = setting
    const hint = where === undefined ? '' : `. ${meaning} Where to find it: ${where}`
    if (text === undefined && setting.required) mistakes.push(`${name} is missing: ${asker} needs it${hint}`)
    let value = text === undefined ? undefined : setting.read(text)
    if (text !== undefined && isSample(text))
      mistakes.push(`${name} is a sample from our documents: use your own${hint}`)
    else if (text !== undefined && value === undefined) mistakes.push(`${name} ${setting.allowed}${hint}`)
    // After a mistake, too, so that what depends on it is checked as well.
    if (unset !== undefined) value ??= setting.read(unset)
    if (value !== undefined) values[name] = value
  }
  return { values: values as ValuesOf<Table>, mistakes }
}

export const required = <Value>(kind: Kind<Value>, meaning: string, where: string) => ({
  ...kind,
  meaning,
  where,
  required: true as const,
})

export const optional = <Value>(kind: Kind<Value>, meaning: string, where = 'Your choice.') => ({
  ...kind,
  meaning,
  where,
})

export const withDefault = <Value>(kind: Kind<Value>, standard: string, meaning: string, where?: string) => ({
  ...optional(kind, meaning, where),
  default: standard,
})

export const whole = (minimum: number, maximum: number): Kind<number> => ({
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

/** Read as milliseconds. The unit of the minimum is the smallest that counts; zero needs none. */
export function duration(minimum: string, maximum: string): Kind<number> {
  const units = Object.keys(UNITS).slice(Object.keys(UNITS).findIndex(unit => minimum.endsWith(unit)))
  const [from, to, step] = [milliseconds(minimum), milliseconds(maximum), milliseconds(`1${units[0]}`)]
  return {
    allowed: `must be a duration from ${minimum} to ${maximum}, written with its unit (${units.join(', ')})`,
    read(text) {
      const value = text === '0' ? 0 : milliseconds(text)
      return value >= from && value <= to && value % step === 0 ? value : undefined
    },
  }
}

/** So many within a time of 1 second to 1 day, which is in milliseconds: 20/10m. */
export function countPerTime(
  minimum: number,
  maximum: number,
  standard: string,
): Kind<{ count: number; time: number }> {
  const [counts, times] = [whole(minimum, maximum), duration('1s', '1d')]
  return {
    allowed: `must be a whole number from ${minimum} to ${maximum}, and after a slash a time from 1s to 1d, such as 20/10m`,
    read(text) {
      const [before = '', after = standard, ...others] = text.split('/')
      const [count, time] = [counts.read(before), times.read(after)]
      return count === undefined || time === undefined || others.length > 0 ? undefined : { count, time }
    },
  }
}

export const oneOf = <const Choice extends string>(...choices: Choice[]): Kind<Choice> => ({
  allowed: `must be ${choices.length === 1 ? choices[0] : `one of ${choices.join(', ')}`}`,
  read: text => choices.find(choice => choice === text),
})

export const yesOrNo: Kind<boolean> = {
  allowed: 'must be true or false',
  read: text => ({ true: true, false: false })[text],
}

export const line = (maximum: number): Kind<string> => ({
  allowed: `must be one line of at most ${maximum} characters`,
  read: text => (text.length <= maximum && !/\p{Cc}/u.test(text) ? text : undefined),
})

export const file: Kind<string> = {
  allowed: 'must be the path of a file',
  read: text => (text.startsWith('-----BEGIN ') ? undefined : text),
}

export const folder: Kind<string> = { ...file, allowed: 'must be the path of a folder' }

/** Where to listen. A name is looked up later, so what cannot be one is refused here. */
export const host: Kind<string> = {
  allowed: 'must be a host name or an address, such as localhost, 0.0.0.0 or ::, without scheme and port',
  read: text => (isIP(text) !== 0 || /^(?!\d+$)[^\s:/@?#[\]\p{Cc}]{1,255}$/u.test(text) ? text : undefined),
}

/** A host as above, a colon and a port; an IPv6 address is bracketed, and port 0 takes any free one. */
export const hostAndPort: Kind<{ readonly host: string; readonly port: number }> = {
  allowed: 'must be a host and a port, such as localhost:9090, 0.0.0.0:9090 or [::1]:9090',
  read(text) {
    const [, bracketed, name, digits] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? []
    const [address, port] = [host.read(bracketed ?? name ?? ''), Number(digits)]
    return address !== undefined && port <= 65_535 ? { host: address, port } : undefined
  },
}

/** A key or an identifier. Only visible ASCII, since it becomes part of a header field or a path. */
export const word: Kind<string> = {
  allowed: 'must be one word of at most 500 visible ASCII characters',
  read: text => (/^[\x21-\x7E]{1,500}$/.test(text) ? text : undefined),
}

/** A text of one shape, which `allowed` describes. */
export const shaped = (shape: RegExp, allowed: string): Kind<string> => ({
  allowed,
  read: text => (shape.test(text) ? text : undefined),
})

export const number: Kind<number> = { ...whole(1, 10 ** 15 - 1), allowed: 'must be a whole number above 0' }

export const words: Kind<readonly string[]> = {
  allowed: 'must be a list of at most 20 words, separated by commas',
  read: text => listOf(word, text, 20),
}

/** What people call something in a tool, such as a tag. */
export const names: Kind<readonly string[]> = {
  allowed: 'must be a list of at most 20 names of at most 100 characters, separated by commas',
  read: text => listOf({ read: item => line(100).read(item) || undefined }, text, 20),
}

export const numbers: Kind<readonly number[]> = {
  allowed: 'must be a list of at most 20 whole numbers above 0, separated by commas',
  read: text => listOf(number, text, 20),
}

/** Values by name, which may have spaces. Neither contains a comma. */
export const assignments: Kind<Readonly<Record<string, string>>> = {
  allowed: 'must be a list of at most 20 name=value with different names, separated by commas',
  read(text) {
    const all = listOf(
      { read: item => /^(?!__proto__=)([^=\p{Cc}]{1,100}(?<!\s))=(\P{Cc}{1,200})$/u.exec(item)?.slice(1) },
      text,
      20,
    )
    const values: Record<string, string> | undefined = all && Object.fromEntries(all)
    return Object.keys(values ?? {}).length === all?.length ? values : undefined
  },
}

/** Scheme, host and port, as a browser writes an origin. */
export const origin: Kind<string> = {
  allowed: 'must be an http or https origin without a path, such as https://waitlist.example.com',
  read(text) {
    const url = httpUrl(text)
    return url?.pathname === '/' && !url.search ? url.origin : undefined
  },
}

/** The address of an API, which may have a path. Without a slash at the end. */
export const address: Kind<string> = {
  allowed: 'must be an http or https address such as https://api.example.com, without user, query or fragment',
  read(text) {
    const url = httpUrl(text)
    return url === undefined || url.search ? undefined : (url.origin + url.pathname).replace(/\/+$/, '')
  },
}

/** The items between commas, if each is allowed. */
export function listOf<Value>({ read }: Pick<Kind<Value>, 'read'>, text: string, maximum = Infinity) {
  const values = text.split(',').map(item => read(item.trim()))
  return values.length <= maximum && values.every(value => value !== undefined) ? values : undefined
}
