import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { openPage, startBrowser } from '../harness/browser.ts'
import { contactsIn } from '../harness/database.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const forAll = { after: after as TestContext['after'] }
const started = isSlow ? await startBrowser(forAll) : { missing: 'it runs in .ci/run' }
const skip = 'missing' in started && started.missing
const browser = started as Browser

const schemes = ['light', 'dark'] as const
const phone = { width: 360, height: 740 }
const desk = { width: 1440, height: 900 }

const url = skip ? '' : `${(await startService(forAll)).baseUrl}/docs/api`

/** The page as a first visitor finds it. */
const opened = async (t: TestContext, options: BrowserContextOptions = {}): Promise<Page> =>
  (await openPage(t, browser, url, { viewport: desk, reducedMotion: 'reduce', ...options })).page

/** `element` is an expression, since these tests are compiled without the types of a browser. */
const styleOf = (page: Page, element: string, property: string) =>
  page.evaluate<string>(`getComputedStyle(${element}).${property}`)

const isVisible = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll(elements => elements.map(element => element.getClientRects().length > 0))

test('C-58: a browser has nothing to complain about on the page, loads nothing from elsewhere, and shows the theme of the system', {
  skip,
}, async t => {
  const { baseUrl } = await startService(t)
  const { page, complaints, origins } = await openPage(t, browser, `${baseUrl}/docs/api`)
  assert.equal(await page.locator('h1').textContent(), 'waitlist API')
  const ground = () => styleOf(page, 'document.documentElement', 'backgroundColor')
  assert.equal(await ground(), 'rgb(255, 255, 255)')
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.equal(await ground(), 'rgb(13, 16, 22)')
  assert.deepEqual(complaints, [])
  assert.deepEqual([...origins], [baseUrl])
})

const easy = { CHALLENGE: 'altcha' }

for (const [what, env] of [
  ['all that makes it longer', { ...easy, HOLD_SUSPICIOUS: 'true', TRACK_SOURCES: 'true' }],
  ['a challenge of a vendor', { CHALLENGE: 'turnstile', CHALLENGE_SECRET: 'x' }],
] as const) {
  test(`C-58: with ${what} axe-core finds no violation, and nothing is wider than the screen`, {
    skip,
  }, async t => {
    const { baseUrl } = await startService(t, env)
    // Only here may a script be put into the page.
    const { page } = await openPage(t, browser, `${baseUrl}/docs/api`, { bypassCSP: true, reducedMotion: 'reduce' })
    await page.evaluate(axe.source)
    await page.evaluate(`for (const folded of document.querySelectorAll('details')) folded.open = true`)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('status').filter({ hasText: '400' }).waitFor()
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme })
      for (const [tab, width] of [320, 768, 1440].entries()) {
        await page.setViewportSize({ width, height: 800 })
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width)
        // Another language at each size, so that the colours of all examples are seen.
        await page.evaluate(`document.querySelectorAll('.tabs input')[${tab}].click()`)
        const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
        const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
        assert.deepEqual(found, [], `${colorScheme}, ${width} px`)
      }
    }
  })
}

test('C-58: the keyboard skips to the content, opens the menu of a phone, and Escape closes it', {
  skip,
}, async t => {
  const page = await opened(t, { viewport: phone })
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate('document.activeElement.hash'), '#content')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
  const menu = page.getByRole('button', { name: 'Menu' })
  await menu.press('Enter')
  assert.deepEqual(await isVisible(page, 'nav'), [true])
  await page.keyboard.press('Escape')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
  assert.equal(await menu.evaluate(button => button.matches(':focus')), true, 'the focus returns')
})

test('C-58: an example is copied by a click or a key, as it is to be run, and that is said', {
  skip,
}, async t => {
  const page = await opened(t)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const card = page.locator('.tabs').first()
  const button = card.getByRole('button', { name: 'Copy: Request' })
  const said = page.getByRole('status').filter({ hasText: 'Copied: Request' })
  for (const [language, copy] of [
    ['sh', () => button.click()],
    ['python', () => button.press('Enter')],
  ] as const) {
    await card.locator(`[value=${language}]`).check({ force: true })
    await copy()
    await said.waitFor()
    const copied = await page.evaluate('navigator.clipboard.readText()')
    assert.equal(copied, await card.locator(`pre[data-language=${language}]`).textContent())
  }
  assert.equal(await page.locator('.code .copy').count(), await page.locator('.code').count(), 'each has its button')

  // Over plain HTTP browsers have no such clipboard.
  await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
  await page.getByRole('button', { name: 'Copy: Base URL' }).click()
  await page.getByRole('status').filter({ hasText: 'Copied: Base URL' }).waitFor()
  await page.getByLabel('Name').press('ControlOrMeta+V')
  assert.equal(await page.getByLabel('Name').inputValue(), new URL(url).origin)
})

