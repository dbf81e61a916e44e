import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { freePort } from '../harness/port.ts'
import { exchange } from '../harness/raw.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { request, baseUrl } = await clientOf(await startService(wholeFile))

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
test('C-24, C-96: Markdown is for clients that prefer it to HTML, the page for all others', async t => {
  for (const [accept, type, why] of preferences) {
    await t.test(`a client that wants ${why} (${accept}) gets ${type}`, async () => {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await request('/docs/api', { method, headers: { accept } })
        assert.equal(status, 200)
        assert.equal(headers.get('content-type'), type)
        assert.equal(headers.get('vary'), 'Accept')
      }
    })
  }
})

test('C-96: a client without Accept gets HTML', async () => {
  const answer = await exchange(baseUrl, 'HEAD /docs/api HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.match(answer, /^content-type: text\/html; charset=utf-8\r$/im)
  assert.match(answer, /^vary: Accept\r$/im)
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

test('C-58: the page has no style attribute, no event attribute and nothing to load', async () => {
  const { text } = await request('/docs/api')
  assert.doesNotMatch(text, /<(iframe|img|object|embed|base|link rel="(stylesheet|preload))/i)
  assert.doesNotMatch(text, /<[^>]*\s(style|on\w+|src|srcset)=/i)
  assert.doesNotMatch(text.match(/<style>.*<\/style>/s)![0], /@import|url\(/i)
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

test('C-11, C-15, C-94: the page and its Markdown name the catalog, and the page says where it belongs', async t => {
  const base = 'https://waitlist.example.com'
  const port = await freePort()
  await startService(t, { BASE_URL: base, PORT: String(port) })
  const { request } = await clientOf({ baseUrl: `http://127.0.0.1:${port}` })
  for (const accept of ['text/html', 'text/markdown']) {
    const { headers } = await request('/docs/api', { headers: { accept } })
    const link = `<${base}/.well-known/api-catalog>; rel="api-catalog"; type="application/linkset+json"`
    assert.equal(headers.get('link'), link)
  }
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
