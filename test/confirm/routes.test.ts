/** The pages behind the links in mails. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { LINKS_SECRET, linksOf, purposes } from '../../src/confirm/token.ts'
import { readMessages } from '../../src/messages/languages.ts'
import { pageSentences } from '../../src/messages/sentences.ts'
import { assertAccessible, openPage, startBrowser } from '../harness/browser.ts'
import { clientOf } from '../harness/client.ts'
import { sqlOn } from '../harness/database.ts'
import { skipSlow } from '../harness/environment.ts'
import { startService } from '../harness/service.ts'

const messages = new URL('../../examples/messages/messages.json', import.meta.url).pathname
const confirming = {
  CONFIRM: 'mail',
  // Nobody listens there.
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'hello@example.com',
  BASE_URL: 'http://localhost:8080',
  SERVICE_NAME: 'Acme & <Sons>',
  MESSAGES_FILE: messages,
}
const WEEK = 604_800_000
const post = { method: 'POST' }

async function opened(t: TestContext, env: Record<string, string> = confirming) {
  const service = await startService(t, env)
  const { origin, databasePath } = service
  const { signUp } = await clientOf({ baseUrl: origin })
  const sql = sqlOn(databasePath)
  const [secret] = await sql(`select value from secret where name = '${LINKS_SECRET}'`)
  /** The links in a mail to the contact with this address, sent at `at`. */
  async function linksTo(email: string, at = Date.now()) {
    const [contact] = await sql(`select id, created_at from contact where email = '${email}'`)
    const { id, created_at: createdAt } = contact as { id: string; created_at: number }
    const links = linksOf(origin, String(secret!.value), () => at)
    const addressee = { id, createdAt: new Date(createdAt) }
    return { confirm: links.confirm(addressee), unsubscribe: links.unsubscribe(addressee) }
  }
  async function signedUp(email: string, at?: number) {
    assert.equal((await signUp({ name: 'Ada', email })).status, 200)
    return linksTo(email, at)
  }
  async function open(link: string, init: RequestInit = {}) {
    const response = await fetch(link, { redirect: 'manual', ...init })
    const html = await response.text()
    const [, heading] = /<h1>(.*)<\/h1>/.exec(html) ?? []
    const [, email] = /class="address"><bdi>(.*)<\/bdi>/.exec(html) ?? []
    return { response, html, seen: [response.status, heading, email, html.includes('<button')] }
  }
  const see = async (link: string, init?: RequestInit) => (await open(link, init)).seen
  const states = async () => (await sql('select email, state from contact order by number')).map(Object.values)
  return { ...service, signUp, sql, signedUp, open, see, states }
}

test('GET shows the address and changes nothing; POST confirms; from then on the page says so, also when it has expired', async t => {
  const { signedUp, see, states, open } = await opened(t)
  const { confirm } = await signedUp('Ada@example.com')
  const asked = [200, pageSentences['confirm.ask'], 'Ada@example.com', true]
  assert.deepEqual(await see(confirm), asked)
  assert.equal((await open(confirm, { method: 'HEAD' })).html, '')
  assert.deepEqual(await see(confirm), asked)
  assert.deepEqual(await states(), [['Ada@example.com', 'unconfirmed']])

  assert.deepEqual(await see(confirm, post), [200, pageSentences['confirm.done'], 'Ada@example.com', false])
  assert.deepEqual(await states(), [['Ada@example.com', 'listed']])
  const before = [200, pageSentences['confirm.doneBefore'], 'Ada@example.com', false]
  assert.deepEqual([await see(confirm), await see(confirm, post)], [before, before])
  const { confirm: expired } = await signedUp('Ada@example.com', Date.now() - WEEK)
  assert.deepEqual(await see(expired), before)
})

test('a link that has expired confirms nobody', async t => {
  const { signedUp, see, states } = await opened(t)
  const { confirm } = await signedUp('ada@example.com', Date.now() - WEEK)
  const expired = [410, pageSentences['confirm.expired'], 'ada@example.com', false]
  assert.deepEqual([await see(confirm), await see(confirm, post)], [expired, expired])
  assert.deepEqual(await states(), [['ada@example.com', 'unconfirmed']])
})

