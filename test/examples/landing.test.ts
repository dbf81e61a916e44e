import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { hashSource } from '../../src/http/html.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { landing } from '../harness/landing.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const started = isSlow
  ? await startBrowser({ after: after as TestContext['after'] })
  : { missing: 'takes longer than npm test may; test/form tries the form itself' }
const skip = 'missing' in started && started.missing
const browser = started as Browser

const example = (path: string) => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url))
const html = readFileSync(example('landing/index.html'), 'utf8')
const [, style = ''] = /<style>(.*)<\/style>/s.exec(html) ?? []
const [, policy = ''] = /```\n(default-src .*)\n```/.exec(readFileSync(example('landing/README.md'), 'utf8')) ?? []

test('the landing page loads nothing but the form, and its README has the policy that allows just that', () => {
  assert.equal(html.match(/https:\/\/waitlist\.example\.com/g)?.length, 1, 'the address is in one place')
  assert.doesNotMatch(html, /(?:src|href)="(?!data:|https:\/\/waitlist\.example\.com\/form\.js")|@import|url\(/)
  assert.ok(policy.includes(`style-src ${hashSource(style)};`), `style-src ${hashSource(style)}`)
  assert.doesNotMatch(policy, /unsafe|\*|https:(?!\/\/waitlist\.example\.com)/)
})

/** On a phone, a tablet and at a desk, in light and dark: nothing sticks out, and axe finds no violation. */
async function looksRight(page: Page, state: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [320, 768, 1280]) {
      await page.setViewportSize({ width, height: 800 })
      // Without motion, so that no colour is looked at on its way.
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width, `${state}: wider than ${width}`)
      const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
      const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
      assert.deepEqual(found, [], `${state}, ${colorScheme}, ${width} px`)
    }
  }
}

describe('the landing page, on another origin than its service', { skip }, () => {
  async function opened(t: TestContext, options: BrowserContextOptions = {}) {
    const { originAt, sendTo } = await landing(t, html, { policy })
    const origin = originAt('localhost')
    const service = await startService(t, { CORS_ORIGINS: origin })
    sendTo(service.baseUrl)
    const watched = await openPage(t, browser, 'about:blank', options)
    return { ...watched, origin }
  }

  test('it takes a signup under the policy of its README', async t => {
    const { page, origin, complaints } = await opened(t)
    await page.goto(origin)
    await page.getByLabel('Name').fill('Ada')
    await page.getByLabel('Email').fill('ada@example.com')
    await page.getByRole('button', { name: 'Join the waitlist' }).click()
    await page.getByText('We will write to ada@example.com when it is your turn.').waitFor()
    assert.deepEqual(complaints, [])
  })

  test('axe finds no violation, before and after a signup', async t => {
    const { page, origin } = await opened(t, { bypassCSP: true })
    await page.goto(origin)
    await page.evaluate(axe.source)
    await page.getByLabel('Name').fill('Ada')
    await looksRight(page, 'ready')
    await page.getByLabel('Email').fill('ada@example.com')
    await page.getByRole('button', { name: 'Join the waitlist' }).click()
    await page.getByText('Thank you, Ada.').waitFor()
    await looksRight(page, 'done')
  })

  test('without JavaScript the form says what it needs', async t => {
    const { page, origin } = await opened(t, { javaScriptEnabled: false })
    await page.goto(origin)
    const words = page.locator('noscript')
    assert.equal(await words.isVisible(), true)
    assert.match(await words.innerText(), /^This form needs JavaScript/)
  })
})
