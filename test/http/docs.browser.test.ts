import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { vendors } from '../../src/challenges/vendors.ts'
import { type Kind, kinds, members, SECRET, startVerifier } from '../challenges/siteverify.fake.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { startVendor } from '../harness/vendor.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const forAll = { after: after as TestContext['after'] }
const started = await startBrowser(forAll)
const skip = 'missing' in started && started.missing
const browser = started as Browser
/** Of what a reader does with the page, and of how it is drawn. */
const skipReading = skip || (!isSlow && 'it takes 20 seconds of a processor; it runs in .ci/run')

const schemes = ['light', 'dark'] as const
const sizes = [
  { width: 360, height: 740 },
  { width: 768, height: 1024 },
  { width: 1440, height: 900 },
]

const url = skip ? '' : `${(await startService(forAll)).baseUrl}/docs/api`
const tab = skipReading ? null : (await openPage(forAll, browser, url)).page

/** The page as a first visitor finds it, in the one tab of most tests: a tab of their own costs them more. */
async function reloaded(viewport = sizes[2]!, colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
  const page = tab!
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme, media: null, reducedMotion: 'reduce' })
  await page.evaluate('localStorage.clear()')
  await page.goto('about:blank')
  await page.goto(url)
  return page
}

/** `element` is an expression, since these tests are compiled without the types of a browser. */
const styleOf = (page: Page, element: string, property: string) =>
  page.evaluate<string>(`getComputedStyle(${element}).${property}`)

const isVisible = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll(elements => elements.map(element => element.getClientRects().length > 0))

test('C-58: a browser has nothing to complain about on the page and loads nothing from elsewhere', {
  skip,
}, async t => {
  const { baseUrl } = await startService(t)
  for (const colorScheme of schemes) {
    const { page, complaints, origins } = await openPage(t, browser, `${baseUrl}/docs/api`, { colorScheme })
    assert.equal(await page.locator('h1').textContent(), 'waitlist API')
    assert.equal(await styleOf(page, `document.querySelector('.part')`, 'display'), 'grid', 'the style is in force')
    assert.deepEqual(complaints, [])
    assert.deepEqual([...origins], [baseUrl])
  }
})

test('C-58: the words of a hostile operator do nothing in a browser', { skip: skipReading }, async t => {
  const SERVICE_NAME = `</title><script>console.error('run')</script><img src=x onerror=console.error('loaded')>`
  const { baseUrl } = await startService(t, {
    SERVICE_NAME,
    SERVICE_DESCRIPTION: `</style><style>@import "//x"</style>`,
  })
  const { page, complaints, origins } = await openPage(t, browser, `${baseUrl}/docs/api`)
  assert.equal(await page.locator('h1').textContent(), `${SERVICE_NAME} API`)
  assert.equal(await page.title(), `${SERVICE_NAME} API`)
  assert.equal(await page.locator('style').count(), 1)
  assert.deepEqual(complaints, [])
  assert.deepEqual([...origins], [baseUrl])
})

test('C-58: axe-core finds no violation, in light and dark, on a phone, a tablet and a desk', {
  skip: skipReading,
}, async t => {
  const { baseUrl } = await startService(t)
  const look = async (colorScheme: 'light' | 'dark') => {
    // Only here may a script be put into the page.
    const { page } = await openPage(t, browser, `${baseUrl}/docs/api`, { colorScheme, bypassCSP: true })
    await page.evaluate(axe.source)
    for (const [tab, viewport] of sizes.entries()) {
      await page.setViewportSize(viewport)
      // Another language at each size, so that the colours of all examples are seen, and nothing is folded away.
      await page.evaluate(`document.querySelectorAll('.tabs input')[${tab}].click()
        for (const folded of document.querySelectorAll('details')) folded.open = true`)
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByRole('status').filter({ hasText: '400' }).waitFor()
      const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
      const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
      assert.deepEqual(found, [], `${colorScheme}, ${viewport.width} px`)
    }
  }
  await Promise.all([look('light'), look('dark')])
})