test('to leave takes a POST, from the page or in one click of a mail program (RFC 8058)', async t => {
  const { signedUp, see, states } = await opened(t)
  const oneClick = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' })
  const multipart = new FormData()
  multipart.set('List-Unsubscribe', 'One-Click')
  for (const [i, body] of [undefined, oneClick, multipart].entries()) {
    const email = `${i}@example.com`
    const { unsubscribe, confirm } = await signedUp(email, i === 0 ? Date.now() - 100 * WEEK : undefined)
    assert.deepEqual(await see(unsubscribe), [200, pageSentences['unsubscribe.ask'], email, true])
    assert.deepEqual(await states(), [[email, 'unconfirmed']])
    assert.deepEqual((await see(unsubscribe, { ...post, ...(body && { body }) })).slice(0, 2), [
      200,
      pageSentences['unsubscribe.done'],
    ])
    assert.deepEqual(await states(), [])
    const left = [200, pageSentences['unsubscribe.done'], undefined, false]
    assert.deepEqual([await see(unsubscribe), await see(unsubscribe, post)], [left, left])
    if (i > 0) assert.deepEqual(await see(confirm), [410, pageSentences['confirm.deleted'], undefined, false])
  }
})

test('links of an earlier signup do nothing to a newer one with the same address', async t => {
  const { signedUp, see, states } = await opened(t)
  const { confirm, unsubscribe } = await signedUp('ada@example.com')
  await see(unsubscribe, post)
  await signedUp('ada@example.com')
  for (const link of [confirm, unsubscribe]) await see(link, post)
  assert.deepEqual(await states(), [['ada@example.com', 'unconfirmed']])
})

test('links in mails that were sent go on to work when confirmations are off', async t => {
  const before = await opened(t)
  const links = [await before.signedUp('ada@example.com'), await before.signedUp('bob@example.com')] as const
  await before.stop()
  const { origin } = await startService(t, { DATABASE_URL: `sqlite:${before.databasePath}` })
  const press = (link: string) => before.see(link.replace(before.origin, origin), post)
  assert.equal((await press(links[0].confirm))[1], pageSentences['confirm.done'])
  assert.equal((await press(links[1].unsubscribe))[1], pageSentences['unsubscribe.done'])
  assert.deepEqual(await before.states(), [['ada@example.com', 'listed']])
})

test('a token that was changed, cut, made for something else or never made is not valid', async t => {
  const { signedUp, see, states, origin } = await opened(t)
  const { confirm, unsubscribe } = await signedUp('ada@example.com')
  const start = confirm.indexOf('=') + 1
  const changed = Array.from(confirm.slice(start), (character, i) => {
    const other = character === '0' ? '1' : '0'
    return confirm.slice(0, start + i) + other + confirm.slice(start + i + 1)
  })
  for (const link of [
    ...changed,
    ...[confirm.slice(0, -1), `${confirm}A`, `${confirm}=`, `${origin}/confirm`, `${origin}/unsubscribe?token=`],
    ...[confirm.replace('/confirm', '/unsubscribe'), unsubscribe.replace('/unsubscribe', '/confirm')],
  ])
    assert.deepEqual(await see(link, post), [404, pageSentences['link.invalid'], undefined, false], link)
  assert.deepEqual(await states(), [['ada@example.com', 'unconfirmed']])
})

test('a page loads nothing, is not kept or indexed, and leads back to the page of the owner', async t => {
  const site = 'https://acme.example'
  const { signedUp, open, origin } = await opened(t, { ...confirming, CORS_ORIGINS: `${site},https://other.example` })
  const links = await signedUp('ada@example.com')
  for (const link of [links.confirm, links.unsubscribe, `${origin}/confirm`]) {
    const { response, html } = await open(link)
    assert.match(
      response.headers.get('content-security-policy')!,
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
    )
    for (const [name, value] of [
      ['cache-control', 'no-store'],
      ['referrer-policy', 'no-referrer'],
      ['x-robots-tag', 'noindex'],
    ] as const)
      assert.equal(response.headers.get(name), value)
    assert.ok(html.includes(`<a href="${site}">`))
    assert.ok(html.includes('<bdi>Acme &amp; &lt;Sons&gt;</bdi>'))
  }
})

