import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Browser } from 'playwright-core'
import { assertAccessible, openPage, startBrowser } from '../harness/browser.ts'
import { isSlow } from '../harness/environment.ts'
import { startService, wholeFile } from '../harness/service.ts'

const started = isSlow ? await startBrowser(wholeFile) : { missing: 'it runs in .ci/run' }
const skip = 'missing' in started && started.missing
const browser = started as Browser

test('C-58: a browser complains about nothing, axe-core finds nothing, and nothing is wider than the screen', {
  skip,
}, async t => {
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
