import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
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

const schemes = ['light', 'dark'] as const
const sizes = [
  { width: 360, height: 740 },
  { width: 768, height: 1024 },
  { width: 1440, height: 900 },
]

const url = skip ? '' : `${(await startService(forAll)).baseUrl}/docs/api`
const tab = skip ? null : (await openPage(forAll, browser, url)).page

/** The page as it is by default, in the one tab of the tests that only look at it: a tab of their own costs them more. */
async function reloaded(viewport = sizes[2]!, colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
  const page = tab!
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme, media: null, reducedMotion: null })
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

test('C-58: the words of a hostile operator do nothing in a browser', { skip }, async t => {
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

test(`C-58: axe-core finds no violation, ${isSlow ? 'in light and dark, on a phone, a tablet and a desk' : 'on a desk in dark'}`, {
  skip,
}, async t => {
  const { baseUrl } = await startService(t)
  /** axe looks at everything, for a second of a processor: in `npm test` at a desk in the dark. */
  const isLookedAt = (colorScheme: 'light' | 'dark', tab: number) => isSlow || (colorScheme === 'dark' && tab === 2)

  const look = async (colorScheme: 'light' | 'dark') => {
    // Only here may a script be put into the page.
    const { page } = await openPage(t, browser, `${baseUrl}/docs/api`, { colorScheme, bypassCSP: true })
    await page.evaluate(axe.source)
    for (const [tab, viewport] of sizes.entries()) {
      if (!isLookedAt(colorScheme, tab)) continue
      await page.setViewportSize(viewport)
      // Another language at each size, so that the colours of all examples are seen.
      await page.evaluate(
        `document.querySelectorAll('.tabs input:nth-of-type(${tab + 1})').forEach(input => input.click())`,
      )
      const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
      const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
      assert.deepEqual(found, [], `${colorScheme}, ${viewport.width} px`)
    }
  }
  await Promise.all(isSlow ? [look('light'), look('dark')] : [look('dark')])
})

test('C-58: nothing is wider than the screen, from 320 px on', { skip }, async t => {
  const SERVICE_NAME = 'Waitlist'.repeat(12)
  const { baseUrl } = await startService(t, { SERVICE_NAME })
  const { page } = await openPage(t, browser, `${baseUrl}/docs/api`)
  for (const width of [320, 360, 768, 1100, 1440]) {
    await page.setViewportSize({ width, height: 800 })
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width)
  }
})

test('C-58: every link of the page leads somewhere, and every anchor exists once', { skip }, async t => {
  const { baseUrl } = await startService(t)
  const { page } = await openPage(t, browser, `${baseUrl}/docs/api`)
  const ids = await page.locator('[id]').evaluateAll(elements => elements.map(({ id }) => id))
  assert.equal(new Set(ids).size, ids.length)
  const hrefs = await page.evaluate<string[]>(`[...document.querySelectorAll('a, link')].map(({ href }) => href)`)
  const links = [...new Set(hrefs)].filter(href => !href.startsWith('data:')).map(href => new URL(href))
  assert.ok(links.length > 30)
  const here = `${baseUrl}/docs/api`
  for (const { origin, pathname, hash } of links) {
    assert.equal(origin, baseUrl)
    if (origin + pathname === here && hash !== '') assert.ok(ids.includes(hash.slice(1)), hash)
    else assert.equal((await fetch(origin + pathname)).status, 200, pathname)
  }
  const headings = await page.locator('main :is(h2, h3, h4)').evaluateAll(all => all.map(heading => heading.id))
  for (const id of headings) assert.ok(links.some(link => link.hash === `#${id}`))
})

test('C-58: the language of each example is chosen with the keyboard alone', { skip }, async () => {
  const page = await reloaded()
  const groups = await page.locator('fieldset.tabs').all()
  assert.ok(groups.length > 5)
  for (const [index, group] of groups.entries()) {
    const shown = () => isVisible(page, `fieldset.tabs >> nth=${index} >> pre`)
    await group.locator('input:checked').focus()
    for (const [key, expected] of [
      ['ArrowRight', [false, true, false]],
      ['ArrowRight', [false, false, true]],
      ['ArrowLeft', [false, true, false]],
    ] as const) {
      await page.keyboard.press(key)
      assert.deepEqual(await shown(), expected)
    }
    const focused = `document.querySelectorAll('fieldset.tabs')[${index}].querySelector('input:checked + label')`
    assert.equal(await styleOf(page, focused, 'outlineStyle'), 'solid', 'the focus is seen')
    await page.keyboard.press('Tab')
    assert.equal(await group.locator('pre:focus').count(), 1)
  }
})

test('C-58: the keyboard skips to the content, and opens and closes the menu of a phone', { skip }, async () => {
  const page = await reloaded(sizes[0])
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate('document.activeElement.hash'), '#content')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
  await page.locator('.menu').press('Enter')
  assert.deepEqual(await isVisible(page, 'nav'), [true])
  await page.keyboard.press('Tab')
  assert.equal(await page.locator('nav a:focus').count(), 1, 'the focus goes into the menu')
  await page.locator('nav a[href="#rate-limits"]').press('Enter')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
  await page.locator('#rate-limits').waitFor()
  await page.locator('.menu').press('Enter')
  await page.locator('nav .close').press('Enter')
  assert.deepEqual(await isVisible(page, 'nav'), [false])
})

test('C-58: a click selects a whole example, as it is to be run', { skip }, async () => {
  const page = await reloaded()
  const code = page.locator('pre[data-language=sh]').first()
  await code.click()
  const selected = await page.evaluate('getSelection().toString()')
  assert.equal(selected, await code.textContent())
})

test('C-58: on paper there are all examples and no navigation, dark on white', { skip }, async () => {
  const page = await reloaded(sizes[2], 'dark')
  const ground = () => styleOf(page, 'document.documentElement', 'backgroundColor')
  assert.notEqual(await ground(), 'rgb(255, 255, 255)')
  await page.emulateMedia({ media: 'print' })
  assert.equal(await ground(), 'rgb(255, 255, 255)')
  const shown = await isVisible(page, 'pre')
  assert.ok(shown.length > 20 && shown.every(Boolean))
  assert.ok((await isVisible(page, 'nav, .bar, .tabs label')).every(visible => !visible))
})

test('C-58: a visitor who asks for less motion gets none', { skip }, async () => {
  const page = await reloaded()
  const behaviour = () => styleOf(page, 'document.documentElement', 'scrollBehavior')
  assert.equal(await behaviour(), 'smooth')
  await page.emulateMedia({ reducedMotion: 'reduce' })
  assert.equal(await behaviour(), 'auto')
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
  skip,
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

test('with TRACK_SOURCES=true the form of the page hands on where the visitor came from', { skip }, async t => {
  let form = ''
  const landing = await landingPage(t, () => `<!doctype html><html lang="en"><meta charset="utf-8">${form}</html>`)
  const { baseUrl, databasePath } = await startService(t, { CORS_ORIGINS: landing, TRACK_SOURCES: 'true' })
  const docs = await openPage(t, browser, `${baseUrl}/docs/api`)
  form = (await docs.page.locator('pre[data-language=html]').textContent())!

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
