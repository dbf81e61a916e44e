import { readFileSync, statSync } from 'node:fs'
import { OperatorError } from '../../config/operator.ts'
import type { Translation } from './languages.ts'
import { formSentences, pageSentences, sentences } from './sentences.ts'

/** Every key that a language may have, with what it is in English. */
export const translatable: Translation = {
  ...sentences,
  ...Object.fromEntries(Object.entries(formSentences).map(([key, sentence]) => [`form.${key}`, sentence])),
  ...pageSentences,
}

/** Bytes of the file. */
const MAX_SIZE = 1024 * 1024
/** Characters of a sentence. */
const MAX_LENGTH = 180

/**
 * Reads `MESSAGES_FILE`: a JSON object with a member for each language, whose members are sentences by their keys.
 *
 * @throws {OperatorError} with a sentence for each mistake, when it cannot be used.
 */
export function readMessages(path: string): ReadonlyMap<string, Translation> {
  const mistakes: string[] = []
  const translations = new Map<string, Translation>()
  try {
    for (const [name, translation] of Object.entries(objectIn(path))) {
      const tag = tagOf(name)
      if (tag === null) mistakes.push(`"${name}" is not a language such as de or pt-BR`)
      else if (!isObject(translation)) mistakes.push(`${name} is not an object of sentences`)
      else {
        for (const [key, sentence] of Object.entries(translation)) {
          const problem = problemWith(key, sentence)
          if (problem !== null) mistakes.push(`${name}: "${key}" ${problem}`)
        }
        translations.set(tag, translation as Translation)
      }
    }
  } catch (error) {
    mistakes.push((error as Error).message)
  }
  if (mistakes.length === 0) return translations
  throw new OperatorError(
    `MESSAGES_FILE cannot be used: ${path}:${mistakes.map(mistake => `\n  - ${mistake}`).join('')}`,
  )
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** @throws {Error} that says why there is no JSON object in this file. */
function objectIn(path: string): object {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined) throw new Error('there is no such file')
  if (!file.isFile()) throw new Error('it is not a file')
  if (file.size > MAX_SIZE) throw new Error(`it has more than ${MAX_SIZE} bytes`)
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)))
  } catch (error) {
    throw new Error(`it is not JSON: ${(error as Error).message}`)
  }
  if (!isObject(value)) throw new Error('it is not an object of languages')
  return value
}

/** As BCP 47 writes it; null: it is not a language tag. Languages of more than three letters are reserved (RFC 5646 §2.2.1). */
function tagOf(name: string): string | null {
  try {
    return /^[a-z]{2,3}(?:-[a-z\d]{1,8})*$/i.test(name) ? Intl.getCanonicalLocales(name)[0]! : null
  } catch {
    return null
  }
}

/** What stands in braces. */
export const placeholdersIn = (sentence: string): readonly string[] => sentence.match(/\{[^{}]*\}/g) ?? []

/** The end of a sentence that begins with the key; null: it can be used. */
function problemWith(key: string, sentence: unknown): string | null {
  const english = Object.hasOwn(translatable, key) ? translatable[key] : undefined
  if (english === undefined) return 'is none of the keys that are in examples/messages/en.json'
  if (typeof sentence !== 'string') return 'is not text'
  if (sentence.trim() === '') return 'is empty'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(sentence)) return 'is not one line'
  if (sentence.length > MAX_LENGTH) return `has more than ${MAX_LENGTH} characters`
  const expected = placeholdersIn(english)
  const found = placeholdersIn(sentence)
  const missing = expected.find(each => !found.includes(each))
  if (missing !== undefined) return `lacks ${missing}`
  const unknown = found.find(each => !expected.includes(each))
  return unknown === undefined ? null : `has an unknown placeholder ${unknown}`
}
