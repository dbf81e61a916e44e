import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { sentences } from '../../src/form/script.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { contactsIn } from '../harness/database.ts'
import { FORM, landing, pageWith } from '../harness/landing.ts'
import { startService, type TestService } from '../harness/service.ts'

const started = await startBrowser({ after: after as TestContext['after'] })
const skip = 'missing' in started && started.missing
const browser = started as Browser

const joined = 'You are on the waitlist.'
const known = 'You are already on the waitlist.'

interface Visit {
  readonly page: Page
  readonly complaints: readonly string[]
  readonly origins: ReadonlySet<string>
  /** How many signups the page has sent. */
  sent(): number
  fill(name: string, email: string): Promise<void>
  /** Fills in the form and sends it. */
  signUp(name: string, email: string): Promise<void>
  /** Waits until the form says this to everybody, also to those who cannot see it. */
  says(sentence: string | RegExp): Promise<void>
  /** Waits until a field has this hint, or none, and is marked accordingly. */
  hints(field: 'Name' | 'Email', hint: string): Promise<void>
  /** What this device keeps. */
  kept(): Promise<{ name: string; email: string; time: number }[]>
}

/** Any tab: that of a visitor, or another one of theirs. */
function visiting(page: Page): Omit<Visit, 'complaints' | 'origins'> {
  let sent = 0
  page.on('request', request => {
    if (request.method() === 'POST') sent++
  })
  const fill = async (name: string, email: string) => {
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Email').fill(email)
  }
  return {
    page,
    sent: () => sent,
    fill,
    async signUp(name, email) {
      await fill(name, email)
      await page.getByRole('button', { name: 'Join the waitlist' }).click()
    },
    says: sentence => page.getByRole('status').getByText(sentence, { exact: true }).waitFor(),
    async hints(field, hint) {
      const marked = hint === '' ? ':not([aria-invalid=true])' : '[aria-invalid=true]'
      const input = page.getByLabel(field).and(page.locator(marked))
      await input.waitFor()
      const of = page.locator(`[id="${await input.getAttribute('aria-describedby')}"]`)
      const there = hint === '' ? of.and(page.locator(':empty')) : of.getByText(hint, { exact: true })
      await there.waitFor({ state: 'attached' })
    },
    kept: () => page.evaluate(`Object.values(localStorage).map(each => JSON.parse(each))`),
  }
}

async function visit(t: Pick<TestContext, 'after'>, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const { page, complaints, origins } = await openPage(t, browser, 'about:blank', options)
  const visitor = visiting(page)
  await page.goto(url)
  return { ...visitor, complaints, origins }
}

/** A page of another origin with the one line in it, and the service that it sends to. */
async function opened(
  t: TestContext,
  { env = {}, html = pageWith(FORM), options = {} as BrowserContextOptions, path = '' } = {},
) {
  const { originAt, sendTo } = await landing(t, html)
  const origin = originAt('localhost')
  const service = await startService(t, { CORS_ORIGINS: origin, ...env })
  sendTo(service.baseUrl)
  return { ...(await visit(t, origin + path, options)), origin, service }
}

const emails = ({ databasePath }: TestService) => contactsIn(databasePath).map(({ email }) => email)