test('C-58: nothing is wider than the screen, from 320 px on', { skip: skipReading }, async t => {
  const SERVICE_NAME = 'Waitlist'.repeat(12)
  const { baseUrl } = await startService(t, { SERVICE_NAME })
  const { page } = await openPage(t, browser, `${baseUrl}/docs/api`)
  await page.evaluate(`for (const folded of document.querySelectorAll('details')) folded.open = true`)
  for (const width of [320, 360, 768, 1100, 1440]) {
    await page.setViewportSize({ width, height: 800 })
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width)
  }
})

test('C-58: every link of the page leads somewhere, and every anchor exists once', { skip: skipReading }, async () => {
  const page = await reloaded()
  const { origin: baseUrl } = new URL(url)
  const ids = await page.locator('[id]').evaluateAll(elements => elements.map(({ id }) => id))
  assert.equal(new Set(ids).size, ids.length)
  const hrefs = await page.evaluate<string[]>(`[...document.querySelectorAll('a, link')].map(({ href }) => href)`)
  const links = [...new Set(hrefs)].filter(href => !href.startsWith('data:')).map(href => new URL(href))
  assert.ok(links.length > 25)
  const here = `${baseUrl}/docs/api`
  for (const { origin, pathname, hash } of links) {
    assert.equal(origin, baseUrl)
    if (origin + pathname === here && hash !== '') assert.ok(ids.includes(hash.slice(1)), hash)
    else assert.equal((await fetch(origin + pathname)).status, 200, pathname)
  }
  const headings = await page.locator('main :is(h2, h3)').evaluateAll(all => all.map(heading => heading.id))
  for (const id of headings) assert.ok(links.some(link => link.hash === `#${id}`))
})

/** The languages in which an example of several is shown, for each such example. */
const shownLanguages = (page: Page) =>
  page
    .locator('.tabs')
    .evaluateAll(cards =>
      cards.map(card =>
        [...card.querySelectorAll('pre')]
          .filter(pre => pre.getClientRects().length > 0)
          .map(pre => pre.dataset.language),
      ),
    )

test('C-58: a language that is chosen with the keyboard is that of every example, and is remembered', {
  skip: skipReading,
}, async () => {
  const page = await reloaded()
  const cards = await page.locator('.tabs').count()
  const everywhere = (language: string) => Array(cards).fill([language])
  assert.deepEqual(await shownLanguages(page), everywhere('sh'))
  await page.locator('.tabs input:checked').last().focus()
  for (const [key, language] of [
    ['ArrowRight', 'js'],
    ['ArrowRight', 'python'],
    ['ArrowLeft', 'js'],
  ] as const) {
    const top = 'document.activeElement.getBoundingClientRect().top'
    const before = await page.evaluate<number>(top)
    await page.keyboard.press(key)
    assert.deepEqual(await shownLanguages(page), everywhere(language))
    assert.ok(Math.abs((await page.evaluate<number>(top)) - before) < 1, 'what is looked at stays where it is')
    assert.equal(
      await styleOf(page, `document.querySelector(':focus + label')`, 'outlineStyle'),
      'solid',
      'the focus is seen',
    )
  }
  await page.reload()
  assert.deepEqual(await shownLanguages(page), everywhere('js'))
  assert.equal(await page.locator('.tabs input:checked').first().inputValue(), 'js')
})

test('C-58: a theme that is chosen beats that of the system, and is remembered', { skip: skipReading }, async () => {
  const page = await reloaded()
  const isDark = () =>
    styleOf(page, 'document.documentElement', 'backgroundColor').then(colour => colour === 'rgb(13, 16, 22)')
  const theme = page.getByRole('combobox', { name: 'Theme' })
  assert.equal(await isDark(), false)
  await theme.selectOption('Dark')
  assert.equal(await isDark(), true)
  await page.reload()
  assert.deepEqual([await isDark(), await theme.inputValue()], [true, 'dark'])
  await theme.selectOption('Light')
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.equal(await isDark(), false)
  await theme.selectOption('System')
  assert.equal(await isDark(), true)
})

