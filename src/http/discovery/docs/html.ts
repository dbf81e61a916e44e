const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Safe as the content of an element and inside a quoted attribute. */
export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, character => entities[character]!)

/** One pattern for all languages of the examples. The name of the group is the class of the token. */
const token = new RegExp(
  [
    String.raw`(?<comment>(?<=^|\s)(?:\/\/|#) .*|<!--.*?-->)`,
    String.raw`(?<key>"[\w-]+"(?=: )|^[A-Z][\w-]+(?=: ))`,
    String.raw`(?<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')`,
    String.raw`(?<tag><\/?[a-z][\w-]*|(?<=["\w/])>$)`,
    String.raw`(?<flag>(?<=\s)--?[A-Za-z]+\b)`,
    String.raw`(?<word>\b(?:as|async|await|catch|const|curl|except|from|if|import|new|print|return|try|with)\b(?!-))`,
    String.raw`(?<literal>(?<![\w.:\/-])(?:true|false|null|\d+)\b(?![.:]))`,
  ].join('|'),
  'gm',
)

/** Colours an example. Its text stays the same, character by character. */
export function highlight(code: string): string {
  let html = ''
  let end = 0
  for (const match of code.matchAll(token)) {
    const [name] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? []
    html += `${escapeHtml(code.slice(end, match.index))}<span class="${name}">${escapeHtml(match[0])}</span>`
    end = match.index + match[0].length
  }
  return html + escapeHtml(code.slice(end))
}
