import { readFileSync } from 'node:fs'
import { Marked } from 'marked'
import { escapeHtml, htmlPage, MARK, pageHeaders, styleSheet } from '../http/html.ts'
import { paths } from '../http/paths.ts'
import type { OpenapiDocument } from './openapi.ts'
import { schemas } from './schemas.ts'

/** The documentation as Markdown (RFC 7763), and as a page that is made from it. */

const guide = readFileSync(new URL('./guide.md', import.meta.url), 'utf8')
const style = styleSheet(new URL('./docs.css', import.meta.url))

export const docsHeaders = pageHeaders(style, "'none'")

/** As much of an operation as the documentation reads. */
interface Operation {
  readonly summary: string
  readonly description: string
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Body & { readonly description: string }>>
}
interface Body {
  readonly content?: Readonly<
    Record<string, { readonly schema: { readonly $ref?: string }; readonly example?: object }>
  >
}

/** The guide, then each operation. What the operator wrote is text, never markup (CommonMark §2.4). */
export function docsMarkdown(api: OpenapiDocument, base: string): string {
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Operation>).map(
      ([method, operation]) => `### \`${method.toUpperCase()} ${path}\`\n\n${operationMarkdown(operation)}`,
    ),
  )
  const [joined] = Object.values(api.paths['/api/waitlist']!.post.responses[200].content)
  const values: Readonly<Record<string, string>> = {
    base,
    title: escapeMarkdown(api.info.title),
    description: escapeMarkdown(api.info.description),
    result: JSON.stringify(joined!.example, null, 2),
    operations: operations.join('\n\n'),
    version: api.info.version,
  }
  return guide.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]!)
}

const escapeMarkdown = (text: string): string =>
  text.replaceAll(/[\\`*_[\]<>&|~#+=!.()-]/g, '\\$&').replaceAll(/\s*\n\s*/g, ' ')

function operationMarkdown({ summary, description, requestBody, responses }: Operation): string {
  const answers = Object.entries(responses)
    .filter(([status]) => status !== '304' && status !== '4XX')
    .map(([status, { description, content = {} }]) => {
      const [media] = Object.values(content)
      const { error } = { error: undefined, ...media?.example }
      return [status, error === undefined ? description : `${description} *“${error}”*`] as const
    })
  return [
    `**${summary}.** ${description}`,
    table('Request', fieldsOf(requestBody)),
    table('Result', fieldsOf(responses[200])),
    table('Status', answers),
  ]
    .filter(part => part !== '')
    .join('\n\n')
}

const table = (title: string, rows: readonly (readonly [name: string, meaning: string])[]): string =>
  rows.length === 0
    ? ''
    : `| ${title} | Meaning |\n|---|---|\n${rows.map(([name, meaning]) => `| \`${name}\` | ${meaning} |`).join('\n')}`

/** The members of a JSON body, with what each is. */
function fieldsOf({ content = {} }: Body = {}): (readonly [string, string])[] {
  const name = Object.values(content)[0]?.schema.$ref?.split('/').at(-1)
  if (name === undefined) return []
  const { properties } = schemas[name as keyof typeof schemas]
  return Object.entries(properties).map(([name, { type, description }]) => [name, `*${type}* ${description}`])
}

/** The anchor of a heading as Markdown tools make it, so that links work in both forms. */
const idOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-')

const marked = new Marked({
  // A bare address stays text: an operator may write anything.
  tokenizer: { url: () => undefined },
  renderer: {
    heading({ depth, text, tokens }) {
      return `<h${depth} id="${idOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    codespan({ text }) {
      const [, method, path] = /^([A-Z]+) (\/.*)$/.exec(text) ?? []
      if (path !== undefined) return `<span class="badge ${method}">${method}</span> <code>${escapeHtml(path)}</code>`
      if (/^[1-5]\d\d$/.test(text)) return `<span class="badge s${text[0]}">${text}</span>`
      return `<code>${escapeHtml(text)}</code>`
    },
  },
})

export const docsPage = (markdown: string, api: OpenapiDocument, base: string): string =>
  htmlPage({
    title: api.info.title,
    style,
    language: 'en',
    direction: 'ltr',
    head: `<meta name="description" content="${escapeHtml(api.info.summary)}">
<link rel="alternate" type="text/markdown" href="${escapeHtml(base + paths.docs)}">
<link rel="api-catalog" type="application/linkset+json" href="${escapeHtml(base + paths.catalog)}">
`,
    body: `<main>
${MARK}
${marked.parse(markdown)}</main>
`,
  })
