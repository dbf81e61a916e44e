import type { Languages, Translation } from '../http/messages/languages.ts'
import { sentences as api } from '../http/messages/sentences.ts'

/** What the form says in English, by key. */
const english = {
  name: 'Name',
  email: 'Email',
  join: 'Join the waitlist',
  didYouMean: 'Did you mean {email}?',
  sending: 'One moment …',
  thanks: 'Thank you, {name}.',
  saved: 'Your signup is saved. You will be on the waitlist shortly.',
  kept: 'Saved on this device.',
  next: 'We will send it as soon as we can, or at your next visit.',
  notKept: 'It could not be sent yet. Please keep this page open.',
  tooMany: 'Too many attempts. We will try again in {wait}.',
  change: 'Change the address',
  later: 'Please try again later.',
  reload: 'Please reload this page and try again.',
}

/** The same, by the keys that `MESSAGES_FILE` has for it. */
export const formSentences: Translation = Object.fromEntries(
  Object.entries(english).map(([key, sentence]) => [`form.${key}`, sentence]),
)

/**
 * What the form says in each language, by the tag in lower case: its own sentences by key, and those of the API by what the API
 * says. What a language lacks is in English.
 */
export function formLanguages({ all }: Languages) {
  const languages = all.map(({ tag, direction, translate, sentences }) => {
    const own = Object.entries(english).map(([key, text]) => [key, translate(`form.${key}`, text).text])
    const ofApi = Object.entries(api).flatMap(([key, text]) => (sentences[key] ? [[text, sentences[key]]] : []))
    return [tag.toLowerCase(), { tag, dir: direction, words: Object.fromEntries([...own, ...ofApi]) }]
  })
  return Object.fromEntries(languages)
}
