import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import PostalMime from 'postal-mime'
import { mailWriter } from '../../src/destinations/mail-message.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { isSlow } from '../harness/slow.ts'

const forAll = { after: after as TestContext['after'] }
const started = isSlow ? await startBrowser(forAll) : { missing: 'it takes seconds of a processor; it runs in .ci/run' }
const skip = 'missing' in started && started.missing
const browser = started as Browser

async function welcome(name: string): Promise<{ readonly html: string; readonly text: string }> {
  const from = { name: 'Acme', address: 'hello@acme.example' }
  const write = mailWriter({ from, subject: 'Hi', textFile: null, htmlFile: null, service: 'Acme & Sons' })
  const { html, text } = await PostalMime.parse(await write({ id: 'evt_1', name, email: 'ada@example.com' }))
  return { html: html!, text: text! }
}

test('the welcome mail fits a phone, says what its text says and is legible, in light and dark', {
  skip,
  timeout: 60_000,
}, async t => {
  for (const name of ['Ada Lovelace', '<img src=http://evil.example/x>', 'W'.repeat(100)]) {
    const { html, text } = await welcome(name)
    for (const colorScheme of ['light', 'dark'] as const) {
      const viewport = { width: 375, height: 667 }
      const { page, complaints, origins } = await openPage(t, browser, 'about:blank', { colorScheme, viewport })
      await page.setContent(html)
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 375)
      assert.equal(await page.evaluate('document.body.innerText'), `Acme & Sons\n\n${text.trimEnd()}`)
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
      assert.deepEqual(
        violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]),
        [],
        `${name}, ${colorScheme}`,
      )
      assert.deepEqual([complaints, [...origins].filter(origin => origin !== 'null')], [[], []])
    }
  }
})
