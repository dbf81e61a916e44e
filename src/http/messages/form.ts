import { sentences as english } from '../../form/script.ts'
import type { Language, Translation } from './languages.ts'
import { type Key, sentences } from './sentences.ts'

const keyOf = (key: string): string => `form.${key}`

/** What the form says in English, by the keys that `MESSAGES_FILE` has for it. */
export const ofForm: Translation = Object.fromEntries(Object.entries(english).map(([key, ours]) => [keyOf(key), ours]))

/** The refusals that the form shows beside a field. */
const aboutField = {
  name: ['nameMissing', 'nameTooLong', 'nameControl', 'nameMalformed'],
  email: ['emailMissing', 'emailTooLong', 'emailInvalid', 'domainNotAccepted', 'addressNotAccepted'],
} as const satisfies Record<string, readonly Key[]>

/** What the form is told, in a language. */
export const formIn = (language: Language) => ({
  language: language.tag,
  dir: language.direction,
  sentences: Object.fromEntries(
    Object.entries(english).map(([key, ours]) => [key, language.translate(keyOf(key), ours).text]),
  ),
  /** How refusals begin that are about a field. */
  refusals: Object.entries(aboutField).flatMap(([field, keys]) => keys.map(key => [sentences[key], field] as const)),
})
