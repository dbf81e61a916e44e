import { EMAIL_MAX, isEmail, type Signup, type Source, sourceParameters } from './contact.ts'

/**
 * The rules for a signup, as plain code. `parseSignup` is the only maker of a `Signup`, so every `Signup` can be trusted.
 *
 * `discovery/schemas.ts` publishes the same rules as a JSON Schema; a property test shows that the two agree.
 */

/** Why a body is not a signup: one sentence that can be shown to the visitor and never repeats what was sent. */
export interface Problem {
  readonly problem: string
}

export const NAME_MAX = 100
/** What a person may get wrong. A value that is no text is the mistake of a program. */
export const problems = {
  nameMissing: 'name is required',
  nameTooLong: `name must be at most ${NAME_MAX} characters long`,
  nameControl: 'name must not contain control characters',
  nameMalformed: 'name must be well-formed Unicode text',
  emailMissing: 'email is required',
  emailTooLong: `email must be at most ${EMAIL_MAX} characters long`,
  emailInvalid: 'email must be a valid email address',
} as const

/** C0 and C1 controls, line and paragraph separator (RFC 9839 §4.3), for use inside a character class. */
export const CONTROL = '\\u0000-\\u001F\\u007F-\\u009F\\u2028\\u2029'

/** What ECMAScript's `trim` removes, written out: `\s` means something else in every other regular expression engine. */
export const SPACE = '\\u0009-\\u000D\\u0020\\u00A0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000\\uFEFF'

const each = (from: number, to: number): string =>
  String.fromCodePoint(...Array.from({ length: to - from + 1 }, (_, i) => from + i))

/**
 * What shows nothing by itself: Default_Ignorable_Code_Point (UAX #44) as far as it is assigned, and the blanks U+2800,
 * U+FFF9..FFFB and U+1D159; for use inside a character class. Beyond the basic plane each stands for itself: engines share
 * no escape for them, and without the `u` flag a range of them is an error.
 */
export const INVISIBLE =
  '\\u00AD\\u034F\\u061C\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180F\\u200B-\\u200F\\u202A-\\u202E\\u2060-\\u206F\\u2800\\u3164' +
  `\\uFE00-\\uFE0F\\uFFA0\\uFFF9-\\uFFFB${each(0x1bca0, 0x1bca3)}\u{1D159}${each(0x1d173, 0x1d17a)}` +
  `\u{E0001}${each(0xe0020, 0xe007f)}${each(0xe0100, 0xe01ef)}`

const visible = new RegExp(`[^${SPACE}${INVISIBLE}]`, 'u')
const controlCharacter = new RegExp(`[${CONTROL}]`)

/**
 * Reads a signup from a decoded JSON body. Members other than `name` and `email` are ignored.
 * Only the first problem is named: name before email; for each missing, wrong type, empty, too long, malformed.
 */
export function parseSignup(body: object, source?: Source): Signup | Problem {
  const name = readText('name', member(body, 'name'), NAME_MAX)
  if (typeof name !== 'string') return name
  if (controlCharacter.test(name)) return { problem: problems.nameControl }
  if (!name.isWellFormed()) return { problem: problems.nameMalformed }

  const email = readText('email', member(body, 'email'), EMAIL_MAX)
  if (typeof email !== 'string') return email
  if (!isEmail(email)) return { problem: problems.emailInvalid }

  return (source === undefined ? { name, email } : { name, email, source }) as Signup
}

/** Own members only, so that `__proto__` or an inherited name can never supply a value. */
function member(body: object, key: string): unknown {
  return Object.hasOwn(body, key) ? (body as Record<string, unknown>)[key] : undefined
}

function readText(field: 'name' | 'email', value: unknown, max: number): string | Problem {
  const missing = { problem: problems[`${field}Missing`] }
  if (value === undefined || value === null) return missing
  if (typeof value !== 'string') return { problem: `${field} must be text` }
  const text = value.trim()
  if (!visible.test(text)) return missing
  if (longerThan(text, max)) return { problem: problems[`${field}TooLong`] }
  return text
}

/** Counts code points, as JSON Schema does. A string never has more code points than UTF-16 units. */
function longerThan(text: string, max: number): boolean {
  if (text.length <= max) return false
  if (text.length > 2 * max) return true
  return [...text].length > max
}

/** Code points of each parameter that are kept. */
const PARAMETER_MAX = 100

const controlCharacters = new RegExp(`[${CONTROL}]+`, 'g')

/**
 * Reads a source from the query of a URL, without its `?`, decoded like a form (application/x-www-form-urlencoded; bytes
 * that are not UTF-8 become U+FFFD). Control characters and line separators are removed, then white space at both ends;
 * what is longer than `PARAMETER_MAX` is cut. The first of a repeated parameter counts. Undefined: nothing is left; a
 * signup never fails because of its source.
 */
export function parseSource(query: string): Source | undefined {
  if (query === '') return undefined
  const given = new URLSearchParams(query)
  const known = sourceParameters
    .map(parameter => [parameter, cleaned(given.get(parameter) ?? '')] as const)
    .filter(([, value]) => value !== '')
  return known.length === 0 ? undefined : (Object.fromEntries(known) as Source)
}

function cleaned(value: string): string {
  const text = value.replace(controlCharacters, '').trim()
  if (text.length <= PARAMETER_MAX) return text
  return [...text].slice(0, PARAMETER_MAX).join('').trimEnd()
}
