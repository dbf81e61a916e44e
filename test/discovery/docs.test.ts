import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { docsMarkdown, docsPage } from '../../src/discovery/docs.ts'
import { openapi } from '../../src/discovery/openapi.ts'
import { assertAccessible, openPage, startBrowser } from '../harness/browser.ts'
import { clientOf } from '../harness/client.ts'
import { skipSlow } from '../harness/environment.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { request, baseUrl } = await clientOf(await startService(wholeFile))
const get = async (accept?: string) => request('/docs/api', accept === undefined ? {} : { headers: { accept } })
const markdown = (await get('text/markdown')).text
const page = (await get()).text

test('C-96: it is a page, or Markdown for those who prefer that, each with a tag of its own', async () => {
  const cases: [accept: string, type: 'html' | 'markdown'][] = [
    ['*/*', 'html'],
    ['text/html,application/xhtml+xml,*/*;q=0.8', 'html'],
    ['text/markdown', 'markdown'],
    ['text/markdown, text/html;q=0.9', 'markdown'],
    ['text/markdown, */*', 'html'],
    ['TEXT/Markdown ; Q=1, */*;q=0.5', 'markdown'],
    ['text/html, text/markdown;q=0.9', 'html'],
    ['text/markdown;q=0', 'html'],
    ['text/markdown;q=x, text/html;q=0', 'html'],
  ]
  const tags = new Set<string>()
  for (const [accept, type] of cases) {
    const { headers } = await get(accept)
    assert.equal(headers.get('content-type'), `text/${type}; charset=utf-8`, accept)
    assert.equal(headers.get('vary'), 'Accept')
    tags.add(`${type} ${headers.get('etag')}`)
  }
  assert.equal(tags.size, 2)
})

test('C-58: the page has no script, loads nothing, says what it links to, and weighs at most 40 kB', async () => {
  const { headers } = await get()
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
  for (const [path, operations] of Object.entries<Record<string, object>>(json.paths)) {
    assert.ok(page.includes(`<code>${path}</code></h3>`), path)
    for (const { description } of Object.values(operations) as { description: string }[])
      assert.ok(markdown.includes(description), description)
  }
  for (const name of ['name', 'email', 'contactId', 'service-desc', 'linkset', 'time'])
    assert.ok(page.includes(`<td><code>${name}</code></td>`), name)
  for (const status of [200, 400, 413, 415, 429, 500, 502, 503])
    assert.ok(page.includes(`<td><span class="badge s${String(status)[0]}">${status}</span></td>`), String(status))
  assert.ok(page.includes('<em>“too many signup attempts, please try again in 30 seconds”</em>'))
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
  const tagsOf = (service: string, description: string) => {
    const base = 'https://waitlist.example.com'
    const api = openapi({ base, service, description, version: '1', issuesChallenges: false })
    const tags = docsPage(docsMarkdown(api, base), api, base).match(/<[^>]+>/g)!
    return tags.map(tag => tag.replace(/ id="[^"]*"/, ''))
  }
  const harmless = tagsOf('waitlist', 'a list')
  const pieces =
    '\\ ` * _ [ ] ( ) < > & | ~ # - + = ! . : ; " \' 1 a <b> </p> <!-- &lt; ](//x) [x --- 1. https://x.example a@b.co {base}'
  const words = fc
    .array(fc.constantFrom(' ', '    ', '\n\n', ...pieces.split(' ')), { minLength: 1, maxLength: 24 })
    .map(list => list.join('').trim())
    .filter(text => text !== '')
  fc.assert(
    fc.property(words, words, (service, description) => {
      assert.deepEqual(tagsOf(service, description), harmless)
    }),
    { numRuns: 300 },
  )
})

test('C-58: a browser complains about nothing, axe-core finds nothing, and nothing is wider than the screen', {
  skip: skipSlow,
}, async t => {
  const browser = await startBrowser(t)
  if ('missing' in browser) return t.skip(browser.missing)
  const { baseUrl } = await startService(t, { SERVICE_NAME: 'W'.repeat(100), CHALLENGE: 'altcha' })
  const strict = await openPage(t, browser, `${baseUrl}/docs/api`)
  assert.deepEqual([strict.complaints, [...strict.origins]], [[], [baseUrl]])
  // Only here may a script be put into the page.
  const { page } = await openPage(t, browser, `${baseUrl}/docs/api`, { bypassCSP: true })
  for (const [colorScheme, background] of [
    ['light', 'rgb(255, 255, 255)'],
    ['dark', 'rgb(13, 16, 22)'],
  ] as const) {
    await page.emulateMedia({ colorScheme })
    assert.equal(await page.evaluate('getComputedStyle(document.documentElement).backgroundColor'), background)
    for (const width of [320, 768, 1440]) {
      await page.setViewportSize({ width, height: 800 })
      await assertAccessible(page, `${colorScheme}, ${width} px`)
    }
  }
})
