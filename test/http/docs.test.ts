import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { type Config, readConfig } from '../../src/config/config.ts'
import { docsPage } from '../../src/http/discovery/docs/page.ts'
import type { Operation, Schema } from '../../src/http/discovery/docs/shape.ts'
import { openapi } from '../../src/http/discovery/openapi.ts'
import { SOLUTION_EXAMPLE } from '../../src/http/discovery/schemas.ts'
import { untranslated } from '../../src/http/messages/languages.ts'
import { kinds, members, SECRET } from '../challenges/siteverify.fake.ts'
import { clientOf } from '../harness/client.ts'
import { freePort } from '../harness/port.ts'
import { startService, wholeFile } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { solved } from '../harness/solve.ts'

const { request } = await clientOf(await startService(wholeFile))

const HTML = 'text/html; charset=utf-8'
const MARKDOWN = 'text/markdown; charset=utf-8'

const preferences: [accept: string, type: string, why: string][] = [
  ['*/*', HTML, 'anything'],
  ['text/markdown', MARKDOWN, 'Markdown alone'],
  ['TEXT/Markdown', MARKDOWN, 'Markdown in other letters'],
  ['text/markdown, text/html;q=0.9', MARKDOWN, 'Markdown before HTML'],
  ['text/html;q=0.5, text/markdown;q=0.6', MARKDOWN, 'Markdown a little before HTML'],
  ['text/markdown;q=0.9, text/html', HTML, 'HTML before Markdown'],
  ['text/markdown, text/html', HTML, 'both alike'],
  ['text/markdown;q=0, application/json', HTML, 'no Markdown'],
  ['text/markdown;q=much', HTML, 'nonsense'],
  ['application/json', HTML, 'something else'],
  ['', HTML, 'nothing'],
]
test('C-24, C-96: Markdown is for clients that prefer it to HTML, the page for all others', async () => {
  for (const [accept, type, why] of preferences) {
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await request('/docs/api', { method, headers: { accept } })
      assert.deepEqual([status, headers.get('content-type'), headers.get('vary')], [200, type, 'Accept'], why)
    }
  }
})

test('C-32, C-96: each form has an entity tag of its own, and a tag of the other form is no match', async () => {
  const as = (accept: string, tag?: string) =>
    request('/docs/api', { headers: { accept, ...(tag === undefined ? {} : { 'if-none-match': tag }) } })
  const html = (await as('text/html')).headers.get('etag')!
  const markdown = (await as('text/markdown')).headers.get('etag')!
  assert.match(html, /^"[\w-]{43}"$/)
  assert.notEqual(html, markdown)
  const kept = await as('text/markdown', markdown)
  assert.deepEqual([kept.status, kept.headers.get('vary')], [304, 'Accept'])
  assert.equal((await as('text/html', html)).status, 304)
  assert.equal((await as('text/markdown', html)).status, 200)
  assert.equal((await as('text/html', markdown)).status, 200)
})