test('C-58: without storage a choice holds until the page is left', {
  skip: skipReading,
}, async t => {
  const context = await browser.newContext()
  t.after(() => context.close())
  await context.addInitScript(`Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused') } })`)
  const page = await context.newPage()
  await page.goto(url)
  await page.getByText('Python').first().click()
  assert.deepEqual((await shownLanguages(page))[0], ['python'])
  await page.getByRole('combobox', { name: 'Theme' }).selectOption('Dark')
  assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark')
})

test('C-58: the keyboard skips to the content, opens the menu of a phone, and Escape closes it', {
  skip: skipReading,
}, async () => {
  const page = await reloaded(sizes[0])
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate('document.activeElement.hash'), '#content')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
  const menu = page.getByRole('button', { name: 'Menu' })
  await menu.press('Enter')
  assert.deepEqual(await isVisible(page, 'nav'), [true])
  await page.keyboard.press('Tab')
  assert.equal(await page.locator('nav :focus').count(), 1, 'the focus goes into the menu')
  await page.keyboard.press('Escape')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
  assert.equal(await menu.evaluate(button => button.matches(':focus')), true, 'the focus returns')
  await menu.press('Enter')
  await page.locator('nav a[href="#rate-limits"]').press('Enter')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
  assert.ok((await page.locator('#rate-limits').boundingBox())!.y < 200, 'the section is in sight')
  await menu.press('Enter')
  await page.getByRole('button', { name: 'Close' }).press('Enter')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
})

test('C-58: the section that is read is marked, at every width', { skip: skipReading }, async () => {
  const page = await reloaded()
  for (const viewport of sizes) {
    await page.setViewportSize(viewport)
    for (const [id, title] of [
      ['rate-limits', 'Rate limits'],
      ['report-health', 'Report health'],
      ['shared-headers-and-errors', 'Shared headers and errors'],
      ['introduction', 'Introduction'],
    ]) {
      await page.evaluate(`location.hash = '#${id}'`)
      await page.locator('.here').getByText(title!, { exact: true }).waitFor()
      assert.deepEqual(await isVisible(page, '.here'), [true])
      assert.deepEqual(
        await page.locator('nav [aria-current]').evaluateAll(all => all.map(link => link.getAttribute('href'))),
        [`#${id}`],
      )
    }
  }
})

test('C-58: an example is copied by a click or a key, as it is to be run, and that is said', {
  skip: skipReading,
}, async () => {
  const page = await reloaded()
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const copied = () => page.evaluate('navigator.clipboard.readText()')
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
    assert.equal(await copied(), await card.locator(`pre[data-language=${language}]`).textContent())
  }
  assert.equal(await page.locator('.code .copy').count(), await page.locator('.code').count(), 'each has its button')

  // Over plain HTTP browsers have no such clipboard.
  await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
  const other = page.locator('.code', { hasText: 'Base URL' })
  await other.getByRole('button').click()
  await page.getByRole('status').filter({ hasText: 'Copied: Base URL' }).waitFor()
  await page.locator('.search input').press('ControlOrMeta+V')
  assert.equal(await page.locator('.search input').inputValue(), new URL(url).origin)
})

test('C-58: a part of an example can be selected, and no line of it is cut', { skip: skipReading }, async t => {
  const page = await reloaded(sizes[0])
  const code = page.locator('pre', { hasText: '"success"' }).first()
  await code.locator('b', { hasText: 'success' }).dblclick()
  assert.equal(await page.evaluate('getSelection().toString().trim()'), 'success')
  const cut = await page.locator('pre').evaluateAll(all => all.filter(pre => pre.scrollWidth > pre.clientWidth).length)
  assert.equal(cut, 0)
  const scrolled = page.locator('pre.long').first()
  assert.match(await styleOf(page, `document.querySelector('pre.long')`, 'backgroundImage'), /gradient/, 'it fades')
  await scrolled.focus()
  await page.keyboard.press('End')
  await t.waitFor(async () => assert.ok((await scrolled.evaluate(pre => pre.scrollTop)) > 0))
})

