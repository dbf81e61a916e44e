/**
 * Whether a client wants Markdown: only if `Accept` names `text/markdown` with a higher quality than it gives to
 * `text/html` (RFC 9110 §12.5.1). All others get the page, including clients that accept anything.
 */
export function prefersMarkdown(accept: string | undefined): boolean {
  if (accept === undefined || !/text\/markdown/i.test(accept)) return false
  const ranges = accept.split(',').map(readRange)
  const quality = (type: string) => ranges.find(range => range.type === type)?.quality
  const html = quality('text/html') ?? quality('text/*') ?? quality('*/*') ?? 0
  const markdown = quality('text/markdown') ?? 0
  return markdown > html
}

function readRange(text: string): { type: string; quality: number } {
  const [type = '', ...parameters] = text.split(';').map(part => part.trim().toLowerCase())
  const q = parameters.find(parameter => parameter.startsWith('q='))
  const quality = q === undefined ? 1 : Number(q.slice(2))
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 }
}
