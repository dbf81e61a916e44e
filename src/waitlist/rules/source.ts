import { type Source, sourceParameters } from './contact.ts'
import { CONTROL } from './signup.ts'

/** The rules for a source. `parseSource` is the only maker of one, but a signup never fails because of its source. */

/** Code points of each parameter that are kept. */
export const PARAMETER_MAX = 100

const controlCharacters = new RegExp(`[${CONTROL}]+`, 'g')

/**
 * Reads a source from the query of a URL, without its `?`, decoded like a form (application/x-www-form-urlencoded; bytes
 * that are not UTF-8 become U+FFFD). Control characters and line separators are removed, then white space at both ends;
 * what is longer than `PARAMETER_MAX` is cut. The first of a repeated parameter counts. Undefined: nothing is left.
 */
export function parseSource(query: string): Source | undefined {
  if (query === '') return undefined
  const given = new URLSearchParams(query)
  const source: { -readonly [Parameter in keyof Source]: Source[Parameter] } = {}
  let isKnown = false
  for (const parameter of sourceParameters) {
    const value = cleaned(given.get(parameter) ?? '')
    if (value === '') continue
    source[parameter] = value
    isKnown = true
  }
  return isKnown ? source : undefined
}

function cleaned(value: string): string {
  const text = value.replace(controlCharacters, '').trim()
  if (text.length <= PARAMETER_MAX) return text
  return [...text].slice(0, PARAMETER_MAX).join('').trimEnd()
}
