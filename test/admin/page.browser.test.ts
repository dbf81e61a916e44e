import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { page as pageOf, policy } from '../../src/admin/page.ts'
import { assertAccessible, openPage, startBrowser } from '../harness/browser.ts'
import { isSlow } from '../harness/environment.ts'
import { million, nobody } from './snapshots.ts'

/** A folder for pictures to look at. */
const { SCREENSHOTS } = process.env

test('axe finds nothing, the browser has no complaint, and nothing is wider than a phone or a desk, light and dark', {
  skip: !isSlow && SCREENSHOTS === undefined && 'it takes seconds of a processor; it runs in .ci/run',
}, async t => {
  const browser = await startBrowser(t)
  if ('missing' in browser) return t.skip(browser.missing)
  const snapshots = { million, nobody, down: { ...million, store: { takesSignups: false, freeBytes: 1 } } }
  const server = createServer((request, response) => {
    const snapshot = snapshots[request.url!.slice(1) as keyof typeof snapshots]
    const html = pageOf(snapshot, { service: 'Acme', version: '0.1.0', refreshes: true })
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy }).end(html)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close().closeAllConnections())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [320, 375, 1280]) {
      const viewport = { width, height: 900 }
      // Only so may axe be added to the page.
      const { page, origins } = await openPage(t, browser, `${origin}/nobody`, {
        colorScheme,
        viewport,
        bypassCSP: true,
      })
      for (const name of Object.keys(snapshots)) {
        await page.goto(`${origin}/${name}`)
        await assertAccessible(page, `${name}, ${colorScheme}, ${width}`)
        if (SCREENSHOTS === undefined) continue
        mkdirSync(SCREENSHOTS, { recursive: true })
        await page.screenshot({ path: join(SCREENSHOTS, `${name}-${colorScheme}-${width}.png`), fullPage: true })
      }
      assert.deepEqual([...origins], [origin])
    }
  }
  const { page, complaints } = await openPage(t, browser, `${origin}/million`)
  assert.equal(await page.evaluate('getComputedStyle(document.querySelector("main")).display'), 'grid')
  assert.deepEqual(complaints, [])
})
