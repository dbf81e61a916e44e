import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Config, readConfig } from '../../src/config/config.ts'
import { docsPage } from '../../src/http/discovery/docs/page.ts'
import type { Answer, Operation, Schema } from '../../src/http/discovery/docs/shape.ts'
import { openapi } from '../../src/http/discovery/openapi.ts'
import { clientOf } from '../harness/client.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

/** What a reader of the page sees, without the marks around code. */
const textOfHtml = (html: string): string =>
  html.replaceAll(/<(style|script)\b.*?<\/\1>|<[^>]+>/gs, '').replaceAll(/&([\w#]+);/g, (_, name) => entities[name]!)

/** What a reader of the Markdown sees. */
const textOfMarkdown = (markdown: string): string => markdown.replaceAll(/\\([^\w\s])/g, '$1').replaceAll('`', '')

const plain = (prose: string): string => prose.replaceAll('`', '')

/** The words of everything that the document says about one operation. */
function* wordsOf(document: ApiDocument, method: string, path: string, operation: Operation): Generator<string> {
  yield* [method.toUpperCase(), path, operation.summary, ...paragraphs(operation.description)]
  const { parameters = [], requestBody, responses } = operation
  for (const { name, description, schema } of parameters) yield* [name, plain(description), String(schema.examples![0])]
  if (requestBody !== undefined) yield plain(requestBody.description)
  for (const { schema, examples = {} } of Object.values(requestBody?.content ?? {})) {
    yield* wordsOfSchema(document, schema)
    for (const { value } of Object.values(examples)) yield* stringsIn(value)
  }
  for (const [status, answer] of Object.entries(responses)) yield* wordsOfAnswer(document, status, answer)
}

function* wordsOfAnswer(document: ApiDocument, status: string, { description, headers, content }: Answer) {
  yield status
  // All that it says of a success without fields is that it is the document.
  if (description !== 'The document.') yield plain(description)
  if (status === '200') yield* Object.keys(content ?? {})
  for (const [name, { description, schema }] of Object.entries(headers ?? {})) {
    yield* [name, plain(description)]
    const { const: value, examples: [example] = [] } = schema
    if (value !== undefined || example !== undefined) yield String(value ?? example)
  }
  for (const { schema, examples = {} } of Object.values(content ?? {})) {
    if (status === '200') yield* wordsOfSchema(document, schema)
    for (const { value } of Object.values(examples)) yield* stringsIn(value)
  }
}

function* wordsOfSchema(document: ApiDocument, schema: Schema): Generator<string> {
  const { properties = {} } = schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)!]! : schema
  for (const [name, member] of Object.entries(properties)) {
    yield* [name, plain(member.description ?? '')]
    const { maxLength, format } = { ...member, ...member['x-after-trimming'] }
    if (maxLength !== undefined) yield `${maxLength} characters`
    if (format !== undefined) yield format
    yield* wordsOfSchema(document, member)
    if (member.items !== undefined) yield* wordsOfSchema(document, member.items)
  }
}

function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value
  else if (typeof value === 'object') for (const member of Object.values(value ?? {})) yield* stringsIn(member)
}

const paragraphs = (prose: string): string[] => plain(prose).split('\n\n')

interface ApiDocument {
  readonly info: { readonly title: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, Schema> }
}

const forms: [accept: string, textOf: (source: string) => string, section: RegExp][] = [
  ['text/html', textOfHtml, /(?=<section class="section)/],
  ['text/markdown', textOfMarkdown, /(?=^### )/m],
]

for (const [accept, textOf, section] of forms) {
  test(`C-58: all that the OpenAPI document says about an operation is in its part of ${accept}`, async t => {
    // So that it says all that it can.
    const { request } = await clientOf(
      await startService(t, { TRACK_SOURCES: 'true', CHALLENGE: 'altcha', HOLD_SUSPICIOUS: 'true' }),
    )
    const document = (await request('/api/openapi.json')).json as ApiDocument
    const source = (await request('/docs/api', { headers: { accept } })).text
    const { info, tags } = document
    const general = [info.title, ...paragraphs(info.description)]
    for (const words of [...general, ...tags.flatMap(({ name, description }) => [name, description])]) {
      assert.ok(textOf(source).includes(words), words)
    }

    const sections = source.split(section).map(textOf)
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        const own = sections.find(text => text.replace(/^[#\s]+/, '').startsWith(operation.summary))
        assert.ok(own, `a section for ${operation.summary}`)
        for (const words of wordsOf(document, method, path, operation)) {
          assert.ok(own.includes(words), `${method} ${path} says in ${accept}: ${words}`)
        }
      }
    }
  })
}

const hostile = {
  SERVICE_NAME: `<script>alert(1)</script> "a" 'b' \`c\` & </title> *d* [e](javascript:alert)`,
  SERVICE_DESCRIPTION: `</style><img src=x onerror=alert(1)> \`<big>\` "quoted" 'so' &amp; one \` [x](javascript:alert(2)) ![y](//evil.example/z) | # _u_ <https://evil.example>`,
}

test('C-58: the words of the operator stay words in the Markdown, whatever characters they have', async t => {
  const { request } = await clientOf(await startService(t, hostile))
  const { text } = await request('/docs/api', { headers: { accept: 'text/markdown' } })
  assert.ok(textOfMarkdown(text).includes(plain(hostile.SERVICE_DESCRIPTION)))
  // Outside of code, nothing is left that Markdown would read as HTML, a link elsewhere, an image or emphasis.
  const withoutCode = text
    .replaceAll(/^(`{3,})\w*\n.*?\n\1$/gms, '')
    .replaceAll(/\\./g, '')
    .replaceAll(/`[^`]+`/g, '')
  assert.doesNotMatch(withoutCode, /[<>]|!\[|\]\((?!#|http:\/\/127)|[*_](?!\*)[a-z]+[*_](?!\*)/)
})

test('C-58: whatever the operator writes is shown and adds no element to the page', async () => {
  const base = 'https://waitlist.example.com'
  const { config } = (await readConfig({})) as { config: Config }
  const rest = { base, version: '1', accepts: null, challenge: null }
  const pageOf = (service: string, description: string) =>
    docsPage(openapi({ ...config, service, description, ...rest }), base, null).html
  // A description may contain code and links to headings.
  const tagsOf = (html: string) =>
    html.match(/<[^>]+>/g)!.filter(tag => !/^<(\/?code|a href="#[\w-]+"|\/a)>$/.test(tag))
  const bare = (text: string) => text.replaceAll(/[\s`[\]]|\(#x\)/g, '')

  const harmless = tagsOf(pageOf('waitlist', 'a list'))
  const pieces =
    '\\ ` * _ [ ] ( ) < > & | ~ # - + = ! . : ; " \' 1 a <b> </p> <!-- &lt; ](//x) ](#x) [x --- 1. https://x.example'
  const words = fc
    .array(fc.constantFrom(' ', '    ', ...pieces.split(' ')), { minLength: 1, maxLength: 24 })
    .map(list => list.join('').trim())
    .filter(text => text !== '')
  fc.assert(
    fc.property(words, words, (service, description) => {
      const html = pageOf(service, description)
      assert.deepEqual(tagsOf(html), harmless)
      assert.equal(bare(textOfHtml(html.match(/<h1>(.*)<\/h1>/)![1]!)), bare(`${service} API`))
      assert.ok(bare(textOfHtml(html)).includes(bare(description)))
    }),
    { numRuns: isSlow ? 200 : 50, examples: [['waitlist', '![x](#x)']] },
  )
})
