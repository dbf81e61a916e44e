import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import { build } from 'esbuild'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { formScript, sentences } from '../../src/form/script.ts'
import { hashSource } from '../../src/pages/frame.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { landing, pageWith, SERVICE } from '../harness/landing.ts'
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

describe('the landing page, on another origin than its service', { skip, timeout: 120_000 }, () => {
  async function opened(t: TestContext, options: BrowserContextOptions = {}) {
    const { originAt, sendTo } = await landing(t, html, { policy })
    const origin = originAt('localhost')
    const service = await startService(t, { CORS_ORIGINS: origin })
    sendTo(service.baseUrl)
    const watched = await openPage(t, browser, 'about:blank', options)
    await watched.page.addInitScript(`
      globalThis.shifts = 0
      new PerformanceObserver(list => { for (const { value } of list.getEntries()) shifts += value })
        .observe({ type: 'layout-shift', buffered: true })`)
    return { ...watched, origin, service }
  }

  for (const width of [320, 768, 1280]) {
    test(`nothing moves while it loads, waits, keeps a signup and thanks, and it has at most 60 kB: ${width} px`, async t => {
      const { page, origin, origins, service, complaints } = await opened(t, { viewport: { width, height: 900 } })
      let bytes = 0
      page.on('requestfinished', async request => {
        const { responseHeadersSize, responseBodySize } = await request.sizes()
        bytes += responseHeadersSize + responseBodySize
      })
      await page.goto(origin)
      await page.getByLabel('Name').fill('Ada')
      await page.getByLabel('Email').fill('ada@example.com')
      await page.waitForLoadState('networkidle')
      assert.ok(bytes > 10_000 && bytes < 60_000, `${bytes} bytes`)
      const height = () => page.evaluate('document.documentElement.scrollHeight')
      const before = await height()
      // The visitor does nothing while the form says one thing after the other.
      const fails = Promise.withResolvers<void>()
      await page.route('**/api/waitlist', route => fails.promise.then(() => route.abort()), { times: 1 })
      await page.getByRole('button', { name: 'Join the waitlist' }).click()
      await page.getByText(sentences.slow!).waitFor()
      assert.deepEqual(complaints, [])
      fails.resolve()
      await page.getByText(sentences.kept!).waitFor()
      assert.equal(await height(), before)
      await page.getByText('We will write to ada@example.com when it is your turn.').waitFor()
      assert.equal(await height(), before)
      assert.equal(await page.evaluate('shifts'), 0)
      assert.deepEqual([...origins].filter(each => each !== 'null').sort(), [origin, service.baseUrl].sort())
    })
  }

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

test('the React component has at most 30 lines', () => {
  const lines = readFileSync(example('landing-react/Waitlist.tsx'), 'utf8').trimEnd().split('\n')
  assert.ok(lines.length <= 30, `${lines.length}`)
})

test('the React component is the form of the package, told where its service is, and tells who joined', {
  skip,
}, async t => {
  // What the package has under this name.
  const form = join(temporaryFolder(t), 'form.js')
  writeFileSync(form, formScript)
  const contents = `
    import { StrictMode } from 'react'
    import { createRoot } from 'react-dom/client'
    import { Waitlist } from ${JSON.stringify(example('landing-react/Waitlist.tsx'))}
    const root = createRoot(document.querySelector('#root'))
    const joined = outcome => { document.documentElement.dataset.outcome = outcome }
    root.render(<StrictMode><Waitlist service="${SERVICE}" label="Count me in" onJoined={joined} /></StrictMode>)`
  const { outputFiles } = await build({
    stdin: { contents, loader: 'tsx', resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    alias: { 'waitlist/form': form },
    external: ['./form-challenge.js'],
    // React warns of what it does not like, unless it is minified. Its configuration names types for this name.
    tsconfigRaw: '{}',
    bundle: true,
    write: false,
    jsx: 'automatic',
    format: 'esm',
  })
  const page = pageWith(`<div id="root"></div><script type="module">${outputFiles[0]!.text}</script>`)
  const { originAt, sendTo } = await landing(t, page, { policy: "script-src 'unsafe-inline'" })
  const origin = originAt('localhost')
  const service = await startService(t, { CORS_ORIGINS: origin })
  sendTo(service.baseUrl)
  const watched = await openPage(t, browser, origin)
  await watched.page.getByLabel('Name').fill('Ada')
  await watched.page.getByLabel('Email').fill('ada@example.com')
  await watched.page.getByRole('button', { name: 'Count me in' }).click()
  await watched.page.locator('[data-outcome=new]').waitFor()
  assert.deepEqual(watched.complaints, [])
})
