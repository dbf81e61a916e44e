import { readFileSync } from 'node:fs'
import { OperatorError } from '../config/operator.ts'
import { translatable } from './sentences.ts'

type Sentences = Readonly<Record<keyof typeof translatable, string>>

/** Sentences by their keys, as far as they are translated. */
type Translation = Partial<Sentences>

/** A language that the form and the pages can be in. */
export interface Language {
  /** BCP 47, such as `de` or `pt-BR`. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  /** What is not translated is in English. */
  readonly sentences: Sentences
}

export interface Languages {
  /** English first. */
  readonly all: readonly Language[]
  /** The first language of this Accept-Language that we have, else English. Browsers list the most wanted first. */
  of(acceptLanguage: string | undefined): Language
}

/** `translations`: by language tag. That of `en` may replace sentences of ours. */
export function languagesOf(translations: ReadonlyMap<string, Translation>): Languages {
  const english = { ...translatable, ...translations.get('en') }
  const all = [...new Map([['en', english], ...translations])].map(([tag, translation]) => ({
    tag,
    direction: directionOf(tag),
    sentences: { ...english, ...translation },
  }))
  const longestFirst = all.toSorted((a, b) => b.tag.length - a.tag.length)
  return {
    all,
    of(acceptLanguage = '') {
      for (const item of acceptLanguage.toLowerCase().split(',')) {
        const range = `${item.split(';', 1)[0]!.trim()}-`
        const found = longestFirst.find(({ tag }) => range.startsWith(`${tag.toLowerCase()}-`))
        if (found !== undefined) return found
      }
      return all[0]!
    },
  }
}

/** TypeScript does not know the method yet. */
const directionOf = (tag: string): Language['direction'] =>
  (new Intl.Locale(tag) as Intl.Locale & { getTextInfo(): Pick<Language, 'direction'> }).getTextInfo().direction

/**
 * Reads `MESSAGES_FILE`: a JSON object with a member for each language, whose members are sentences by their keys.
 *
 * @throws {OperatorError} with a sentence for each mistake, when it cannot be used.
 */
export function readMessages(path: string): ReadonlyMap<string, Translation> {
  const mistakes: string[] = []
  const translations = new Map<string, Translation>()
  for (const [tag, translation] of Object.entries(objectIn(path))) {
    if (!TAG.test(tag)) mistakes.push(`"${tag}" is not a language such as de or pt-BR`)
    else if (!isObject(translation)) mistakes.push(`${tag} is not an object of sentences`)
    else {
      translations.set(tag, translation)
      for (const [key, sentence] of Object.entries(translation)) {
        const problem = problemWith(key, sentence)
        if (problem !== null) mistakes.push(`${tag}: "${key}" ${problem}`)
      }
    }
  }
  if (mistakes.length > 0) throw unusable(path, mistakes)
  return translations
}

const unusable = (path: string, mistakes: readonly string[]) =>
  new OperatorError(`MESSAGES_FILE cannot be used: ${path}:${mistakes.map(mistake => `\n  - ${mistake}`).join('')}`)

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function objectIn(path: string): object {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8').replace(/^\uFEFF/, ''))
    if (isObject(value)) return value
  } catch (error) {
    throw unusable(path, [(error as Error).message])
  }
  throw unusable(path, ['it is not an object of languages'])
}

/** A language, perhaps with a script and a country (RFC 5646 §2.1). */
const TAG = /^[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?$/i

/** What stands in braces. */
export const placeholdersIn = (sentence: string): readonly string[] => sentence.match(/\{[^{}]*\}/g) ?? []

/** The end of a sentence that begins with the key; null: it can be used. */
function problemWith(key: string, sentence: unknown): string | null {
  if (!Object.hasOwn(translatable, key)) return 'is not a key of examples/messages/messages.json'
  if (typeof sentence !== 'string' || sentence.trim() === '') return 'is not a sentence'
  const expected = placeholdersIn(translatable[key as keyof Sentences])
  const found = placeholdersIn(sentence)
  const missing = expected.find(each => !found.includes(each))
  if (missing !== undefined) return `lacks ${missing}`
  const unknown = found.find(each => !expected.includes(each))
  return unknown === undefined ? null : `has an unknown placeholder ${unknown}`
}
