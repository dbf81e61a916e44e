import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { hashSource } from '../../src/http/html.ts'
import { assertAccessible, landing, openPage, startBrowser } from '../harness/browser.ts'
import { isSlow } from '../harness/environment.ts'
import { startService } from '../harness/service.ts'

const read = (path: string) => readFileSync(new URL(`../../examples/landing/${path}`, import.meta.url), 'utf8')
const html = read('index.html')
const [, style = ''] = /<style>(.*)<\/style>/s.exec(html) ?? []
const [, policy = ''] = /```\n(default-src .*)\n```/.exec(read('README.md')) ?? []

test('the landing page loads nothing but the form, and its README has the policy that allows just that', () => {
  assert.equal(html.match(/https:\/\/waitlist\.example\.com/g)?.length, 1, 'the address is in one place')
  assert.doesNotMatch(html, /(?:src|href)="(?!data:|mailto:|https:\/\/waitlist\.example\.com\/form\.js")|@import|url\(/)
  assert.ok(policy.includes(`style-src ${hashSource(style)};`), `style-src ${hashSource(style)}`)
  assert.doesNotMatch(policy, /unsafe|\*|https:(?!\/\/waitlist\.example\.com)/)
})

test('it takes a signup under that policy; axe finds nothing on a phone, a tablet and a desk, in light and dark', {
  skip: !isSlow && 'takes longer than npm test may; test/form tries the form itself',
}, async t => {
  const browser = await startBrowser(t)
  if ('missing' in browser) return t.skip(browser.missing)
  const { originAt, sendTo } = await landing(t, html, { policy })
  const service = await startService(t, { CORS_ORIGINS: originAt('localhost') })
  sendTo(service.baseUrl)
  const { page, complaints } = await openPage(t, browser, originAt('localhost'), { reducedMotion: 'reduce' })
  const looksRight = async (state: string) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [320, 768, 1280]) {
        await page.setViewportSize({ width, height: 800 })
        await page.emulateMedia({ colorScheme })
        await assertAccessible(page, `${state}, ${colorScheme}, ${width} px`)
      }
    }
  }
  await page.getByLabel('Name').fill('Ada')
  await looksRight('ready')
  await page.getByLabel('Email').fill('ada@example.com')
  await page.getByRole('button', { name: 'Join the waitlist' }).click()
  await page.getByText('Thank you, Ada.').waitFor()
  await looksRight('done')
  assert.deepEqual(complaints, [])
  const scriptless = await openPage(t, browser, originAt('localhost'), { javaScriptEnabled: false })
  await scriptless.page.getByText('To join the waitlist, write to hello@example.com.').waitFor()
})
