/** Templates of mails, and the names that strangers chose and templates repeat. */

export type Values = Readonly<Record<string, string | undefined>>

/** A word in braces, however it was meant: `{{name}}`, `{ name }`, `{first_name}`. The braces of style sheets hold more. */
const PLACEHOLDER_LIKE = /\{{1,2}[ \t]{0,9}[\w.-]{1,99}[ \t]{0,9}\}{1,2}/g

/** The first thing in a template that looks like a placeholder and is not one of `known`. */
export const unknownPlaceholder = (template: string, known: readonly string[]): string | undefined =>
  template.match(PLACEHOLDER_LIKE)?.find(found => !known.some(name => found === `{${name}}`))

/** Fills in a template in one pass, so braces in a value stay as they are. What has no value stays, too. */
export const render = (template: string, values: Values, encode: (value: string) => string = text => text): string =>
  template.replaceAll(/\{([a-z]+)\}/g, (found, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    return value === undefined ? found : encode(value)
  })

/** One line, without the characters that would show the rest backwards. */
const oneLine = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/\p{Bidi_Control}/gu, '')
    .trim()

/** What every link, address and mention needs, and an encoded word (RFC 2047), which mail programs decode. */
const LINK_CHARS = /[.:/@](?=\S)|=(?=\?)/g

/** Text of others on one line, of which no program makes a link or a mention. `joiner` is an invisible character. */
export const defuseLinks = (text: string, joiner: string): string => oneLine(text).replaceAll(LINK_CHARS, `$&${joiner}`)

export const WORD_JOINER = '\u2060'
export const ZERO_WIDTH_SPACE = '\u200B'