test('C-58: what a reader tries is really sent, and the real answer is shown', { skip }, async t => {
  const { baseUrl, databasePath, stop } = await startService(t, { RATE_LIMIT: '3' })
  const { page, complaints, origins } = await openPage(t, browser, `${baseUrl}/docs/api`)
  const call = page.getByRole('combobox', { name: 'Call' })
  const shown = page.getByRole('group', { name: 'Headers and body of the answer' })
  const send = async (status: string) => {
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('status').filter({ hasText: status }).waitFor()
    return (await shown.textContent())!
  }
  assert.match(
    await page.locator('section:has(> #try-it)').innerText(),
    /A signup sent here is a real one: it is recorded/,
  )
  assert.match(await send('400'), /"error": "name is required"/)
  await page.getByLabel('Name').fill('Ada')
  await page.getByLabel('Email').fill('ada@example.com')
  const signup = await send('200')
  assert.match(signup, /"alreadyExisted": false/)
  assert.match(signup, /^ratelimit: "signup";r=1;t=\d+$/m)
  assert.deepEqual(
    contactsIn(databasePath).map(({ email }) => email),
    ['ada@example.com'],
  )
  assert.match(await send('200'), /"alreadyExisted": true/)
  assert.match(await send('429'), /^retry-after: \d+$/m)

  await call.selectOption('GET /api/health')
  assert.deepEqual(await isVisible(page, '.person'), [false, false])
  assert.match(await send('200'), /"status": "ok"[\s\S]*\ncache-control: no-store\n/)
  await call.selectOption('GET /docs/api')
  assert.match(await send('200'), /^<!doctype html>/)
  assert.deepEqual(
    complaints.filter(complaint => !/status of 4\d\d/.test(complaint)),
    [],
  )
  assert.deepEqual([...origins], [baseUrl])
  await stop()
  await send('No answer')
})

test('C-58: without the script everything is read, and what needs it is not there', { skip }, async t => {
  const page = await opened(t, { javaScriptEnabled: false })
  assert.ok((await isVisible(page, '.scripted')).every(visible => !visible))
  const shown = () =>
    page
      .locator('.tabs')
      .first()
      .locator('pre:visible')
      .evaluateAll(all => all.map(pre => pre.dataset.language))
  assert.deepEqual(await shown(), ['sh'])
  await page.getByLabel('curl').first().focus()
  await page.keyboard.press('ArrowLeft')
  assert.deepEqual(await shown(), ['python'])
  await page.locator('summary').first().click()
  await page.locator('dt', { hasText: 'service-desc' }).first().waitFor()
  await page.setViewportSize(phone)
  await page.getByRole('button', { name: 'Menu' }).click()
  assert.deepEqual(await isVisible(page, 'nav'), [true])
})

test('C-58: on paper there are all examples and no navigation, dark on white', { skip }, async t => {
  const page = await opened(t, { colorScheme: 'dark' })
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  assert.equal(await styleOf(page, 'document.documentElement', 'backgroundColor'), 'rgb(255, 255, 255)')
  const shown = await isVisible(page, 'main pre:not(.answer pre)')
  assert.ok(shown.length > 10 && shown.every(Boolean))
  assert.ok((await isVisible(page, 'nav, .bar, .scripted, .tabs label')).every(visible => !visible))
})

/** A landing page on an origin of its own. */
async function landingPage(test: TestContext, html: () => string): Promise<string> {
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('C-49, C-50, C-51: the form of the page works on a landing page of another origin', { skip }, async t => {
  let form = ''
  const html = () =>
    `<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">${form}</html>`
  const allowed = await landingPage(t, html)
  const stranger = await landingPage(t, html)
  const { baseUrl, databasePath } = await startService(t, { CORS_ORIGINS: allowed })
  const docs = await openPage(t, browser, `${baseUrl}/docs/api`)
  form = (await docs.page.locator('pre[data-language=html]').first().textContent())!

  const visit = async (origin: string) => {
    const { page } = await openPage(t, browser, origin)
    return async (name: string, email: string, sentence: string) => {
      await page.goto(origin)
      await page.getByLabel('Name').fill(name)
      await page.getByLabel('Email').fill(email)
      await page.getByRole('button').click()
      await page.locator('form').getByText(sentence, { exact: true }).waitFor()
      return page.context().cookies(baseUrl)
    }
  }
  const contacts = () => contactsIn(databasePath).map(({ name, email }) => ({ name, email }))

  const signUpThere = await visit(stranger)
  assert.deepEqual(
    await signUpThere(
      'Eve',
      'eve@example.com',
      'Saved on this device. We will send it as soon as there is a connection.',
    ),
    [],
  )
  assert.deepEqual(contacts(), [])

  const signUp = await visit(allowed)
  assert.deepEqual(await signUp(' ', 'grace@example.com', 'Please enter your name.'), [])
  const [cookie] = await signUp('Grace', 'grace@example.com', 'You are on the waitlist.')
  assert.deepEqual([cookie?.name, cookie?.value, cookie?.httpOnly], ['waitlist', '1', true])
  await signUp('Grace', 'GRACE@example.com', 'You are already on the waitlist.')
  assert.deepEqual(contacts(), [{ name: 'Grace', email: 'grace@example.com' }])
})

test('while ALTCHA is on, what a reader tries is solved first, by nobody else than the page', { skip }, async t => {
  const { baseUrl, databasePath } = await startService(t, easy)
  const { page, complaints, origins } = await openPage(t, browser, `${baseUrl}/docs/api`)
  const send = async (status: string) => {
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('status').filter({ hasText: status }).waitFor()
    return (await page.getByRole('group', { name: 'Headers and body of the answer' }).textContent())!
  }
  const asked: string[] = []
  page.on('request', request => asked.push(new URL(request.url()).pathname))
  assert.match(await send('400'), /"error": "name is required"/)
  assert.deepEqual(asked, ['/api/waitlist'], 'nothing is solved for nothing')
  await page.getByLabel('Name').fill('Ada')
  await page.getByLabel('Email').fill('ada@example.com')
  assert.match(await send('200'), /"alreadyExisted": false/)
  assert.deepEqual(
    contactsIn(databasePath).map(({ email }) => email),
    ['ada@example.com'],
  )
  await page.getByRole('combobox', { name: 'Call' }).selectOption('GET /api/challenge')
  assert.match(await send('200'), /"algorithm": "PBKDF2\/SHA-256"/)
  assert.deepEqual(
    complaints.filter(complaint => !/status of 400/.test(complaint)),
    [],
  )
  assert.deepEqual([...origins], [baseUrl])
})
