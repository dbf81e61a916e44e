import { readFileSync } from 'node:fs'
import { Marked, type Tokens } from 'marked'
import { ACCENT, escapeHtml, htmlPage, mark, pageHeaders, styleSheet } from '../http/html.ts'
import { paths } from '../http/paths.ts'
import { descriptions } from './catalog.ts'
import type { OpenapiDocument } from './openapi.ts'

/** The documentation as Markdown (RFC 7763), and as a page that is made from it. */

const guide = readFileSync(new URL('./guide.md', import.meta.url), 'utf8')
const style = styleSheet(new URL('./docs.css', import.meta.url))

export const docsHeaders = pageHeaders(style, "'none'")

/** As much of an operation as the documentation reads. */
interface Operation {
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly { readonly name: string; readonly description: string }[]
  readonly requestBody?: Body & { readonly description: string }
  readonly responses: Readonly<Record<string, Response>>
}
interface Body {
  readonly content?: Readonly<
    Record<
      string,
      { readonly schema: object; readonly examples?: Readonly<Record<string, { readonly value: unknown }>> }
    >
  >
}
interface Response extends Body {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string }>>
}

/** The guide, then each operation. What the operator wrote is text, never markup (CommonMark §2.4). */
export function docsMarkdown(api: OpenapiDocument, base: string): string {
  const [description = ''] = api.info.description.split('\n\n')
  const [example] = api.components.schemas.SignupResult.examples
  const values: Readonly<Record<string, string>> = {
    base,
    title: escapeMarkdown(api.info.title),
    description: escapeMarkdown(description),
    result: JSON.stringify(example, null, 2),
  }
  const filled = guide.replaceAll(/\{(base|title|description|result)\}/g, (_, name: string) => values[name]!)
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Operation>).map(([method, operation]) =>
      operationMarkdown(api, method.toUpperCase(), path, operation),
    ),
  )
  return [filled, ...operations, `Version ${api.info.version}, MIT licence.\n`].join('\n')
}

const escapeMarkdown = (text: string): string =>
  text.replaceAll(/[\\`*_[\]<>&|~#+=!.()-]/g, '\\$&').replaceAll(/\s*\n\s*/g, ' ')

function operationMarkdown(api: OpenapiDocument, method: string, path: string, operation: Operation): string {
  const { summary, description, parameters = [], requestBody, responses } = operation
  // The first answer that has a header says what it means.
  const headers = new Map<string, string>()
  for (const [name, { description }] of Object.values(responses).flatMap(({ headers = {} }) => Object.entries(headers)))
    if (!headers.has(name)) headers.set(name, description)
  return [
    `### \`${method} ${path}\``,
    `**${summary}.** ${description}`,
    requestBody ? requestBody.description : null,
    requestBody ? table('Request', fieldsOf(api, requestBody)) : null,
    table(
      'Query',
      parameters.map(({ name, description }) => [code(name), description]),
    ),
    table('Success', fieldsOf(api, responses[200]!)),
    table(
      'Answers',
      Object.entries(responses).map(([status, response]) => [code(status), meaningOf(response)]),
    ),
    table(
      'Headers',
      [...headers].map(([name, description]) => [code(name), description]),
    ),
    '',
  ]
    .filter(part => part !== null)
    .join('\n\n')
}

const code = (text: string): string => `\`${text}\``

const table = (title: string, rows: readonly (readonly [string, string])[]): string | null =>
  rows.length === 0
    ? null
    : `| ${title} | Meaning |\n|---|---|\n${rows.map(row => `| ${row.join(' | ')} |`).join('\n')}`

interface ObjectSchema {
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, { readonly type: string; readonly description: string }>>
}

/** The members of a JSON body, with what each is. */
function fieldsOf(api: OpenapiDocument, { content = {} }: Body): (readonly [string, string])[] {
  const [media] = Object.values(content)
  const [, name] = /schemas\/(\w+)$/.exec((media?.schema as { $ref?: string } | undefined)?.$ref ?? '') ?? []
  const { required = [], properties = {} } = (api.components.schemas as Record<string, ObjectSchema>)[name ?? ''] ?? {}
  return Object.entries(properties).map(([name, { type, description }]) => {
    const kind = required.includes(name) ? `${type}, required` : type
    return [code(name), `*${kind}* ${description}`] as const
  })
}

/** What a status means, and for a refusal what it may say. */
function meaningOf({ description, content = {} }: Response): string {
  const examples = Object.values(content).flatMap(({ examples = {} }) => Object.values(examples))
  const sentences = examples.flatMap(({ value }) => (value as { error?: string }).error ?? [])
  return [description, ...sentences.map(sentence => `*“${sentence}”*`)].join(' ')
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
    html: ({ text }) => escapeHtml(text),
    heading({ depth, text, tokens }) {
      return `<h${depth} id="${idOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    code: ({ text, lang = '' }) => `<pre data-language="${escapeHtml(lang)}"><code>${escapeHtml(text)}</code></pre>\n`,
    codespan({ text }) {
      const [, method, path] = /^([A-Z]+) (\/.*)$/.exec(text) ?? []
      if (path !== undefined) return `<span class="badge ${method}">${method}</span> <code>${escapeHtml(path)}</code>`
      if (/^[1-5](\d\d|XX)$/.test(text)) return `<span class="badge s${text[0]}">${text}</span>`
      return `<code>${escapeHtml(text)}</code>`
    },
  },
})

export function docsPage(markdown: string, api: OpenapiDocument, base: string): string {
  const tokens = marked.lexer(markdown)
  const contents = tokens
    .filter((token): token is Tokens.Heading => token.type === 'heading' && token.depth > 1)
    .map(({ depth, text, tokens }) => {
      const label = marked.Parser.parseInline(tokens, marked.defaults)
      return `<li class="level-${depth}"><a href="#${idOf(text)}">${label}</a></li>`
    })
  const links = descriptions
    .filter(({ path }) => path !== paths.docs)
    .map(({ rel, path, type }) => `<link rel="${rel}" type="${type}" href="${escapeHtml(base + path)}">\n`)
  return htmlPage({
    title: api.info.title,
    style,
    head: `<meta name="description" content="${escapeHtml(api.info.summary)}">
<link rel="canonical" href="${escapeHtml(base + paths.docs)}">
<link rel="alternate" type="text/markdown" href="${escapeHtml(base + paths.docs)}">
<link rel="api-catalog" type="application/linkset+json" href="${escapeHtml(base + paths.catalog)}">
${links.join('')}`,
    body: `<nav aria-label="On this page">
<a class="brand" href="#">${mark(ACCENT)} <span>${escapeHtml(api.info.title)}</span></a>
<ul>
${contents.join('\n')}
</ul>
</nav>
<main>
${marked.parser(tokens)}</main>
`,
  })
}