test('C-58: the search finds headings and fields, also those that are folded away', { skip: skipReading }, async () => {
  const page = await reloaded()
  const input = page.getByRole('searchbox', { name: 'Search this page' })
  const results = page.locator('.search a')
  await page.keyboard.press('/')
  assert.equal(await input.evaluate(element => element.matches(':focus')), true)
  assert.equal(await input.inputValue(), '')
  await page.keyboard.type('rate lim')
  await page
    .getByRole('status')
    .filter({ hasText: /^[2-9] results$/ })
    .waitFor()
  assert.match((await results.first().textContent())!, /^Rate limits/)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  assert.match(page.url(), /#rate-limits$/)

  await input.fill('service-desc[].href')
  await input.press('Enter')
  const field = page.locator('dt', { hasText: 'service-desc[].href' })
  assert.deepEqual(
    [await field.isVisible(), await page.locator('.found dt').textContent()],
    [true, await field.textContent()],
  )
  await page.reload()
  await field.waitFor()

  await input.fill('no such thing')
  await page.getByRole('status').filter({ hasText: '0 results' }).waitFor()
  await input.press('Escape')
  assert.deepEqual([await input.inputValue(), await results.count()], ['', 0])
  assert.deepEqual(await isVisible(page, '.links'), [true])

  await page.setViewportSize(sizes[0]!)
  await page.locator('h1').click()
  await page.keyboard.press('/')
  assert.equal(await page.locator('nav input:focus').count(), 1, 'on a phone the menu opens')
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

test('C-58: without the script everything is read, and what needs it is not there', { skip: skipReading }, async t => {
  const { page } = await openPage(t, browser, url, { javaScriptEnabled: false, viewport: sizes[2]! })
  for (const selector of ['.scripted', '.copy']) assert.ok((await isVisible(page, selector)).every(visible => !visible))
  assert.deepEqual((await shownLanguages(page))[0], ['sh'])
  await page.getByText('Python').first().click()
  assert.deepEqual((await shownLanguages(page))[0], ['python'])
  await page.locator('summary').first().click()
  await page.locator('dt', { hasText: 'service-desc' }).first().waitFor()
  await page.setViewportSize(sizes[0]!)
  await page.getByRole('button', { name: 'Menu' }).click()
  assert.deepEqual(await isVisible(page, 'nav'), [true])
})

test('C-58: nothing moves while the page is drawn, whatever was chosen before', { skip: skipReading }, async t => {
  const page = await reloaded()
  await page.getByText('Python').first().click()
  await page.getByRole('combobox', { name: 'Theme' }).selectOption('Dark')
  await page.addInitScript(`
    self.shifts = []
    new PerformanceObserver(list => shifts.push(...list.getEntries().map(({ value }) => value)))
      .observe({ type: 'layout-shift', buffered: true })`)
  for (const viewport of sizes) {
    await page.setViewportSize(viewport)
    await page.reload()
    // Ten frames, since what moves does so after it was drawn once.
    await page.evaluate(
      'new Promise(done => { let left = 10; (function frame() { left-- ? requestAnimationFrame(frame) : done() })() })',
    )
    assert.deepEqual(await page.evaluate('shifts'), [], `${viewport.width} px`)
  }
  t.after(() => page.evaluate('localStorage.clear()'))
})

test('C-58: the form comes first; on a phone the name is whole and what a button says is in one line', {
  skip: skipReading,
}, async () => {
  const page = await reloaded({ width: 375, height: 720 })
  const [first] = await page.locator('main h3').allTextContents()
  assert.equal(first, 'A form for your page')
  assert.equal(await page.locator('.brand span').evaluate(name => name.scrollWidth > name.clientWidth), false)
  const button = page.locator('.copy').first()
  const height = () => button.evaluate(({ scrollHeight }) => scrollHeight)
  const before = await height()
  await button.click()
  await button.filter({ hasText: 'Copied' }).waitFor()
  assert.equal(await height(), before)
})

test('C-58: the page is nine screens of a desk at most', { skip: skipReading }, async () => {
  const heightAt = async (width: number, height: number) =>
    (await reloaded({ width, height })).evaluate<number>('document.documentElement.scrollHeight')
  assert.ok((await heightAt(1280, 800)) <= 9 * 800)
  assert.ok((await heightAt(390, 844)) <= 15 * 844)
})

test('C-58: on paper there are all examples on nine sheets, and no navigation, dark on white', {
  skip: skipReading,
}, async () => {
  const page = await reloaded(sizes[2], 'dark')
  const ground = () => styleOf(page, 'document.documentElement', 'backgroundColor')
  assert.notEqual(await ground(), 'rgb(255, 255, 255)')
  await page.emulateMedia({ media: 'print' })
  assert.equal(await ground(), 'rgb(255, 255, 255)')
  const shown = await isVisible(page, 'main pre:not(.answer pre)')
  assert.ok(shown.length > 10 && shown.every(Boolean))
  assert.ok((await isVisible(page, 'nav, .bar, .copy, .scripted, .tabs label')).every(visible => !visible))
  const pdf = (await page.pdf({ format: 'A4' })).toString('latin1')
  assert.ok(pdf.match(/\/Type\s*\/Page\b/g)!.length <= 9)
})

test('C-58: a visitor who asks for less motion gets none', {
  skip: skipReading,
}, async () => {
  const page = await reloaded()
  const behaviour = () => styleOf(page, 'document.documentElement', 'scrollBehavior')
  assert.equal(await behaviour(), 'auto')
  await page.emulateMedia({ reducedMotion: null })
  assert.equal(await behaviour(), 'smooth')
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
  form = (await docs.page.locator('pre[data-language=html]').textContent())!

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
    await signUpThere('Eve', 'eve@example.com', 'The waitlist could not be reached. Please try again.'),
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

test('C-20, C-53: the form of the page tells a signup that is saved but late from one that failed, and sends it once', {
  skip: skipReading,
}, async t => {
  let form = ''
  const landing = await landingPage(t, () => `<!doctype html><html lang="en"><meta charset="utf-8">${form}</html>`)
  const vendor = await startVendor(t, loopsFake().answer)
  vendor.chaos(1, 1, ['503'])
  const env = { PROVIDER: 'loops', ...loopsSettings(vendor.url), CORS_ORIGINS: landing }
  const { baseUrl, databasePath } = await startService(t, env)
  const docs = await openPage(t, browser, `${baseUrl}/docs/api`)
  form = (await docs.page.locator('pre[data-language=html]').textContent())!

  const { page } = await openPage(t, browser, landing)
  let sent = 0
  page.on('request', request => {
    if (request.method() === 'POST') sent++
  })
  await page.getByLabel('Name').fill('Grace')
  await page.getByLabel('Email').fill('grace@')
  await page.getByLabel('Name').focus()
  await page.getByText('Please check this email address.').waitFor()
  await page.getByLabel('Email').fill('grace@example.com')
  await page.getByRole('button').dblclick()
  await page.getByRole('status').getByText('Your signup is saved. You will be on the waitlist shortly.').waitFor()
  assert.equal(sent, 1)
  assert.deepEqual(
    contactsIn(databasePath).map(({ email, state }) => [email, state]),
    [['grace@example.com', 'pending']],
  )
})

test('a form that was copied before TRACK_SOURCES=true hands on where the visitor came from', {
  skip: skipReading,
}, async t => {
  let form = ''
  const landing = await landingPage(t, () => `<!doctype html><html lang="en"><meta charset="utf-8">${form}</html>`)
  const { baseUrl, databasePath } = await startService(t, { CORS_ORIGINS: landing, TRACK_SOURCES: 'true' })
  const docs = await openPage(t, browser, url)
  const copied = (await docs.page.locator('pre[data-language=html]').textContent())!
  form = copied.replace(new URL(url).origin, baseUrl)

  const signUp = async (query: string, email: string) => {
    const { page } = await openPage(t, browser, `${landing}/${query}`)
    await page.getByLabel('Name').fill('Grace')
    await page.getByLabel('Email').fill(email)
    await page.getByRole('button').click()
    await page.getByRole('status').getByText('You are on the waitlist.', { exact: true }).waitFor()
  }
  await signUp('?utm_source=Früh & spät&gclid=1#ref=no', 'grace@example.com')
  await signUp('', 'ada@example.com')
  const sql = 'select source from contact order by number'
  const sources = withDatabase(databasePath, database =>
    database
      .prepare(sql)
      .all()
      .map(({ source }) => source),
  )
  assert.deepEqual(sources, ['{"utm_source":"Früh"}', null])
})

const altchaScript = new URL('../../node_modules/altcha/dist/main/altcha.min.js', import.meta.url)
const easy = { CHALLENGE: 'altcha', CHALLENGE_RANGE: '50' }

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

test('the form with ALTCHA works on a landing page of another origin, with the file that the page names', {
  skip: skip || (!isSlow && 'in .ci/run'),
}, async t => {
  const { page, service, form, fill, says } = await landed(t, easy)
  await page.route('**/altcha.min.js', route => route.fulfill({ path: fileURLToPath(altchaScript) }))
  await page.goto(page.url())
  assert.match(form, /src="altcha\.min\.js"/)
  await fill('ada@example.com')
  await says('You are on the waitlist.')
  assert.deepEqual(
    contactsIn(service.databasePath).map(({ email }) => email),
    ['ada@example.com'],
  )
})

/** A landing page with the form that the documentation of a service shows, as its copy button copies it. */
async function landed(t: TestContext, env: Record<string, string>) {
  let form = ''
  const landing = await landingPage(t, () => `<!doctype html><html lang="en"><meta charset="utf-8">${form}</html>`)
  const service = await startService(t, { CORS_ORIGINS: landing, ...env })
  const { page: docs } = await openPage(t, browser, `${service.baseUrl}/docs/api`)
  await docs.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await docs.getByRole('button', { name: 'Copy: A working form' }).click()
  await docs.getByRole('status').filter({ hasText: 'Copied: A working form' }).waitFor()
  form = await docs.evaluate<string>('navigator.clipboard.readText()')
  const { page } = await openPage(t, browser, landing)
  return {
    page,
    service,
    form,
    async fill(email: string) {
      await page.getByLabel('Name').fill('Ada')
      await page.getByLabel('Email').fill(email)
      await page.getByRole('button', { name: 'Join the waitlist' }).click()
    },
    says: (sentence: string) => page.getByRole('status').getByText(sentence, { exact: true }).waitFor(),
  }
}

/** What the script of a vendor does, as far as a form notices: a field in the place of the widget, and a reset. */
const standIn = (kind: Kind, token: string): string => `
  const [place] = document.querySelectorAll('.cf-turnstile, .h-captcha, .frc-captcha, .g-recaptcha, cap-widget')
  if (!place.getAttribute('data-sitekey') && !place.getAttribute('data-cap-api-endpoint')) throw new Error('no site key')
  const field = Object.assign(document.createElement('input'), { type: 'hidden', name: '${members[kind]}' })
  const unsolved = '${kind === 'friendlycaptcha' ? '.UNCONNECTED' : ''}'
  field.value = unsolved
  place.append(field)
  globalThis.solve = () => { field.value = '${token}' }
  const reset = () => { field.value = unsolved; document.documentElement.dataset.reset = '' }
  place.reset = reset
  globalThis.turnstile = globalThis.hcaptcha = globalThis.grecaptcha = { reset }
  globalThis.frcaptcha = { getAllWidgets: () => [{ reset }] }`

for (const kind of kinds) {
  test(`the form with the widget of ${kind} waits for its solution, and asks for a new one after a refusal`, {
    skip: skip || (!isSlow && kind !== 'turnstile' && 'in .ci/run'),
  }, async t => {
    const verifier = await startVerifier(t, kind)
    const token = verifier.solve({ host: '127.0.0.1' })
    const env = { CHALLENGE: kind, CHALLENGE_SECRET: SECRET, CHALLENGE_URL: verifier.address }
    const { page, service, fill, says } = await landed(t, env)
    const [script = ''] = /(?<=src=")[^"]+/.exec(vendors[kind].widget.script) ?? []
    // A module from another origin needs CORS, as the vendor's has it.
    const headers = { 'access-control-allow-origin': '*', 'content-type': 'text/javascript' }
    await page.route(script, route => route.fulfill({ headers, body: standIn(kind, token) }))
    await page.goto(page.url())
    await page.waitForFunction('globalThis.solve')
    await fill('ada@example.com')
    await says('Please solve the challenge, or wait until it is solved.')
    assert.equal(verifier.asked.length, 0)
    await page.evaluate('solve()')
    await fill('ada@example.com')
    await says('You are on the waitlist.')
    await page.goto(page.url())
    await page.waitForFunction('globalThis.solve')
    await page.evaluate('solve()')
    await fill('eve@example.com')
    await says('The challenge was used for another signup, please solve a new one.')
    assert.equal(await page.evaluate('document.documentElement.dataset.reset'), '')
    assert.deepEqual(
      contactsIn(service.databasePath).map(({ email }) => email),
      ['ada@example.com'],
    )
  })
}

test('where a challenge is that of a vendor, the page says why a signup cannot be tried there', {
  skip: skip || (!isSlow && 'in .ci/run'),
}, async t => {
  const { baseUrl } = await startService(t, { CHALLENGE: 'turnstile', CHALLENGE_SECRET: 'x' })
  const { page, origins } = await openPage(t, browser, `${baseUrl}/docs/api`)
  assert.match(await page.locator('section:has(> #try-it)').innerText(), /needs a Turnstile solution/)
  await page.getByLabel('Name').fill('Ada')
  await page.getByLabel('Email').fill('ada@example.com')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('"error": "please solve the challenge"').waitFor()
  assert.deepEqual([...origins], [baseUrl])
})

for (const env of [
  { ...easy, HOLD_SUSPICIOUS: 'true' },
  { CHALLENGE: 'turnstile', CHALLENGE_SECRET: 'x' },
]) {
  test(`with ${env.CHALLENGE} the page is as accessible, as narrow and as well linked`, {
    skip: skip || (!isSlow && 'in .ci/run'),
    timeout: 60_000,
  }, async t => {
    const { baseUrl } = await startService(t, env)
    const { page } = await openPage(t, browser, `${baseUrl}/docs/api`, { bypassCSP: true, reducedMotion: 'reduce' })
    const anchors = await page.evaluate<string[]>(`[...document.querySelectorAll('a')].map(link => link.hash)`)
    for (const hash of new Set(anchors)) {
      if (hash !== '') assert.equal(await page.locator(`[id="${hash.slice(1)}"]`).count(), 1, hash)
    }
    await page.evaluate(axe.source)
    await page.evaluate(`for (const folded of document.querySelectorAll('details')) folded.open = true`)
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      for (const width of [320, 360, 1280]) {
        await page.setViewportSize({ width, height: 800 })
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width)
        if (width === 320) continue
        const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
        const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
        assert.deepEqual(found, [], `${colorScheme}, ${width} px`)
      }
    }
  })
}
