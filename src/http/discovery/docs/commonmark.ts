/** The parts of CommonMark that the documentation uses. Escaped text stays text, even if an operator wrote it. */

/** Blocks, one after the other, without those that are missing. */
export const blocks = (...list: readonly (string | undefined)[]): string =>
  list.filter(block => block !== undefined && block !== '').join('\n\n')

/** Backslash escapes (CommonMark §2.4) for everything that could be read as markup. */
export const escaped = (text: string): string =>
  text
    .replaceAll(/[\\`*_[\]<>&|~]/g, '\\$&')
    .replaceAll(/^[-+=#]/gm, '\\$&')
    .replaceAll(/^(\d+)([.)])/gm, '$1\\$2')

/** The Markdown that descriptions may contain: `code` and [links](#to-a-heading) with plain labels. */
const markup = /(`[^`\n]+`|(?<!!)\[[^\\`*_[\]<>&\n]+\]\(#[\w-]+\))/

/** Paragraphs of a description. All but code and links is escaped, since an operator may write anything. */
export const prose = (text: string): string =>
  text
    .replaceAll(/^[^\S\n]+/gm, '')
    .split(markup)
    .map((piece, index) => (index % 2 === 0 ? escaped(piece) : piece))
    .join('')

const longestRun = (text: string): number => Math.max(0, ...(text.match(/`+/g) ?? []).map(run => run.length))

/** Delimited by more backticks than the text has in a row (CommonMark §6.1). */
export function code(text: string): string {
  const longest = longestRun(text)
  const fence = '`'.repeat(longest + 1)
  return longest === 0 ? `${fence}${text}${fence}` : `${fence} ${text} ${fence}`
}

/** A program or a message, with its language (CommonMark §4.5). */
export interface Sample {
  readonly language: 'sh' | 'js' | 'python' | 'html' | 'json' | 'http'
  readonly code: string
}

/** A title in bold, then the same example in each language. */
export const example = (title: string, ...samples: readonly Sample[]): string =>
  blocks(
    `**${title}**`,
    ...samples.map(({ language, code }) => {
      const fence = '`'.repeat(Math.max(3, longestRun(code) + 1))
      return `${fence}${language}\n${code}\n${fence}`
    }),
  )

/** A list of names, each with remarks and paragraphs that explain it. */
export const definitions = (title: string, entries: readonly string[]): string | undefined =>
  entries.length === 0 ? undefined : blocks(`#### ${title}`, ...entries)

export function definition(name: string, remarks: readonly string[], ...paragraphs: (string | undefined)[]): string {
  const about = remarks.length === 0 ? '' : ` (${remarks.join(', ')})`
  return blocks(`- ${code(name)}${about}`, ...paragraphs.map(text => text?.replaceAll(/^(?=.)/gm, '  ')))
}

/** The anchor of a heading as Markdown tools make it, so that links work in both forms. */
export const idOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-')
