/** The pages behind the links in mails, as their readers see them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import { ofLinks } from '../../src/http/messages/links.ts'
import { linksOf } from '../../src/links/links.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { openTestServer } from '../harness/server.ts'
import { wholeFile } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const started = isSlow
  ? await startBrowser(wholeFile)
  : { missing: 'it takes seconds of a processor; it runs in .ci/run' }
const skip = 'missing' in started && started.missing
const browser = started as Exclude<typeof started, { missing: string }>

const secret = 'ab'.repeat(32)
const ada = { id: '01981d4f-3c00-7c4e-9d0a-3f1c2b4d5e6f', email: 'ada@example.com' }
const hostile = `${'W'.repeat(40)}</title><script>console.error('run')</script>`
const settings = {
  SERVICE_NAME: hostile,
  MESSAGES_FILE: fileURLToPath(new URL('../../examples/messages/messages.json', import.meta.url)),
}
const left: string[] = []
const { baseUrl } = await openTestServer(wholeFile, settings, store => store, {
  links: {
    secret,
    confirm: async () => 'now',
    async leave(email) {
      left.push(email)
    },
  },
})
const links = linksOf(baseUrl, secret, 3_600_000)
const expired = linksOf(baseUrl, secret, 0).confirm(ada)

test('without script, one press of the button does what the link is for', { skip }, async t => {
  const options = { javaScriptEnabled: false }
  const { page, complaints, origins } = await openPage(t, browser, links.unsubscribe(ada), options)
  assert.equal(await page.locator('h1').textContent(), ofLinks['unsubscribe.ask'])
  assert.deepEqual(left, [])
  await page.getByRole('button').click()
  assert.equal(await page.locator('h1').textContent(), ofLinks['unsubscribe.done'])
  assert.deepEqual(left, [ada.email])
  await page.goto(links.confirm(ada))
  await page.getByRole('button', { name: ofLinks['confirm.button'] }).click()
  assert.equal(await page.locator('h1').textContent(), ofLinks['confirm.done'])
  assert.deepEqual([complaints, [...origins]], [[], [baseUrl]])
})

test('axe-core finds no violation, and nothing is wider than the screen, in light and dark, on a phone and a desk', {
  skip,
}, async t => {
  const pages = [links.confirm(ada), links.unsubscribe(ada), expired, `${baseUrl}/confirm`]
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [width, locale] of [
      [320, 'ar'],
      [320, 'de'],
      [1440, 'en'],
    ] as const) {
      // Only here may a script be put into the page.
      const options = { colorScheme, locale, viewport: { width, height: 740 }, bypassCSP: true }
      const { page } = await openPage(t, browser, pages[0]!, options)
      for (const [i, link] of pages.entries()) {
        await page.goto(link)
        // The first two also with what they say when it is done.
        for (const isDone of i < 2 ? [false, true] : [false]) {
          if (isDone) await page.getByRole('button').click()
          const where = `${link}, ${colorScheme}, ${locale}, ${isDone}`
          assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width, where)
          await page.evaluate(axe.source)
          const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
          assert.deepEqual(
            violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)]),
            [],
            where,
          )
          assert.equal(await page.evaluate('document.documentElement.lang'), locale)
        }
      }
    }
  }
})
