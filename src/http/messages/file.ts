import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { ofForm } from './form.ts'
import type { Translation, Translations } from './languages.ts'
import { ofLinks } from './links.ts'
import { sentences } from './sentences.ts'

/** Every key that a language may have, with what it is in English: those of the service, of the form, and of links in mails. */
export const translatable: Translation = { ...sentences, ...ofForm, ...ofLinks }

/** Bytes of the file. */
const LARGEST = 1024 * 1024
const MOST_LANGUAGES = 100
/** Characters of a sentence: an answer promises 200 of them, and times are filled in. */
const LONGEST_SENTENCE = 180
/** Characters by which a time may be longer than `{wait}`: the first one has its room in the 200. */
const LONGER = 20
/** Mistakes that are told at once. */
const TOLD = 20

/**
 * Reads `MESSAGES_FILE`: a JSON object with a member for each language, whose members are sentences by their keys.
 *
 * @throws {OperatorError} with a sentence for each mistake, when it cannot be used.
 */
export function readMessages(path: string): Translations {
  const mistakes: string[] = []
  const translations = new Map<string, Translation>()
  try {
    const languages = Object.entries(objectIn(path))
    if (languages.length === 0) throw new Error('it has no languages')
    if (languages.length > MOST_LANGUAGES) throw new Error(`it has more than ${MOST_LANGUAGES} languages`)
    for (const [name, given] of languages) {
      const tag = tagOf(name)
      if (tag === null) mistakes.push(`"${name}" is not a language such as de or pt-BR`)
      else if (translations.has(tag)) mistakes.push(`"${name}" is there twice`)
      else if (!isObject(given)) mistakes.push(`${name} is not an object of sentences`)
      else {
        for (const [key, sentence] of Object.entries(given)) {
          const why = whyNot(key, sentence)
          if (why !== null) mistakes.push(`${name}: "${key}" ${why}`)
        }
        translations.set(tag, given as Translation)
      }
    }
  } catch (error) {
    mistakes.push((error as Error).message)
  }
  if (mistakes.length === 0) return translations
  const told = mistakes.slice(0, TOLD)
  if (mistakes.length > TOLD) told.push(`and ${mistakes.length - TOLD} more`)
  throw new OperatorError(`MESSAGES_FILE cannot be used: ${path}:${told.map(each => `\n  - ${each}`).join('')}`)
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** @throws {Error} that says why there is no JSON object in this file. */
function objectIn(path: string): object {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined) throw new Error('there is no such file')
  // Anything else, such as a pipe, may have no end.
  if (!file.isFile()) throw new Error('it is not a file')
  if (file.size > LARGEST) throw new Error(`it has more than ${LARGEST} bytes`)
  const bytes = readFileSync(path)
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8 text')
  let value: unknown
  try {
    value = JSON.parse(bytes.toString().replace(/^\uFEFF/, ''))
  } catch (error) {
    throw new Error(`it is not JSON: ${(error as Error).message}`)
  }
  if (!isObject(value)) throw new Error('it is not an object of languages')
  return value
}

/** As BCP 47 writes it; null: it is no language tag. Languages of more than three letters are reserved (RFC 5646 §2.2.1). */
function tagOf(name: string): string | null {
  try {
    return /^[a-z]{2,3}(?:-[a-z\d]{1,8})*$/i.test(name) ? Intl.getCanonicalLocales(name)[0]! : null
  } catch {
    return null
  }
}

/** What stands in braces. */
export const placeholdersIn = (sentence: string): readonly string[] => sentence.match(/\{[^{}]*\}/g) ?? []

/** The end of a sentence that begins with the key; null: it is a sentence of ours, with what is to be filled in. */
function whyNot(key: string, sentence: unknown): string | null {
  const english = Object.hasOwn(translatable, key) ? translatable[key] : undefined
  if (english === undefined) return 'is none of the keys that are in examples/messages/en.json'
  if (typeof sentence !== 'string') return 'is not text'
  if (sentence.trim() === '') return 'is empty'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(sentence)) return 'is not one line'
  if (!sentence.isWellFormed()) return 'is not well-formed Unicode text'
  if (sentence.length > LONGEST_SENTENCE) return `has more than ${LONGEST_SENTENCE} characters`
  const expected = placeholdersIn(english)
  const found = placeholdersIn(sentence)
  const missing = expected.find(each => !found.includes(each))
  if (missing !== undefined) return `lacks ${missing}`
  const unknown = found.find(each => !expected.includes(each))
  if (unknown !== undefined) return `has ${unknown}, which nothing is filled in for`
  const further = found.filter(each => each === '{wait}').length - 1
  return sentence.length + further * LONGER > LONGEST_SENTENCE ? 'is too long for so many times in it' : null
}
