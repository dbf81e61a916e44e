import { httpUrl } from '../outbound/http-url.ts'

/** One environment variable of a vendor. */
export interface VendorSetting<Value> {
  readonly meaning: string
  /** Where the owner finds its value in the vendor's product. */
  readonly where: string
  readonly required: boolean
  /** As it is written in the documentation; absent: the setting may stay unset. */
  readonly default?: string
  /** What is allowed, as the end of a sentence that begins with the setting's name. */
  readonly allowed: string
  /** The value, or undefined when the text is not allowed. */
  read(text: string): Value | undefined
}

interface Kind<Value> {
  readonly allowed: string
  read(text: string): Value | undefined
}

/** A key or an identifier. Visible ASCII alone: it becomes part of a header field or of a path. */
export const word: Kind<string> = {
  allowed: 'must be one word of at most 500 visible ASCII characters',
  read: text => (/^[\x21-\x7E]{1,500}$/.test(text) ? text : undefined),
}

export const number: Kind<number> = {
  allowed: 'must be a whole number above 0',
  read: text => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined),
}

export const words: Kind<readonly string[]> = {
  allowed: 'must be a list of at most 20 words, separated by commas',
  read: text => listOf(word, text),
}

export const numbers: Kind<readonly number[]> = {
  allowed: 'must be a list of at most 20 whole numbers above 0, separated by commas',
  read: text => listOf(number, text),
}

export const yesOrNo: Kind<boolean> = {
  allowed: 'must be true or false',
  read: text => ({ true: true, false: false })[text],
}

export const assignment: Kind<{ readonly name: string; readonly value: string }> = {
  allowed: 'must be name=value',
  read(text) {
    const [, name, value] = /^([a-z][a-z0-9_]{0,99})=(.{1,200})$/.exec(text) ?? []
    return name === undefined || value === undefined ? undefined : { name, value }
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

function listOf<Value>({ read }: Kind<Value>, text: string): readonly Value[] | undefined {
  const values = text.split(',').map(item => read(item.trim()))
  return values.length <= 20 && values.every(value => value !== undefined) ? (values as Value[]) : undefined
}

export const required = <Value>(kind: Kind<Value>, meaning: string, where: string) => ({
  ...{ meaning, where, required: true as const },
  ...kind,
})

export const optional = <Value>(kind: Kind<Value>, meaning: string, where: string) => ({
  ...{ meaning, where, required: false as const },
  ...kind,
})

export const withDefault = <Value>(kind: Kind<Value>, value: string, meaning: string, where: string) => ({
  ...optional(kind, meaning, where),
  default: value,
})
