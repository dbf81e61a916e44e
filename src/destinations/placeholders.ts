/** What a template may name. Each is filled in where it stands in braces: `{name}`. */
const PLACEHOLDERS = ['name', 'email', 'service'] as const

export type Values = Readonly<Record<(typeof PLACEHOLDERS)[number], string>>

const placeholder = new RegExp(`\\{(${PLACEHOLDERS.join('|')})\\}`, 'g')
/** A word in braces, however it was meant: `{{name}}`, `{ name }`, `{first_name}`. The braces of style sheets hold more. */
const LIKE_ONE = /\{{1,2}[ \t]{0,9}[\w.-]{1,99}[ \t]{0,9}\}{1,2}/g

/** The first thing in a template that looks like a placeholder and is none. */
export const unknownPlaceholder = (template: string): string | undefined =>
  template.match(LIKE_ONE)?.find(found => !PLACEHOLDERS.some(name => found === `{${name}}`))

export const placeholdersAllowed = PLACEHOLDERS.map(name => `{${name}}`).join(', ')

/** In one pass, so that braces in a name stay what they are. `written`: how a value is written in this kind of text. */
export const filled = (template: string, values: Values, written: (value: string) => string): string =>
  template.replaceAll(placeholder, (_, name: keyof Values) => written(values[name]))

/**
 * For a header field: one line that is shown as it stands. Mail programs decode what looks like an encoded word (RFC 2047),
 * in quotes too, and some decode twice; with a word joiner (U+2060) in it, nothing does.
 */
export const inHeader = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').replaceAll('=?', '=\u2060?')
