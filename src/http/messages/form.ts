import { sentences as english } from '../../form/script.ts'
import { type Language, say, type Translation } from './languages.ts'
import { type Key, sentences } from './sentences.ts'

const keyOf = (key: string): string => `form.${key}`

/** What the form says in English, by the keys that `MESSAGES_FILE` has for it. */
export const ofForm: Translation = Object.fromEntries(Object.entries(english).map(([key, ours]) => [keyOf(key), ours]))

/** The refusals that the form shows beside a field. */
const aboutField = {
  name: ['nameMissing', 'nameTooLong', 'nameControl', 'nameMalformed'],
  email: ['emailMissing', 'emailTooLong', 'emailInvalid', 'domainNotAccepted', 'addressNotAccepted'],
} as const satisfies Record<string, readonly Key[]>

/** What the form is told, in a language. It is English unless some of its own sentences are translated. */
export function formIn(language: Language) {
  const said = Object.entries(english).map(([key, ours]) => [key, say(language, { key: keyOf(key) }, ours)] as const)
  const { is } = said.find(([, { is }]) => is === language)?.[1] ?? said[0]![1]
  return {
    fields: is.fields,
    words: {
      language: is.tag,
      /** The value of the attribute. */
      dir: is.direction,
      sentences: Object.fromEntries(said.map(([key, { sentence }]) => [key, sentence])),
      /** How refusals begin that are about a field. */
      refusals: Object.entries(aboutField).flatMap(([field, keys]) =>
        keys.map(key => [sentences[key], field] as const),
      ),
    },
  }
}