describe('the form, under a strict policy, on another origin than its service', { skip, timeout: 120_000 }, () => {
  test('a new address and one that is known; a double click sends once; nothing comes from elsewhere', async t => {
    const { page, service, origin, fill, signUp, says, sent, kept, complaints, origins } = await opened(t)
    await fill(' Ada Lovelace ', 'ada@example.com')
    const height = () => page.evaluate(`document.querySelector('form').offsetHeight`)
    const before = await height()
    await page.getByRole('button').dblclick()
    await says(joined)
    await page.getByRole('status').and(page.locator(':focus')).waitFor()
    assert.equal(sent(), 1)
    assert.equal(await page.getByLabel('Name').isVisible(), false)
    const thanks = ['Thank you, Ada Lovelace.', joined, 'ada@example.com']
    assert.deepEqual((await page.getByRole('status').innerText()).split('\n'), thanks)
    assert.equal(await height(), before, 'nothing moves')
    assert.deepEqual(await kept(), [])
    await page.reload()
    await signUp('Ada', 'ADA@example.com')
    await says(known)
    assert.deepEqual(emails(service), ['ada@example.com'])
    assert.deepEqual(complaints, [])
    assert.deepEqual([...origins].sort(), [origin, service.baseUrl].sort())
  })

  test('a hint comes when a field is left, goes while it is put right, and a submission leads to the first', async t => {
    const { page, hints, sent, signUp } = await opened(t)
    const [name, email] = [page.getByLabel('Name'), page.getByLabel('Email')]
    await name.focus()
    await email.focus()
    await hints('Name', '')
    await email.pressSequentially('ada@')
    await hints('Email', '')
    await name.fill('é'.repeat(101))
    await hints('Email', sentences.emailWrong!)
    await page.getByRole('button').click()
    await hints('Name', 'Please use at most 100 characters.')
    await name.and(page.locator(':focus')).waitFor()
    await name.fill('🚀'.repeat(100))
    await hints('Name', '')
    await email.pressSequentially('example.com')
    await hints('Email', '')
    await signUp(' ', ' ')
    await hints('Name', sentences.nameMissing!)
    await hints('Email', sentences.emailMissing!)
    await signUp('Ada', `${'a'.repeat(244)}@example.com`)
    await hints('Email', 'Please use at most 255 characters.')
    assert.equal(sent(), 0)
  })

  test('the service is away: saved, said, kept over a reload, and sent when it is back; the device forgets it', async t => {
    const { page, service, signUp, says, kept, origin, sent } = await opened(t)
    await page.route('**/api/waitlist*', route => route.abort())
    await signUp('Ada', 'ada@example.com')
    await says(sentences.kept!)
    assert.deepEqual(
      (await kept()).map(({ name, email, ...others }) => [name, email, Object.keys(others)]),
      [['Ada', 'ada@example.com', ['time']]],
    )
    await page.unroute('**/api/waitlist*')
    await page.goto(`${origin}/later`)
    await says(`Ada: ${joined}`)
    assert.deepEqual(await kept(), [])
    assert.deepEqual(emails(service), ['ada@example.com'])
    assert.equal(sent(), 2)
  })

  test('it speaks the language of its page or, if that says none, of the browser, and answers in it', async t => {
    const env = { MESSAGES_FILE: fileURLToPath(new URL('../../examples/messages/messages.json', import.meta.url)) }
    const german = await opened(t, { env, html: pageWith(FORM, 'lang="de_DE"'), options: { locale: 'fr-FR' } })
    await german.page.getByRole('button', { name: 'Auf die Warteliste setzen' }).waitFor()
    await german.page.getByLabel('Name').fill('Ada\u0007')
    await german.page.getByLabel('E-Mail').fill('ada@example.com')
    await german.page.getByRole('button').click()
    // Only the service knows this, so it is found beside its field by the sentence.
    const hint = german.page.getByText('Der Name darf keine Steuerzeichen enthalten.')
    await hint.and(german.page.locator('.hint')).waitFor()
    await german.page.getByLabel('Name').fill('Ada')
    await german.page.getByRole('button').click()
    await german.says('Danke, Ada.')
    await german.says('Du bist auf der Warteliste.')

    const arabic = await opened(t, { env, html: pageWith(FORM, ''), options: { locale: 'ar-EG' } })
    const button = arabic.page.getByRole('button', { name: 'الانضمام إلى قائمة الانتظار' })
    await button.waitFor()
    assert.deepEqual(
      await arabic.page.locator('form').evaluate(form => [form.getAttribute('lang'), form.getAttribute('dir')]),
      ['ar', 'rtl'],
    )
    await button.click()
    await arabic.page.getByText('يُرجى إدخال الاسم.').waitFor()
    await arabic.page.getByLabel('الاسم').fill('Ada')
    await arabic.page.getByLabel('البريد الإلكتروني').fill('ada@gmial.com')
    assert.equal(
      await arabic.page.evaluate(`getComputedStyle(document.querySelector('[type=email]')).direction`),
      'ltr',
    )
    await button.click()
    await arabic.says('تمت إضافتك إلى قائمة الانتظار.')
    assert.deepEqual(arabic.complaints, [])
  })
})
