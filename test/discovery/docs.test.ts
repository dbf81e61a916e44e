import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { docsMarkdown, docsPage } from '../../src/discovery/docs.ts'
import { openapi } from '../../src/discovery/openapi.ts'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { request, baseUrl } = await clientOf(await startService(wholeFile))
const asked = async (accept?: string) => request('/docs/api', accept === undefined ? {} : { headers: { accept } })
const markdown = (await asked('text/markdown')).text
const page = (await asked()).text

test('C-96: it is a page, or Markdown for those who prefer that, each with a tag of its own', async () => {
  const cases: [accept: string, type: 'html' | 'markdown'][] = [
    ['*/*', 'html'],
    ['text/html,application/xhtml+xml,*/*;q=0.8', 'html'],
    ['text/markdown', 'markdown'],
    ['text/markdown, text/html;q=0.9', 'markdown'],
    ['text/markdown, */*', 'html'],
    ['text/markdown, */*;q=0.1', 'markdown'],
    ['TEXT/Markdown ; Q=1, text/html;q=0.5', 'markdown'],
    ['text/html, text/markdown;q=0.9', 'html'],
    ['text/markdown;q=0', 'html'],
    ['text/markdown;q=x, text/html;q=0', 'html'],
  ]
  const tags = new Set<string>()
  for (const [accept, type] of cases) {
    const { headers } = await asked(accept)
    assert.equal(headers.get('content-type'), `text/${type}; charset=utf-8`, accept)
    assert.equal(headers.get('vary'), 'Accept')
    tags.add(`${type} ${headers.get('etag')}`)
  }
  assert.equal(tags.size, 2)
})

test('C-58: the page has no script, loads nothing, says what it links to, and weighs at most 40 kB', async () => {
  const { headers } = await asked()
  assert.match(
    headers.get('content-security-policy')!,
    /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  )
  assert.doesNotMatch(page, /<script|<img|style="|@import|url\(/)
  assert.ok(Buffer.byteLength(page) <= 40_000)
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  assert.equal(new Set(ids).size, ids.length)
  for (const [, href = ''] of page.matchAll(/<a [^>]*href="([^"]+)"/g)) {
    if (href.startsWith('#')) assert.ok(href === '#' || ids.includes(href.slice(1)), href)
    else assert.equal((await fetch(href)).status, 200, href)
  }
})

test('each endpoint is there with its fields, its answers and what they say', async () => {
  const { json } = await request('/api/openapi.json')
  interface Described {
    readonly description: string
    readonly responses?: Record<string, Described>
    readonly content?: Record<string, { examples?: Record<string, { value: { error?: string } }> }>
  }
  const textsOf = ({ description, responses = {}, content = {} }: Described): string[] => [
    description,
    ...Object.values(responses).flatMap(textsOf),
    ...Object.values(content).flatMap(({ examples = {} }) =>
      Object.values(examples).flatMap(({ value }) => value.error ?? []),
    ),
  ]
  for (const operations of Object.values(json.paths))
    for (const text of Object.values(operations as Record<string, Described>).flatMap(textsOf))
      assert.ok(markdown.includes(text), text)
  for (const path of Object.keys(json.paths)) assert.ok(page.includes(`<code>${path}</code></h3>`), path)
  for (const name of ['name', 'email', 'contactId', 'utm_source', 'Retry-After', 'Set-Cookie', 'time'])
    assert.ok(page.includes(`<td><code>${name}</code></td>`), name)
})

const hasCurl = spawnSync('curl', ['--version']).status === 0

test('its examples run as they stand', { skip: !hasCurl && 'curl is not on this machine' }, async () => {
  const example = (language: string) => new RegExp(`\`\`\`${language}\n([^]+?)\`\`\``).exec(markdown)![1]!
  const run = async (program: string, ...args: string[]) => (await promisify(execFile)(program, args)).stdout
  assert.match(await run('sh', '-c', example('sh')), /"alreadyExisted":false/)
  const printed = await run(process.execPath, '--input-type=module', '-e', example('js'))
  assert.equal(printed, 'You are already on the waitlist.\n')
  assert.ok(example('html').includes(`src="${baseUrl}/form.js"`))
})

test('whatever the operator writes is text', () => {
  const pageOf = (service: string, description: string) => {
    const base = 'https://waitlist.example.com'
    const api = openapi({ base, service, description, version: '1', issuesChallenges: false })
    return docsPage(docsMarkdown(api, base), api, base)
  }
  const api = openapi({ base: '', service: 'x', description: 'x', version: '1', issuesChallenges: false })
  assert.ok(docsPage('<b>bold</b>', api, '').includes('&lt;b&gt;bold&lt;/b&gt;'))
  const tagsOf = (html: string) => html.match(/<[^>]+>/g)!.filter(tag => !/^<meta name="description"/.test(tag))
  const harmless = tagsOf(pageOf('waitlist', 'a list')).map(tag => tag.replace(/ id="[^"]*"/, ''))
  const pieces =
    '\\ ` * _ [ ] ( ) < > & | ~ # - + = ! . : ; " \' 1 a <b> </p> <!-- &lt; ](//x) [x --- 1. https://x.example a@b.co {base}'
  const words = fc
    .array(fc.constantFrom(' ', '    ', '\n\n', ...pieces.split(' ')), { minLength: 1, maxLength: 24 })
    .map(list => list.join('').trim())
    .filter(text => text !== '')
  fc.assert(
    fc.property(words, words, (service, description) => {
      const tags = tagsOf(pageOf(service, description)).map(tag => tag.replace(/ id="[^"]*"/, ''))
      assert.deepEqual(tags, harmless)
    }),
    { numRuns: 300 },
  )
})
