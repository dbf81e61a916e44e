import type { EventKind } from '../signup/contact.ts'

/** What a template may name, by the event that its mail tells of. Each is filled in where it stands in braces: `{name}`. */
export const placeholders = {
  joined: ['name', 'email', 'service', 'unsubscribe'],
  invited: ['name', 'email', 'service', 'code', 'link', 'unsubscribe'],
  confirmation: ['name', 'email', 'service', 'link', 'unsubscribe'],
} as const satisfies Readonly<Record<EventKind, readonly string[]>>

type Placeholder = (typeof placeholders)[EventKind][number]
/** Those that are addresses, which a subject has no place for. */
export const isLink = (name: string): name is 'link' | 'unsubscribe' => name === 'link' || name === 'unsubscribe'

export type Values = Readonly<Partial<Record<Placeholder, string | undefined>>>

/** A word in braces, however it was meant: `{{name}}`, `{ name }`, `{first_name}`. The braces of style sheets hold more. */
const LIKE_ONE = /\{{1,2}[ \t]{0,9}[\w.-]{1,99}[ \t]{0,9}\}{1,2}/g

/** The first thing in a template that looks like a placeholder and is none. */
export const unknownPlaceholder = (template: string, known: readonly string[]): string | undefined =>
  template.match(LIKE_ONE)?.find(found => !known.some(name => found === `{${name}}`))

export const listed = (known: readonly string[]): string => known.map(name => `{${name}}`).join(', ')

/**
 * In one pass, so that braces in a name stay what they are. `written`: how a value is written in this kind of text. What has
 * no value stays as it is.
 */
export const filled = (template: string, values: Values, written: (value: string) => string): string =>
  template.replaceAll(/\{([a-z]+)\}/g, (found, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name as Placeholder] : undefined
    return value === undefined ? found : written(value)
  })

/**
 * For a header field: one line that is shown as it stands. Mail programs decode what looks like an encoded word (RFC 2047),
 * in quotes too, and some decode twice; with a word joiner (U+2060) in it, nothing does.
 */
export const inHeader = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').replaceAll('=?', '=\u2060?')
