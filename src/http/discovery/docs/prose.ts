/**
 * Prose: paragraphs separated by blank lines, with `code` and [links](#to-a-place-on-the-page). Everything else is text
 * and is escaped, because an operator's words can hold any character.
 */

type Span = { readonly is: 'text' | 'code'; readonly text: string } | { readonly is: 'link'; label: string; to: string }

export const paragraphs = (text: string): readonly string[] => text.split(/\n\s*\n/).filter(each => each.trim() !== '')

function spans(text: string): readonly Span[] {
  return text.split(/(`[^`]+`|\[[^\][]+\]\(#[\w-]+\))/).map((piece, index) => {
    if (index % 2 === 0) return { is: 'text', text: piece }
    if (piece.startsWith('`')) return { is: 'code', text: piece.slice(1, -1) }
    const [label = '', to = ''] = piece.slice(1, -1).split('](')
    return { is: 'link', label, to }
  })
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Safe as the content of an element and inside a quoted attribute. */
export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, character => entities[character]!)

export function proseToHtml(text: string): string {
  return spans(text)
    .map(span => {
      if (span.is === 'link') return `<a href="${span.to}">${escapeHtml(span.label)}</a>`
      return span.is === 'code' ? `<code>${escapeHtml(span.text)}</code>` : escapeHtml(span.text)
    })
    .join('')
}

/** Backslash escapes (CommonMark §2.4) for what could start anything else than text. */
export const escapeMarkdown = (text: string): string =>
  text
    .replaceAll(/[\\`*_[\]<>&|~]/g, '\\$&')
    .replaceAll(/^(\s*)([-+=#])/gm, '$1\\$2')
    .replaceAll(/^(\s*\d+)([.)])/gm, '$1\\$2')

export function proseToMarkdown(text: string): string {
  return spans(text)
    .map(span => {
      if (span.is === 'link') return `[${escapeMarkdown(span.label)}](${span.to})`
      return span.is === 'code' ? codeSpan(span.text) : escapeMarkdown(span.text)
    })
    .join('')
}

/** Fenced with more backticks than the text has in a row (CommonMark §6.1). */
export function codeSpan(text: string): string {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map(run => run.length))
  const fence = '`'.repeat(longest + 1)
  return longest === 0 ? `${fence}${text}${fence}` : `${fence} ${text} ${fence}`
}
