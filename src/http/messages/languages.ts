/** A language that an answer can be in. */
export interface Language {
  /** BCP 47, such as `de` or `pt-BR`. */
  readonly tag: string
  /** How it is written. */
  readonly direction: 'ltr' | 'rtl'
  /** The fields of an answer in it. */
  readonly fields: Readonly<Record<string, string>>
  readonly sentences: Translation
  /** How it writes so many seconds. */
  wait(seconds: number): string
  /** Where its missing sentences are looked up; null: it is English. */
  readonly english: Language | null
}

/** Sentences by their keys. */
export type Translation = Readonly<Record<string, string>>

/** Translations by language tag. That of `en` may replace sentences of ours. */
export type Translations = ReadonlyMap<string, Translation>

/** While there is nothing to choose from, no field says what was chosen. */
export const onlyEnglish: Language = {
  tag: 'en',
  direction: 'ltr',
  fields: {},
  sentences: {},
  // Intl writes the same, but loading it takes 40 ms and 10 MB.
  wait: seconds => `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`,
  english: null,
}

/** A sentence of ours, and what is filled in. */
export interface Told {
  readonly key: string
  readonly seconds?: number | undefined
}

/** A sentence in a language, or in English where that lacks it: `ours`, if nobody has replaced it. */
export function say(language: Language, told: Told | null, ours: string): { sentence: string; is: Language } {
  const speaker = told && [language, language.english].find(each => each && Object.hasOwn(each.sentences, told.key))
  if (!speaker) return { sentence: ours, is: language.english ?? language }
  return { sentence: filled(speaker.sentences[told.key]!, speaker, told.seconds), is: speaker }
}

/** `{wait}` is filled in. */
export const filled = (sentence: string, { wait }: Language, seconds: number | undefined): string =>
  seconds === undefined ? sentence : sentence.replaceAll('{wait}', wait(seconds))

/** Values of Accept-Language that are remembered, and the characters of each at most: 200 KB. */
const REMEMBERED = 1_000
const LONGEST = 100
/** Ranges of one that are looked at. Browsers send ten at most. */
const RANGES = 20

/**
 * RFC 4647 §2.1 with the weight of RFC 9110 §12.4.2. `*` is no help in a lookup (RFC 4647 §3.4). The longest tags in use have
 * half as many subtags (RFC 5646 §4.4.1), and each one costs a lookup.
 */
const RANGE = /^\s*([a-z]{1,8}(?:-[a-z\d]{1,8}){0,11})\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/i

export interface Languages {
  /** English first. */
  readonly all: readonly Language[]
  /** That of a request with this Accept-Language. */
  of(acceptLanguage: string | undefined): Language
}

export const untranslated: Languages = { all: [onlyEnglish], of: () => onlyEnglish }

/** Makes the choice between English and the translations (RFC 9110 §12.5.4). */
export function languagesOf(translations: Translations): Languages {
  const fieldsOf = (tag: string) => ({ 'content-language': tag, vary: 'Accept-Language' })
  const english = { ...onlyEnglish, fields: fieldsOf('en'), sentences: translations.get('en') ?? {} }
  const byTag = new Map<string, Language>([['en', english]])
  for (const [tag, sentences] of translations) {
    if (tag === 'en') continue
    byTag.set(tag.toLowerCase(), {
      tag,
      direction: directionOf(tag),
      fields: fieldsOf(tag),
      sentences,
      wait: waitIn(tag),
      english,
    })
  }
  const remembered = new Map<string, Language>()
  const choose = (field: string) => {
    for (const range of wanted(field)) {
      for (let tag = range; tag !== ''; tag = shortened(tag)) {
        const found = byTag.get(tag)
        if (found !== undefined) return found
      }
    }
    return english
  }
  return {
    all: [...byTag.values()],
    of(field) {
      if (field === undefined) return english
      const known = remembered.get(field)
      if (known !== undefined) return known
      const language = choose(field)
      if (remembered.size === REMEMBERED) remembered.clear()
      if (field.length <= LONGEST) remembered.set(field, language)
      return language
    },
  }
}

/** TypeScript does not know the method yet. */
const directionOf = (tag: string): Language['direction'] =>
  (new Intl.Locale(tag) as Intl.Locale & { getTextInfo(): Pick<Language, 'direction'> }).getTextInfo().direction

const SECONDS = { style: 'unit', unit: 'second', unitDisplay: 'long', useGrouping: false } as const

/** One that Node does not know is written as English; by itself it would be as the language of the machine. */
function waitIn(tag: string): Language['wait'] {
  const { format } = new Intl.NumberFormat([tag, 'en'], SECONDS)
  return format
}

/** The ranges, the most wanted first, in lower case; without those that nobody wants, with a weight of 0. */
function wanted(field: string): string[] {
  return field
    .split(',', RANGES)
    .flatMap(item => {
      const [, range, weight = '1'] = RANGE.exec(item) ?? []
      return range === undefined || Number(weight) === 0 ? [] : [{ range: range.toLowerCase(), weight: Number(weight) }]
    })
    .sort((a, b) => b.weight - a.weight)
    .map(({ range }) => range)
}

/** RFC 4647 §3.4: without its last subtag, and without a single letter or digit that would then be the last. */
const shortened = (tag: string): string => tag.slice(0, Math.max(0, tag.lastIndexOf('-'))).replace(/-[a-z\d]$/, '')
