/** Safe as the content of an element: in code, quotes are many. */
export const escapeCode = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** One pattern for all languages of the examples. The name of the group is the kind of the token. */
const token = new RegExp(
  [
    String.raw`(?<comment>(?<=^|\s)(?:\/\/|#) .*|<!--.*?-->)`,
    String.raw`(?<key>"[\w-]+"(?=: )|^[A-Z][\w-]+(?=: ))`,
    String.raw`(?<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')`,
    String.raw`(?<tag><\/?[a-z][\w-]*|(?<=["\w/])>$)`,
    String.raw`(?<flag>(?<=\s)--?[A-Za-z]+\b)`,
    String.raw`(?<word>\b(?:as|async|await|catch|const|curl|except|from|if|import|new|print|return|try|with)\b(?!-))`,
    String.raw`(?<literal>(?<![\w.:\/-])(?:true|false|null|\d+)(?=,?$))`,
  ].join('|'),
  'gm',
)

/** What marks a token. Short, since there are hundreds: the commonest kinds have an element that says nothing. */
const marks: Readonly<Record<string, string>> = {
  string: 'i',
  key: 'b',
  tag: 'b',
  word: 'u',
  comment: 'i class=c',
  flag: 'var',
  literal: 'var',
}

/** Colours an example. Its text stays the same, character by character. */
export function highlight(code: string): string {
  let html = ''
  let end = 0
  for (const match of code.matchAll(token)) {
    const [name] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? []
    const mark = marks[name!]!
    html += `${escapeCode(code.slice(end, match.index))}<${mark}>${escapeCode(match[0])}</${mark.split(' ', 1)[0]}>`
    end = match.index + match[0].length
  }
  return html + escapeCode(code.slice(end))
}
