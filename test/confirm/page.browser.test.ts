/** The pages behind the links in mails, as their readers see them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LINKS_SECRET, linksOf } from '../../src/confirm/token.ts'
import { pageSentences } from '../../src/http/messages/sentences.ts'
import { assertAccessible, openPage, startBrowser } from '../harness/browser.ts'
import { clientOf } from '../harness/client.ts'
import { sqlOn } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { startService, wholeFile } from '../harness/service.ts'

const started = isSlow ? await startBrowser(wholeFile) : { missing: 'it runs in .ci/run' }
const skip = 'missing' in started && started.missing
const browser = started as Exclude<typeof started, { missing: string }>

const { origin, databasePath } = await startService(wholeFile, {
  CONFIRM: 'mail',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'hello@example.com',
  BASE_URL: 'http://localhost:8080',
  SERVICE_NAME: `${'W'.repeat(40)}</title><script>console.error('run')</script>`,
  MESSAGES_FILE: new URL('../../examples/messages/messages.json', import.meta.url).pathname,
})
const { signUp } = await clientOf({ baseUrl: origin })
const sql = sqlOn(databasePath)

async function linksTo(email: string) {
  await signUp({ name: 'Ada', email })
  const [secret] = await sql(`select value from secret where name = '${LINKS_SECRET}'`)
  const [contact] = await sql(`select id, created_at from contact where email = '${email}'`)
  const addressee = { id: String(contact!.id), createdAt: new Date(Number(contact!.created_at)) }
  const { confirm, unsubscribe } = linksOf(origin, String(secret!.value))
  return { confirm: confirm(addressee), unsubscribe: unsubscribe(addressee) }
}

test('without scripts, one press of the button does what the link is for', { skip }, async t => {
  const { confirm, unsubscribe } = await linksTo('ada@example.com')
  const { page, complaints, origins } = await openPage(t, browser, confirm, { javaScriptEnabled: false })
  for (const [link, button, done] of [
    [confirm, 'confirm.button', 'confirm.done'],
    [unsubscribe, 'unsubscribe.button', 'unsubscribe.done'],
  ] as const) {
    await page.goto(link)
    await page.getByText('ada@example.com').waitFor()
    await page.getByRole('button', { name: pageSentences[button] }).click()
    await page.getByRole('heading', { name: pageSentences[done] }).waitFor()
  }
  assert.deepEqual([complaints, [...origins]], [[], [origin]])
})

test('axe-core finds no violation, and nothing is wider than the screen', { skip }, async t => {
  for (const [colorScheme, width, locale] of [
    ['light', 320, 'ar'],
    ['dark', 320, 'de'],
    ['light', 1440, 'de'],
    ['dark', 1440, 'en'],
  ] as const) {
    const { confirm, unsubscribe } = await linksTo(`${'w'.repeat(60)}.${locale}.${width}@example.com`)
    const options = { colorScheme, locale, viewport: { width, height: 740 }, bypassCSP: true }
    const { page } = await openPage(t, browser, confirm, options)
    const pages: (() => Promise<unknown>)[] = [
      () => page.goto(confirm),
      () => page.getByRole('button').click(),
      () => page.goto(unsubscribe),
      () => page.getByRole('button').click(),
      () => page.goto(confirm),
      () => page.goto(`${origin}/confirm`),
      () => page.goto(`${origin}/nothing`),
    ]
    for (const [i, open] of pages.entries()) {
      await open()
      const where = `page ${i}, ${colorScheme}, ${width}, ${locale}`
      await assertAccessible(page, where)
      assert.equal(await page.evaluate('document.documentElement.lang'), locale, where)
    }
  }
})