test('a page speaks the language of its reader', async t => {
  const { signedUp, open } = await opened(t)
  const { confirm } = await signedUp('ada@example.com')
  for (const [language, direction, heading] of [
    ['de', 'ltr', 'Bestätige deine E-Mail-Adresse'],
    ['ar', 'rtl', readMessages(messages).get('ar')!['confirm.ask']],
    ['en', 'ltr', pageSentences['confirm.ask']],
  ] as const) {
    const { html, response, seen } = await open(confirm, { headers: { 'accept-language': `${language}-XX` } })
    assert.equal(seen[1], heading)
    assert.ok(html.includes(`<html lang="${language}" dir="${direction}">`))
    assert.deepEqual(
      ['content-language', 'vary'].map(name => response.headers.get(name)),
      [language, 'Accept-Language'],
    )
  }
})

test('an unknown address is a page for a browser, and JSON for everybody else', async t => {
  const { origin, open } = await opened(t, {})
  const { response, html, seen } = await open(`${origin}/nothing`, { headers: { accept: 'text/html,*/*;q=0.8' } })
  assert.deepEqual(seen, [404, pageSentences['link.notFound'], undefined, false])
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.ok(!html.includes('/nothing'))
  for (const headers of [{}, { accept: 'application/json' }, { accept: '*/*' }])
    assert.equal((await open(`${origin}/nothing`, { headers })).html, '{"error":"there is nothing at this address"}')
})

test('without the store a link says to try again, and its token is in no log', async t => {
  const { signedUp, see, sql, logged } = await opened(t)
  const links = await signedUp('ada@example.com')
  await sql('alter table contact rename to gone')
  for (const purpose of purposes) {
    assert.deepEqual(await see(links[purpose], post), [500, pageSentences['link.failed'], undefined, false])
    assert.ok(!JSON.stringify(logged).includes(links[purpose].split('token=')[1]!.slice(0, 20)))
  }
})

test('a browser needs no script for the button; axe-core finds nothing, and nothing is wider than the screen', {
  skip: skipSlow,
}, async t => {
  const browser = await startBrowser(t)
  if ('missing' in browser) return t.skip(browser.missing)
  const { signedUp, origin } = await opened(t, { ...confirming, SERVICE_NAME: 'W'.repeat(60) })
  const { confirm, unsubscribe } = await signedUp('ada@example.com')
  const { page, complaints, origins } = await openPage(t, browser, confirm, { javaScriptEnabled: false })
  for (const [link, button, done] of [
    [confirm, 'confirm.button', 'confirm.done'],
    [unsubscribe, 'unsubscribe.button', 'unsubscribe.done'],
  ] as const) {
    await page.goto(link)
    await page.getByText('ada@example.com').waitFor()
    await page.getByRole('button', { name: pageSentences[button] }).click()
    await page.getByRole('heading', { name: pageSentences[done] }).waitFor()
  }
  assert.deepEqual([complaints, [...origins]], [[], [origin]])

  for (const [colorScheme, width, locale] of [
    ['light', 320, 'ar'],
    ['dark', 320, 'de'],
    ['light', 1440, 'en'],
    ['dark', 1440, 'en'],
  ] as const) {
    const { confirm, unsubscribe } = await signedUp(`${'w'.repeat(60)}.${colorScheme}.${width}@example.com`)
    const options = { colorScheme, locale, viewport: { width, height: 740 }, bypassCSP: true }
    const { page } = await openPage(t, browser, confirm, options)
    const pages: (() => Promise<unknown>)[] = [
      () => page.goto(confirm),
      () => page.getByRole('button').click(),
      () => page.goto(unsubscribe),
      () => page.getByRole('button').click(),
      () => page.goto(confirm),
      () => page.goto(`${origin}/nothing`),
    ]
    for (const [i, open] of pages.entries()) {
      await open()
      const where = `page ${i}, ${colorScheme}, ${width}, ${locale}`
      await assertAccessible(page, where)
      assert.equal(await page.evaluate('document.documentElement.lang'), locale, where)
    }
  }
})
