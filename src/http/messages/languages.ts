/** Sentences by their keys. */
export type Translation = Readonly<Record<string, string>>

/** A language that the form and the pages can be in. */
export interface Language {
  /** BCP 47, such as `de` or `pt-BR`. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  /** Those of `MESSAGES_FILE`. */
  readonly sentences: Translation
  /** The sentence of a key, and the language that it is in: where this one lacks it, English. `ours`: the English that we have. */
  translate(key: string, ours: string): { readonly text: string; readonly language: Language }
}

export interface Languages {
  /** English first. */
  readonly all: readonly Language[]
  /** What somebody with this Accept-Language reads (RFC 9110 §12.5.4, RFC 4647 §3.4). */
  of(acceptLanguage: string | undefined): Language
}

/** `translations`: by language tag. That of `en` may replace sentences of ours. */
export function languagesOf(translations: ReadonlyMap<string, Translation>): Languages {
  const english: Language = {
    tag: 'en',
    direction: 'ltr',
    sentences: translations.get('en') ?? {},
    translate: (key, ours) => ({ text: english.sentences[key] ?? ours, language: english }),
  }
  const byTag = new Map([['en', english]])
  for (const [tag, sentences] of translations) {
    if (tag === 'en') continue
    const language: Language = {
      tag,
      direction: directionOf(tag),
      sentences,
      translate(key, ours) {
        const text = sentences[key]
        return text === undefined ? english.translate(key, ours) : { text, language }
      },
    }
    byTag.set(tag.toLowerCase(), language)
  }
  return {
    all: [...byTag.values()],
    of(acceptLanguage = '') {
      for (const range of rangesIn(acceptLanguage)) {
        for (let tag = range; tag !== ''; tag = shortened(tag)) {
          const found = byTag.get(tag)
          if (found !== undefined) return found
        }
      }
      return english
    },
  }
}

export const untranslated = languagesOf(new Map())

/** TypeScript does not know the method yet. */
const directionOf = (tag: string): Language['direction'] =>
  (new Intl.Locale(tag) as Intl.Locale & { getTextInfo(): Pick<Language, 'direction'> }).getTextInfo().direction

/** RFC 4647 §2.1 with the weight of RFC 9110 §12.4.2. `*` is no help in a lookup (RFC 4647 §3.4). */
const RANGE = /^\s*([a-z]{1,8}(?:-[a-z\d]{1,8}){0,11})\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/i

/** The ranges, the most wanted first, in lower case; without those that nobody wants, with a weight of 0. */
const rangesIn = (acceptLanguage: string): string[] =>
  acceptLanguage
    .split(',')
    .flatMap(item => {
      const [, range, weight = '1'] = RANGE.exec(item) ?? []
      return range === undefined || Number(weight) === 0 ? [] : [{ range: range.toLowerCase(), weight: Number(weight) }]
    })
    .sort((a, b) => b.weight - a.weight)
    .map(({ range }) => range)

/** RFC 4647 §3.4: without its last subtag, and without a single letter or digit that would then be the last. */
const shortened = (tag: string): string => tag.slice(0, Math.max(0, tag.lastIndexOf('-'))).replace(/-[a-z\d]$/, '')