test('C-57, C-58: the policy allows the style and the script that are served, calls of this service, and data images', async () => {
  const { text, headers } = await request('/docs/api')
  const hashOf = (element: string) => {
    const found = [...text.matchAll(new RegExp(`<${element}[^>]*>(.*?)</${element}>`, 'gs'))]
    assert.equal(found.length, 1)
    return `'sha256-${createHash('sha256').update(found[0]![1]!).digest('base64')}'`
  }
  const served = Object.fromEntries(headers)
  const expected = {
    'content-security-policy': `default-src 'none'; script-src ${hashOf('script')}; style-src ${hashOf('style')}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cache-control': 'public, max-age=3600',
  }
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map(name => [name, served[name]])), expected)
})

test('C-58: every link of the page leads somewhere, every anchor exists once, and the navigation has every heading', async t => {
  const sources = { CHALLENGE: 'altcha', HOLD_SUSPICIOUS: 'true', TRACK_SOURCES: 'true' }
  for (const env of [{}, sources, { CHALLENGE: 'turnstile', CHALLENGE_SECRET: 'x' }]) {
    const { baseUrl } = await startService(t, env)
    const { request } = await clientOf({ baseUrl })
    const { text } = await request('/docs/api')
    const found = (part: string, pattern: RegExp) => [...part.matchAll(pattern)].map(([, name]) => name!)
    const ids = found(text, /<[^>]* id="([^"]*)"/g)
    assert.equal(new Set(ids).size, ids.length)
    const links = new Set(found(text, /<(?:a|link) [^>]*href="([^"]*)"/g).filter(link => !link.startsWith('data:')))
    assert.ok(links.size > 15)
    for (const link of links) {
      if (link.startsWith('#')) assert.ok(ids.includes(link.slice(1)), link)
      else assert.equal((await request(link.replace(baseUrl, ''))).status, 200, link)
    }
    const [nav, main] = [/<nav.*<\/nav>/s, /<main.*<\/main>/s].map(part => part.exec(text)![0]) as [string, string]
    for (const id of found(main, /<h3 id="([^"]*)"/g)) assert.ok(nav.includes(`href="#${id}"`), id)
  }
})

test('C-11: the page says where it belongs', async t => {
  const base = 'https://waitlist.example.com'
  const port = await freePort()
  await startService(t, { BASE_URL: base, PORT: String(port) })
  const { request } = await clientOf({ baseUrl: `http://127.0.0.1:${port}` })
  const { text } = await request('/docs/api')
  const head = text.split('</head>')[0]!
  for (const [rel, path] of [
    ['api-catalog', '/.well-known/api-catalog'],
    ['service-desc', '/api/openapi.json'],
    ['status', '/api/health'],
    ['canonical', '/docs/api'],
  ]) {
    assert.match(head, new RegExp(`<link rel="${rel}"[^>]* href="${base}${path}">`))
  }
  assert.match(text, /^<!doctype html>\n<html lang="en">/)
  for (const name of ['viewport', 'description', 'color-scheme']) assert.match(head, new RegExp(`<meta name="${name}"`))
  const examples = [...text.matchAll(/<pre[^>]*><code>(.*?)<\/code>/gs)].map(([, code]) => code!)
  assert.ok(examples.length > 10)
  assert.equal(examples.filter(code => code.includes('127.0.0.1')).length, 0, 'examples are made of BASE_URL')
})

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

/** What a reader of the page sees, without the marks around code. */
const textOfHtml = (html: string): string =>
  html.replaceAll(/<(style|script)\b.*?<\/\1>|<[^>]+>/gs, '').replaceAll(/&([\w#]+);/g, (_, name) => entities[name]!)

/** What a reader of the Markdown sees. */
const textOfMarkdown = (markdown: string): string => markdown.replaceAll(/\\([^\w\s])/g, '$1').replaceAll('`', '')

const plain = (prose: string): string => prose.replaceAll('`', '')

/** What the document says of an operation: words, examples, names of fields and members, and bounds. */
function* wordsIn(document: ApiDocument, value: unknown, of = ''): Generator<string> {
  if (typeof value === 'string') {
    if (/^(?:summary|description|value)$/.test(of) && value !== 'The document.') yield* paragraphs(value)
  } else if (typeof value === 'object' && value !== null) {
    const { $ref } = value as { $ref?: string }
    if ($ref?.endsWith('/Error')) return
    const resolved = $ref === undefined ? value : document.components.schemas[$ref.split('/').at(-1)!]!
    for (const [name, member] of Object.entries(resolved)) {
      if (/^(?:headers|properties)$/.test(of)) yield name
      // What a whole body is, the page says by its example.
      if (name === 'description' && of === 'schema') continue
      if (!Array.isArray(resolved)) yield* wordsIn(document, member, of === 'value' ? of : name)
    }
  }
}

const paragraphs = (prose: string): string[] => plain(prose).split('\n\n')

interface ApiDocument {
  readonly info: { readonly title: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, Schema> }
}

const confirming = {
  CONFIRM: 'mail',
  BASE_URL: 'https://waitlist.example.com',
  SMTP_URL: 'smtp://127.0.0.1:9',
  MAIL_FROM: 'hello@example.com',
}

const forms: [accept: string, textOf: (source: string) => string, section: RegExp][] = [
  ['text/html', textOfHtml, /(?=<section class="section)/],
  ['text/markdown', textOfMarkdown, /(?=^### )/m],
]

for (const [accept, textOf, section] of forms) {
  test(`C-58: all that the OpenAPI document says about an operation is in its part of ${accept}`, async t => {
    // So that it says all that it can.
    const all = { TRACK_SOURCES: 'true', CHALLENGE: 'altcha', HOLD_SUSPICIOUS: 'true', ...confirming }
    const { request } = await clientOf({ baseUrl: (await startService(t, all)).origin })
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
        for (const words of [method.toUpperCase(), path, ...wordsIn(document, operation)]) {
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
  const rest = {
    base,
    version: '1',
    accepts: null,
    links: undefined as never,
    challenge: null,
    languages: untranslated,
  }
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

const ada = { name: 'Ada', email: 'ada@example.com' }
const own = { CHALLENGE: 'altcha' }

/** Every challenge: its settings and its member. */
const challenges: readonly (readonly [env: Record<string, string>, member: string])[] = [
  [own, 'altcha'],
  ...kinds.map(kind => {
    const url = { CHALLENGE_URL: `https://verifier.example.com/${kind}` }
    const env = { CHALLENGE: kind, CHALLENGE_SECRET: SECRET, CORS_ORIGINS: 'https://www.example.com', ...url }
    return [env, members[kind]] as const
  }),
]

/** All that a service says of itself. */
async function documented(t: TestContext, env: Record<string, string>) {
  const client = await clientOf(await startService(t, env))
  const as = async (accept: string) => (await client.request('/docs/api', { headers: { accept } })).text
  const [page, markdown, { json: api }] = await Promise.all([
    as('text/html'),
    as('text/markdown'),
    client.request('/api/openapi.json'),
  ])
  return { client, page, markdown, api }
}

for (const [env, member] of challenges) {
  test(`${env.CHALLENGE}: the documentation says what solves the challenge, and where the solution goes`, async t => {
    const { page, markdown } = await documented(t, env)
    if (env === own) assert.match(markdown, /It solves the challenge while the visitor types/)
    else assert.match(page, /needs a [\w ]+ solution/, 'why a signup cannot be tried on the page')
    assert.match(markdown, new RegExp(`widget fills in \`${member}\``))
    for (const text of [page, markdown]) assert.doesNotMatch(text, /every example on this page works as it is: /i)
  })
}

const heldIn = ({ paths }: { paths: Record<string, Record<string, unknown>> }) => {
  const { post } = paths['/api/waitlist'] as { post: Any }
  return post.responses[200].content['application/json'].examples.held?.value
}
// biome-ignore lint/suspicious/noExplicitAny: the document is read as a stranger would read it
type Any = any

test('where signups may be held, the documents have the very answer of one that is, and otherwise say nothing of it', async t => {
  const { client, page, markdown, api } = await documented(t, { HOLD_ABOVE: '0' })
  const { status, json } = await client.signUp(ada)
  assert.equal(status, 200)
  assert.deepEqual(heldIn(api), json)
  assert.deepEqual(Object.keys(json), ['success', 'message', 'alreadyExisted', 'automationTriggered'])
  assert.ok(page.includes(json.message) && page.includes('id="held-signups"'))
  assert.ok(markdown.includes(JSON.stringify(json, null, 2)))
  assert.match(api.components.schemas.SignupResult.properties.contactId.description, /or if the signup is held/)
  const off = await documented(t, {})
  for (const text of [off.page, off.markdown, JSON.stringify(off.api)]) {
    assert.doesNotMatch(text, /\bheld\b|is recorded\./)
  }
})

test('where membership is not disclosed there is one answer, held or not', async t => {
  const { page, markdown, api } = await documented(t, { HOLD_ABOVE: '9', DISCLOSE_MEMBERSHIP: 'false' })
  const { examples } = api.paths['/api/waitlist'].post.responses[200].content['application/json']
  assert.deepEqual(examples, {
    recorded: { summary: 'Any address', value: { success: true, message: 'Your signup is recorded.' } },
  })
  for (const text of [page, markdown]) assert.doesNotMatch(text, /\bheld\b|see a duplicate/)
})

/** What kind of thing each member is: a text of so many characters, a number, or an object. */
const shapeOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]))
    : typeof value === 'string'
      ? value.length
      : typeof value

test('the example of a challenge looks like one that is made, and the documentation has it', async t => {
  const { client, page, markdown, api } = await documented(t, { CHALLENGE: 'altcha' })
  const { get } = api.paths['/api/challenge']
  const { value } = get.responses[200].content['application/json'].examples.challenge
  const { json } = await client.request('/api/challenge')
  assert.deepEqual(shapeOf(value), shapeOf(json))
  for (const name of ['algorithm', 'cost', 'keyLength', 'data']) {
    assert.deepEqual(value.parameters[name], json.parameters[name], name)
  }
  assert.deepEqual(Object.keys(get.responses).sort(), ['200', '429', '4XX', '500'])
  assert.ok(markdown.includes(JSON.stringify(value, null, 2)))
  for (const text of [page, markdown]) assert.ok(text.includes('and so have challenges'))
  assert.match(markdown, /too many challenges, please try again in 30 seconds/)
})

/** The examples in one language, as a reader would copy them; each one once. The Markdown has those of the page and more. */
async function examples(baseUrl: string, language: string): Promise<string[]> {
  const read = async (accept: string, pattern: RegExp) => {
    const text = await (await fetch(`${baseUrl}/docs/api`, { headers: { accept } })).text()
    return new Set([...text.matchAll(pattern)].map(([, code]) => code!))
  }
  const inMarkdown = await read('text/markdown', new RegExp(`^\`\`\`${language}\n(.*?)\n\`\`\`$`, 'gms'))
  const inPage = await read('text/html', new RegExp(`<pre data-language="${language}"><code>(.*?)</code></pre>`, 'gs'))
  assert.ok(inPage.size > 0, `examples in ${language}`)
  for (const code of inPage) assert.ok(inMarkdown.has(textOfHtml(code)), code)
  return [...inMarkdown]
}

async function run([program = '', ...args]: string[], input: string): Promise<string> {
  const child = spawn(program, args, { stdio: 'pipe' })
  child.stdin.end(input)
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  assert.equal(child.exitCode ?? (await new Promise(resolve => child.on('close', resolve))), 0, `${input}\n${errors}`)
  return output
}

const languages = [
  { name: 'curl', language: 'sh', command: ['sh', '-es'], needs: ['curl', '--version'] },
  { name: 'JavaScript', language: 'js', command: [process.execPath, '--input-type=module', '-'], needs: [] },
  { name: 'Python', language: 'python', command: ['python3', '-'], needs: ['python3', '--version'] },
] as const

for (const { name, language, command, needs } of languages) {
  const [program, ...args] = needs
  const isMissing = program !== undefined && spawnSync(program, args).status !== 0
  const skip =
    (isMissing && `${program} is not on this machine`) || (name !== 'curl' && !isSlow && 'it runs in .ci/run')

  test(`every ${name} example runs as it stands and does what the documentation says`, {
    skip,
  }, async t => {
    const { baseUrl } = await startService(t)
    const codes = await examples(baseUrl, language)
    const outputs = await Promise.all(codes.map(async code => [code, await run([...command], code)] as const))
    const outputOf = (part: string) => outputs.find(([code]) => code.includes(part))?.[1] ?? `no example has ${part}`

    const signup = outputOf('Ada Lovelace')
    assert.match(signup, /["']alreadyExisted["']?: ?false|alreadyExisted: false/i)
    const again = await run([...command], codes.find(code => code.includes('Ada Lovelace'))!)
    assert.match(again, /["']alreadyExisted["']?: ?true|alreadyExisted: true/i)

    assert.match(outputOf('/api/health'), /["']?status["']?: ?["']ok["']/)
    assert.match(outputOf('/.well-known/api-catalog'), /linkset/)
    assert.match(outputOf('/api/openapi.json'), /3\.1\.\d/)
    assert.match(outputOf('/docs/api'), /^(200 )?# waitlist API$/m)
    if (language !== 'sh') for (const [code, output] of outputs) assert.match(output, /^200 /, code)
  })

  test(`with a challenge, the ${name} example is refused as it stands, and works with a solution in its place`, {
    skip,
  }, async t => {
    const { baseUrl } = await startService(t, { CHALLENGE: 'altcha' })
    const code = (await examples(baseUrl, language)).find(code => code.includes('Ada Lovelace'))!
    assert.match(await run([...command], code), /the challenge was not solved, please try again/)
    const solution = await solved(await (await fetch(`${baseUrl}/api/challenge`)).text())
    const output = await run([...command], code.replace(SOLUTION_EXAMPLE, solution))
    assert.match(output, /["']?alreadyExisted["']?: ?false/i)
  })
}
