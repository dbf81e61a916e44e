import type { Languages } from '../http/messages/languages.ts'
import { sentences as api, formSentences } from '../http/messages/sentences.ts'

/**
 * What the form says in each language, by the tag in lower case: its own sentences by key, and those of the API by what the API
 * says. What a language lacks is in English.
 */
export function formLanguages({ all }: Languages) {
  const languages = all.map(({ tag, direction, translate, sentences }) => {
    const own = Object.entries(formSentences).map(([key, text]) => [key, translate(`form.${key}`, text).text])
    const ofApi = Object.entries(api).flatMap(([key, text]) => (sentences[key] ? [[text, sentences[key]]] : []))
    return [tag.toLowerCase(), { tag, dir: direction, words: Object.fromEntries([...own, ...ofApi]) }]
  })
  return Object.fromEntries(languages)
}
