import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import fc from 'fast-check'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { vendors } from '../../src/challenges/vendors.ts'
import { sentences } from '../../src/form/script.ts'
import { EMAIL_PATTERN } from '../../src/signup/contact.ts'
import { parseSignup } from '../../src/signup/parse.ts'
import { type Kind, kinds, members, SECRET, SITE_KEY, startVerifier } from '../challenges/siteverify.fake.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { FORM, landing, POLICY, pageWith, SERVICE } from '../harness/landing.ts'
import { until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { startService, type TestService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { pairIn } from '../harness/tls.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const started = await startBrowser({ after: after as TestContext['after'] })
const skip = 'missing' in started && started.missing
const browser = started as Browser

/** `npm test` tries what is promised first; all take two minutes. */
const inRun = !isSlow && 'slow: WAITLIST_SLOW_TESTS=1'

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
  { env = {}, html = pageWith(FORM), options = {} as BrowserContextOptions, path = '', policy = POLICY } = {},
) {
  const { originAt, sendTo } = await landing(t, html, { policy })
  const origin = originAt('localhost')
  const service = await startService(t, { CORS_ORIGINS: origin, ...env })
  sendTo(service.baseUrl)
  return { ...(await visit(t, origin + path, options)), origin, service }
}

/** A file of domains that are refused. */
const blocked = join(temporaryFolder({ after: after as TestContext['after'] }), 'blocked.txt')
writeFileSync(blocked, 'blocked.example\n')

const emails = ({ databasePath }: TestService) => contactsIn(databasePath).map(({ email }) => email)

describe('the form, under a strict policy, on another origin than its service', { skip }, () => {
  test('a new address and one that is known; a double click sends once; nothing comes from elsewhere', async t => {
    const { page, service, origin, fill, signUp, says, sent, kept, complaints, origins } = await opened(t)
    await fill(' Ada Lovelace ', 'ada@example.com')
    const height = () => page.evaluate(`document.querySelector('form').getBoundingClientRect().height`)
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

  test('the service is away: saved, said, kept over a reload, and sent when it is back; the device forgets it', async t => {
    const { page, service, signUp, says, kept, origin, sent, complaints } = await opened(t)
    await page.route('**/api/waitlist*', route => route.abort())
    await signUp('Ada', 'ada@example.com')
    await says(sentences.kept!)
    assert.deepEqual(
      (await kept()).map(({ name, email, ...others }) => [name, email, Object.keys(others)]),
      [['Ada', 'ada@example.com', ['time']]],
    )
    // Another attempt does not bring a visitor back who reads on.
    const place = await page.evaluate('document.body.style.paddingBottom = "300vh"; scrollTo(0, 1500); scrollY')
    assert.equal(place, 1500)
    const before = sent()
    await until(() => sent() > before + 1)
    assert.equal(await page.evaluate('scrollY'), place)
    assert.ok(complaints.some(text => /: is http:\S+ in its CORS_ORIGINS\?$/.test(text)))
    await page.unroute('**/api/waitlist*')
    await page.goto(`${origin}/later`)
    await says(`Ada: ${joined}`)
    assert.deepEqual(await kept(), [])
    assert.deepEqual(emails(service), ['ada@example.com'])
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

describe('the form, whatever happens', { skip: skip || inRun }, () => {
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

  test('a slip in a common domain is asked about, a click puts it right, and it can be sent as it is', async t => {
    const { page, service, fill, says } = await opened(t)
    const better = page.getByRole('button', { name: /^Did you mean/ })
    await fill('Ada', 'Ada@Gmial.com')
    await page.getByLabel('Name').focus()
    assert.equal(await better.innerText(), 'Did you mean Ada@gmail.com?')
    await better.click()
    assert.equal(await page.getByLabel('Email').inputValue(), 'Ada@gmail.com')
    assert.equal(await better.count(), 0)
    // Another country's mailboxes are somebody's.
    for (const right of ['ada@yahoo.ca', 'Ada@gmail.com']) {
      await fill('Ada', right)
      await page.getByLabel('Name').focus()
      assert.equal(await better.count(), 0, right)
    }
    await fill('Ada', 'ada@hotmail.con')
    await page.getByRole('button', { name: 'Join the waitlist' }).click()
    await says(joined)
    assert.deepEqual(emails(service), ['ada@hotmail.con'])
  })

  test('after an attempt too many one sentence counts down, is read aloud once, and then it is sent', async t => {
    const { page, signUp, service, sent, kept, says } = await opened(t, {
      env: { RATE_LIMIT: '1/10m' },
    })
    // Somebody else at the same address uses up the quota.
    assert.equal((await fetch(`${service.baseUrl}/api/waitlist`, { method: 'POST' })).status, 400)
    await page.clock.install()
    await signUp('Ada', 'ada@example.com')
    const status = page.getByRole('status')
    await status.getByText('Too many attempts. We will try again in 10 min.').waitFor()
    await page.clock.fastForward(540_000)
    await status.getByText(/^Too many attempts\. We will try again in [1-9]\d? sec\.$/).waitFor()
    assert.equal(await status.getAttribute('aria-live'), 'off')
    // A click changes what is kept, and not when it is sent.
    await signUp('Ada Lovelace', 'ada@example.com')
    assert.deepEqual(
      (await kept()).map(({ name }) => name),
      ['Ada Lovelace'],
    )
    assert.equal(sent(), 1)
    await page.route('**/api/waitlist*', route =>
      route.fulfill({
        json: { success: true, message: 'Hello.' },
        headers: {
          'access-control-allow-origin': new URL(page.url()).origin,
          'access-control-allow-credentials': 'true',
        },
      }),
    )
    await page.clock.fastForward(60_000)
    await says('Hello.')
    assert.equal(sent(), 2)
  })

  test('two tabs send a kept signup once, and both tell the visitor', async t => {
    const { page, service, signUp, says, kept, origin } = await opened(t)
    const context = page.context()
    await context.route('**/api/waitlist*', route => route.abort())
    await signUp('Ada', 'ada@example.com')
    await says(sentences.kept!)
    let sent = 0
    await context.unroute('**/api/waitlist*')
    const looked = Promise.withResolvers<void>()
    await context.route('**/api/waitlist*', async route => {
      sent++
      await looked.promise
      await route.continue()
    })
    const tabs = await Promise.all([context.newPage(), context.newPage()])
    await Promise.all(tabs.map(tab => tab.goto(origin)))
    await page.waitForTimeout(500)
    looked.resolve()
    await says(joined)
    await page.getByText('Thank you, Ada.').waitFor()
    await Promise.any(tabs.map(tab => tab.getByText(`Ada: ${joined}`).waitFor()))
    assert.equal(sent, 1)
    assert.deepEqual(await kept(), [])
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  for (const [what, script] of [
    ['full', `Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }`],
    [
      'forbidden',
      `Object.defineProperty(globalThis, 'localStorage', { get() { throw new DOMException('no', 'SecurityError') } })
      LockManager.prototype.request = () => Promise.reject(new DOMException('no', 'SecurityError'))`,
    ],
  ] as const) {
    test(`storage that is ${what}: the form says that nothing was saved, and sends it while the page is open`, async t => {
      const { page, service, signUp, says, origin } = await opened(t)
      await page.addInitScript(script)
      await page.goto(origin)
      await page.route('**/api/waitlist*', route => route.abort(), { times: 1 })
      await signUp('Ada', 'ada@example.com')
      await says(sentences.notKept!)
      await says(joined)
      assert.deepEqual(emails(service), ['ada@example.com'])
    })
  }

  test('what else is in the storage is never sent, what is ours and too old is forgotten', async t => {
    const { page, service, says, kept, origin, sent } = await opened(t)
    const hour = 3_600_000
    const ada = { name: 'Ada', email: 'ada@example.com' }
    const entries = [
      'no JSON',
      'null',
      '{}',
      { ...ada, time: Date.now() - 720 * hour - 1 },
      { ...ada, time: Date.now() + 800 * hour },
      { ...ada, time: 'now' },
      { ...ada, email: { toString: 1 }, time: Date.now() },
      { ...ada, email: '<b>@example.com', time: Date.now() },
      { ...ada, name: 'x'.repeat(1_000_000), time: Date.now() },
      { ...ada, time: Date.now() - 719 * hour },
    ]
    const place = ([entries, service]: [unknown[], string]) => {
      const storage = localStorage as unknown as Record<string, string>
      for (const [index, entry] of entries.entries())
        storage[`waitlist ${service}/ ${index}`] = typeof entry === 'string' ? entry : JSON.stringify(entry)
      storage[`waitlist ${service}/elsewhere/ 1`] = JSON.stringify(entries.at(-1))
      storage.other = '1'
    }
    await page.evaluate(place, [entries, service.baseUrl] as [unknown[], string])
    await page.goto(`${origin}/later`)
    await says(`Ada: ${joined}`)
    await page.waitForTimeout(100)
    assert.equal((await kept()).length, 2, 'that of another service, and of another program')
    assert.equal(sent(), 1)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('what the service refuses for good is forgotten, and said where the visitor is', async t => {
    const { page, service, signUp, says, hints, kept, origin } = await opened(t, {
      env: { BLOCKED_DOMAINS_FILE: blocked },
    })
    await signUp('Ada\u0007', 'ada@example.com')
    await hints('Name', 'Name must not contain control characters.')
    assert.deepEqual(await kept(), [])
    await page.route('**/api/waitlist*', route => route.abort())
    await signUp('Eve', 'eve@blocked.example')
    await says(sentences.kept!)
    await page.unroute('**/api/waitlist*')
    await page.goto(`${origin}/later`)
    await says('Eve: This email domain is not accepted.')
    assert.deepEqual(await kept(), [])
    assert.deepEqual(emails(service), [])
  })

  test('an answer that never comes: a word, then it is saved, and sent again', async t => {
    const { page, service, signUp, says } = await opened(t)
    await page.route('**/api/waitlist*', () => {}, { times: 1 })
    await page.clock.install()
    await signUp('Ada', 'ada@example.com')
    await says(sentences.sending!)
    await page.clock.runFor(4_000)
    await says(sentences.slow!)
    await page.clock.runFor(26_000)
    await says(sentences.kept!)
    await page.clock.runFor(3_000)
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('a tab is closed before the answer, and an hour later the visitor comes back', async t => {
    const { page, service, fill, origin } = await opened(t)
    const context = page.context()
    await context.route('**/api/waitlist*', () => {})
    await fill('Ada', 'ada@example.com')
    const sent = page.waitForRequest(request => request.method() === 'POST')
    await page.getByRole('button').click()
    await sent
    await page.close()
    await context.unrouteAll()
    const tab = await context.newPage()
    await tab.clock.install({ time: Date.now() + 3_600_000 })
    await tab.goto(origin)
    // The request may have outlived its tab.
    await visiting(tab).says(/^Ada: You are (already )?on the waitlist\.$/)
    assert.deepEqual(await visiting(tab).kept(), [])
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('it tries again at once when the network is back, and when the page is looked at again', async t => {
    const { page, service, signUp, says, sent } = await opened(t)
    await page.clock.install()
    await page.clock.pauseAt(Date.now() + 60_000)
    await page.route('**/api/waitlist*', route => route.abort())
    const triesAgain = async (act: () => Promise<unknown>) => {
      const before = sent()
      await act()
      while (sent() === before) await page.waitForTimeout(10)
      await says(sentences.kept!)
    }
    await triesAgain(() => signUp('Ada', 'ada@example.com'))
    await page.context().setOffline(true)
    await triesAgain(() => page.context().setOffline(false))
    // This browser keeps no page that was left; one that does says this when the visitor comes back.
    await triesAgain(() => page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`))
    await page.unroute('**/api/waitlist*')
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('somebody who has begun to type is told of the one before, and keeps the fields', async t => {
    const { page, service, fill, signUp, says } = await opened(t)
    await page.route('**/api/waitlist*', route => route.abort())
    await signUp('Ada', 'ada@example.com')
    await says(sentences.kept!)
    await fill('Bob', 'bob@exam')
    await page.unroute('**/api/waitlist*')
    await says(`Ada: ${joined}`)
    await fill('Bob', 'bob@example.com')
    await page.getByRole('button', { name: 'Join the waitlist' }).click()
    await says('Thank you, Bob.')
    assert.deepEqual(emails(service), ['ada@example.com', 'bob@example.com'])
  })

  test('a device keeps 100 signups; what comes on top is not saved, and all of them arrive', async t => {
    const { page, service, signUp, says, kept, origin } = await opened(t)
    await page.evaluate(`for (let i = 0; i < 100; i++) {
      const signup = { name: 'Visitor', email: 'visitor' + i + '@example.com', time: Date.now() }
      localStorage.setItem('waitlist ${service.baseUrl}/ ' + i, JSON.stringify(signup))
    }`)
    await page.route('**/api/waitlist*', route => route.abort())
    await page.goto(origin)
    await signUp('Ada', 'ada@example.com')
    await says(sentences.notKept!)
    assert.equal((await kept()).length, 100)
    await page.unroute('**/api/waitlist*')
    await says('Thank you, Ada.')
    while ((await kept()).length > 0) await page.waitForTimeout(50)
    assert.equal(new Set(emails(service)).size, 101)
  })

  test('one that a firewall always stops holds up no other', async t => {
    const { page, service, kept, origin } = await opened(t)
    const place = (name: string) => `localStorage.setItem('waitlist ${service.baseUrl}/ ${name}', JSON.stringify(
      { name: '${name}', email: '${name.toLowerCase()}@example.com', time: Date.now() }))`
    await page.evaluate(['Aaron', 'Bob', 'Cyd', 'Dot', 'Eve'].map(place).join(';'))
    await page.route('**/api/waitlist*', route =>
      route.request().postData()?.includes('Aaron') ? route.fulfill({ status: 403 }) : route.continue(),
    )
    await page.clock.install()
    await page.goto(origin)
    while ((await kept()).length > 1) {
      await page.clock.fastForward(400_000)
      await page.waitForTimeout(20)
    }
    assert.deepEqual(
      emails(service).sort(),
      ['bob', 'cyd', 'dot', 'eve'].map(name => `${name}@example.com`),
    )
  })

  test('a countdown ends when another tab has the answer', async t => {
    const { page, service, signUp, says, origin } = await opened(t)
    const cors = { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' }
    await page.route('**/api/waitlist*', route => route.fulfill({ status: 429, headers: cors }))
    await page.clock.install()
    await signUp('Ada', 'ada@example.com')
    await says(/^Too many attempts\. We will try again in \d+ sec\.$/)
    await (await page.context().newPage()).goto(origin)
    await says('Thank you, Ada.')
    await page.clock.runFor(2_000)
    await says('Thank you, Ada.')
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('a page with the forms of two services sends to each its own; a page that is not listed sends to none', async t => {
    const one = `<script type="module" src="SERVICE/form.js"></script><waitlist-form service="SERVICE"></waitlist-form>`
    const other = await startService(t)
    const html = pageWith(`${one.replaceAll('SERVICE', SERVICE)}${one.replaceAll('SERVICE', other.baseUrl)}`)
    const policy = "default-src 'none'; script-src http:; connect-src http:; img-src data:"
    const { page, service, kept } = await opened(t, { html, policy })
    for (const [index, email] of ['ada@example.com', 'bob@example.com'].entries()) {
      const form = page.locator('waitlist-form').nth(index)
      await form.getByLabel('Name').fill('Somebody')
      await form.getByLabel('Email').fill(email)
      await form.getByRole('button').click()
      await form.getByText(index === 0 ? joined : sentences.kept!).waitFor()
    }
    await page.reload()
    await page.getByText(`Somebody: ${sentences.kept}`).waitFor()
    assert.deepEqual(
      (await kept()).map(({ email }) => email),
      ['bob@example.com'],
    )
    assert.deepEqual([emails(service), emails(other)], [['ada@example.com'], []])
  })

  test('over a slow mobile network it says so, and arrives', async t => {
    const { page, service, signUp, says } = await opened(t)
    const slow = { offline: false, latency: 6_000, downloadThroughput: 50_000, uploadThroughput: 50_000 }
    await (await page.context().newCDPSession(page)).send('Network.emulateNetworkConditions', slow)
    await signUp('Ada', 'ada@example.com')
    await says(sentences.slow!)
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('two forms of one page send a kept signup once, and each its own', async t => {
    const html = pageWith(`${FORM}<waitlist-form></waitlist-form>`)
    const { page, service, kept, origin, sent } = await opened(t, { html })
    await page.route('**/api/waitlist*', route => route.abort())
    for (const [index, email] of ['ada@example.com', 'bob@example.com'].entries()) {
      const form = page.locator('waitlist-form').nth(index)
      await form.getByLabel('Name').fill('Somebody')
      await form.getByLabel('Email').fill(email)
      await form.getByRole('button').click()
      await form.getByText(sentences.kept!).waitFor()
    }
    const before = sent()
    await page.unroute('**/api/waitlist*')
    await page.goto(`${origin}/later`)
    await page.getByRole('status').getByText(`Somebody: ${joined}`).first().waitFor()
    while ((await kept()).length > 0) await page.waitForTimeout(20)
    assert.equal(sent(), before + 2)
    assert.deepEqual(await kept(), [])
    assert.deepEqual(emails(service).sort(), ['ada@example.com', 'bob@example.com'])
  })

  const outages = [
    ['a provider that is not reached', 502, (url: string) => loopsSettings(url)],
    ['a key that the provider refuses', 500, (url: string) => ({ ...loopsSettings(url), LOOPS_API_KEY: 'wrong' })],
  ] as const
  for (const [title, status, settings] of outages) {
    test(`saved but late is a success: ${status}, ${title}`, async t => {
      const vendor = await startReceiver(t, loopsFake().answer)
      if (status === 502) vendor.chaos(1, 1, ['503'])
      const { page, says, signUp, service, kept } = await opened(t, {
        env: { PROVIDER: 'loops', ...settings(vendor.url) },
      })
      const answered = page.waitForResponse(response => response.request().method() === 'POST')
      await signUp('Ada', 'ada@example.com')
      await says(sentences.saved!)
      assert.equal((await answered).status(), status)
      assert.deepEqual(await kept(), [])
      assert.deepEqual(emails(service), ['ada@example.com'])
    })
  }

  test('a service that asks to be left alone for a while is, and no other reason is told', async t => {
    const { page, says, signUp, origin, sent } = await opened(t)
    const cors = { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' }
    const headers = { ...cors, 'access-control-expose-headers': 'Retry-After', 'retry-after': '600' }
    await page.route('**/api/waitlist*', route => route.fulfill({ status: 503, headers }), { times: 1 })
    await page.clock.install()
    await signUp('Ada', 'ada@example.com')
    await says(sentences.kept!)
    // The clock of the device is put right.
    await page.clock.setSystemTime(Date.now() - 86_400_000)
    await page.clock.fastForward(500_000)
    await page.getByRole('button', { name: 'Join the waitlist' }).click()
    await says(sentences.kept!)
    assert.equal(sent(), 1)
    await page.clock.fastForward(200_000)
    await says(joined)
  })

  test('a service that accepts connections and says nothing does not keep the form from saving', async t => {
    const { page, says, signUp, origin } = await opened(t)
    await page.route('**/form.json', () => {})
    await page.route('**/api/waitlist*', route => route.abort())
    await page.goto(`${origin}/again`)
    await signUp('Ada', 'ada@example.com')
    assert.equal((await visiting(page).kept()).length, 1, 'before anything is sent')
    await page.getByRole('status').getByText(sentences.kept!, { exact: true }).waitFor({ timeout: 120_000 })
    await says(sentences.kept!)
  })

  test('the query of the page is handed on, and is not kept on the device', async t => {
    const { page, says, signUp, service, kept } = await opened(t, {
      env: { TRACK_SOURCES: 'true' },
      path: '/?utm_source=newsletter&gclid=1&ref=ada',
    })
    await page.route('**/api/waitlist*', route => route.abort(), { times: 1 })
    await signUp('Ada', 'ada@example.com')
    await says(sentences.kept!)
    assert.deepEqual(Object.keys((await kept())[0]!), ['name', 'email', 'time'])
    await says(joined)
    const rows = withDatabase(service.databasePath, database => database.prepare('select source from contact').all())
    assert.deepEqual(
      rows.map(({ source }) => source),
      ['{"utm_source":"newsletter","ref":"ada"}'],
    )
  })

  test('a form of the page is brought to life, with its own words after a success', async t => {
    const own = `<script type="module" src="${SERVICE}/form.js"></script><waitlist-form><form>
      <label>Your name <input name="name"></label><label>Your mail <input name="email"></label><button>Go</button></form>
      <template><h2>Hi {name}!</h2><p>{sentence} Look into {email}.</p></template></waitlist-form>`
    const { page, service, complaints } = await opened(t, { html: pageWith(own) })
    await page.getByLabel('Your name').fill('<i>Ada</i>')
    await page.getByLabel('Your mail').fill('ada@')
    await page.getByRole('button', { name: 'Go' }).click()
    await page.getByText(sentences.emailWrong!).waitFor()
    await page.getByLabel('Your mail').fill('ada@example.com')
    await page.getByRole('button', { name: 'Go' }).click()
    await page.getByRole('heading', { name: 'Hi <i>Ada</i>!' }).waitFor()
    await page.getByText(`${joined} Look into ada@example.com.`).waitFor()
    assert.deepEqual(complaints, [])
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('what the page says of the form wins over what the form says', async t => {
    const style = 'button { min-height: 90px } waitlist-form { --waitlist-accent: rgb(1, 2, 3) }'
    const html = pageWith(FORM).replace('</head>', `<style>${style}</style></head>`)
    const { page } = await opened(t, { html, policy: `style-src 'unsafe-inline'` })
    const button = page.getByRole('button')
    await button.waitFor()
    const styles = await page.evaluate(`(() => {
      const { minHeight, backgroundColor, cursor } = getComputedStyle(document.querySelector('button'))
      return [minHeight, backgroundColor, cursor]
    })()`)
    assert.deepEqual(styles, ['90px', 'rgb(1, 2, 3)', 'pointer'])
  })

  test('without JavaScript the form says what it needs', async t => {
    const html = pageWith(FORM.replace('></w', '><p>This form needs JavaScript.</p></w'))
    const { page } = await opened(t, { html, options: { javaScriptEnabled: false } })
    await page.getByText('This form needs JavaScript.').waitFor()
    const { page: other } = await opened(t, { html })
    await other.getByLabel('Name').waitFor()
    assert.equal(await other.getByText('This form needs JavaScript.').count(), 0)
  })

  test('the keyboard is enough; on a phone the fields are of a size and a kind that help', async t => {
    const { page, says } = await opened(t, { options: { viewport: { width: 320, height: 640 } } })
    await page.getByLabel('Name').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.type('Ada')
    await page.keyboard.press('Tab')
    await page.keyboard.type('ada@example.com')
    const inputs = await page.evaluate(`[...document.querySelectorAll('input')].map(each => [
      each.getAttribute('type'),
      each.getAttribute('autocomplete'),
      each.getBoundingClientRect().height >= 44,
      parseFloat(getComputedStyle(each).fontSize) >= 16,
    ])`)
    // iOS zooms in where the size is below 16.
    assert.deepEqual(inputs, [
      [null, 'name', true, true],
      ['email', 'email', true, true],
    ])
    const outline = () => page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
    assert.equal(await outline(), 'solid')
    await page.keyboard.press('Tab')
    assert.equal(await outline(), 'solid')
    await page.keyboard.press('Space')
    await says(joined)
  })

  for (const direction of ['ltr', 'rtl']) {
    test(`axe finds nothing in any state, and nothing sticks out, at three widths, in light and dark: ${direction}`, async t => {
      const html = pageWith(FORM, `lang="${direction === 'rtl' ? 'ar' : 'en'}" dir="${direction}"`)
      const { page, fill, signUp, says } = await opened(t, { html, options: { bypassCSP: true } })
      // Without a ground of its own axe takes the page for white.
      const look = () => page.evaluate(`${axe.source}; document.documentElement.style.background = 'Canvas'`)
      await look()
      const looksRight = async (state: string) => {
        for (const colorScheme of ['light', 'dark'] as const) {
          for (const width of [320, 768, 1280]) {
            await page.setViewportSize({ width, height: 800 })
            // Without motion, so that no colour is looked at on its way.
            await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
            const where = `${state}, ${colorScheme}, ${width} px`
            assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width, where)
            const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
            const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
            assert.deepEqual(found, [], where)
          }
        }
      }
      await looksRight('ready')
      await fill(' ', 'ada@gmial.com')
      await page.getByLabel('Name').press('Enter')
      await page.getByText(sentences.nameMissing!).waitFor()
      await looksRight('invalid')
      const answer = Promise.withResolvers<void>()
      await page.route('**/api/waitlist*', route => answer.promise.then(() => route.abort()))
      await signUp('Ada', 'ada@example.com')
      await says(sentences.sending!)
      await looksRight('sending')
      answer.resolve()
      await says(sentences.kept!)
      await looksRight('kept')
      const answers = (status: number, json: object) => {
        const origin = new URL(page.url()).origin
        const headers = { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' }
        return page.route('**/api/waitlist*', route => route.fulfill({ status, headers, json }))
      }
      await answers(429, {})
      await signUp('Bob', 'bob@example.com')
      await says(/^Too many attempts/)
      await looksRight('waiting')
      await page.unrouteAll()
      await answers(400, { error: 'this cannot be taken' })
      await page.reload()
      await look()
      await signUp('Cyd', 'cyd@example.com')
      await says('This cannot be taken.')
      await looksRight('failed')
      await page.unrouteAll()
      await signUp('Dot', 'dot@example.com')
      await says(joined)
      await looksRight('done')
    })
  }
})

describe('the form and a challenge', { skip: skip || inRun }, () => {
  const easy = { CHALLENGE: 'altcha' }

  /** How often a page asks for a challenge. */
  const asked = (page: Page) => {
    let challenges = 0
    page.on('request', request => {
      if (request.url().endsWith('/api/challenge')) challenges++
    })
    return () => challenges
  }

  test('ALTCHA is solved while the visitor types, and nobody else is asked', async t => {
    const { page, service, origin, says, fill, complaints, origins } = await opened(t, { env: easy })
    const challenges = asked(page)
    await page.reload()
    await page.getByLabel('Name').waitFor()
    assert.equal(challenges(), 0, 'not before anybody types')
    await fill('Ada', 'ada@example.com')
    await page.getByRole('button').click()
    await says(joined)
    assert.equal(challenges(), 1)
    assert.deepEqual(emails(service), ['ada@example.com'])
    assert.deepEqual(complaints, [])
    assert.deepEqual([...origins].sort(), [origin, service.baseUrl].sort())
  })

  test('an error in the place of what the form needs is not taken for it: it is asked for again', async t => {
    const { page, service, says, signUp, origin } = await opened(t, { env: easy })
    let errors = 0
    await page.route('**/form.json', route =>
      errors++ < 2 ? route.fulfill({ status: 429, json: { error: 'too many requests' } }) : route.continue(),
    )
    await page.goto(`${origin}/again`)
    await signUp('Ada', 'ada@example.com')
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('a solution that is refused is replaced without a word, once', async t => {
    const { page, service, says, signUp } = await opened(t, { env: easy })
    const challenges = asked(page)
    await page.route(
      '**/api/waitlist*',
      route => {
        const body = { ...route.request().postDataJSON(), altcha: 'spent' }
        return route.continue({ postData: JSON.stringify(body) })
      },
      { times: 1 },
    )
    await signUp('Ada', 'ada@example.com')
    await says(joined)
    assert.equal(challenges(), 2)
    await page.route('**/api/waitlist*', route => {
      const body = { ...route.request().postDataJSON(), altcha: 'spent' }
      return route.continue({ postData: JSON.stringify(body) })
    })
    await page.reload()
    await signUp('Bob', 'bob@example.com')
    await says('The challenge was not solved, please try again.')
    assert.equal(challenges(), 4)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('no challenge can be had: the signup is kept, and sent with a solution when one can', async t => {
    const { page, service, says, signUp, sent } = await opened(t, { env: easy })
    await page.route('**/api/challenge', route =>
      route.fulfill({ status: 429, json: { error: 'too many challenges' } }),
    )
    await signUp('Ada', 'ada@example.com')
    await says(sentences.kept!)
    assert.equal(sent(), 0)
    await page.unroute('**/api/challenge')
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('a page that could not ask whether there is a challenge asks before it takes a refusal for one', async t => {
    const { page, service, says, signUp, origin } = await opened(t, { env: easy })
    await page.route('**/form.json', route => route.abort(), { times: 2 })
    await page.goto(`${origin}/again`)
    await signUp('Ada', 'ada@example.com')
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('a challenge that is asked for since the page was opened is solved, and loses nobody', async t => {
    const { page, service, says, signUp, origin } = await opened(t, { env: easy })
    const before = { challenge: null, language: 'en', dir: 'ltr', sentences: {}, refusals: [] }
    const headers = { 'access-control-allow-origin': '*' }
    await page.route('**/form.json', route => route.fulfill({ json: before, headers }), { times: 1 })
    await page.goto(`${origin}/again`)
    await signUp('Ada', 'ada@example.com')
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  /** What the script of a vendor does, as far as a form notices: a field in the place of the widget, and a reset. */
  const standIn = (kind: Kind): string => `
    const [place] = document.querySelectorAll('.cf-turnstile, .h-captcha, cap-widget')
    if (!place.getAttribute('data-sitekey') && !place.getAttribute('data-cap-api-endpoint')) throw new Error('no site key')
    const field = Object.assign(document.createElement('input'), { type: 'hidden', name: '${members[kind]}' })
    place.append(field)
    globalThis.solve = token => { field.value = token }
    const reset = () => { field.value = ''; document.documentElement.dataset.reset = '' }
    place.reset = reset
    globalThis.turnstile = globalThis.hcaptcha = { reset }`

  for (const kind of kinds) {
    test(`${kind}: the widget comes when the form is entered, and is asked anew after a refusal`, async t => {
      const verifier = await startVerifier(t, kind)
      const token = verifier.solve({ host: 'localhost' })
      const key = kind === 'cap' ? {} : { CHALLENGE_SITE_KEY: SITE_KEY }
      const env = { CHALLENGE: kind, CHALLENGE_SECRET: SECRET, CHALLENGE_URL: verifier.address, ...key }
      const { script } = vendors[kind]
      const { page, service, says, signUp, kept, complaints } = await opened(t, {
        env,
        policy: `${POLICY.replace(SERVICE, `${SERVICE} ${new URL(script).origin}`)}; trusted-types waitlist`,
      })
      let loads = 0
      // A module from another origin needs CORS, as the vendor's has it.
      const headers = { 'access-control-allow-origin': '*', 'content-type': 'text/javascript' }
      await page.route(script, route => {
        loads++
        return route.fulfill({ headers, body: standIn(kind) })
      })
      await page.reload()
      await page.getByLabel('Name').waitFor()
      assert.equal(loads, 0)
      await page.getByLabel('Name').focus()
      await page.locator(`[name=${members[kind]}]`).waitFor({ state: 'attached' })
      await signUp('Ada', 'ada@example.com')
      await says(sentences.solve!)
      assert.deepEqual([verifier.received.length, await kept()], [0, []])
      await page.evaluate(`solve('${token}')`)
      await signUp('Ada', 'ada@example.com')
      await says(joined)
      await page.reload()
      await page.getByLabel('Name').focus()
      await page.locator(`[name=${members[kind]}]`).waitFor({ state: 'attached' })
      await page.evaluate(`solve('${token}')`)
      await signUp('Eve', 'eve@example.com')
      await says('The challenge was used for another signup, please solve a new one.')
      assert.equal(await page.evaluate('document.documentElement.dataset.reset'), '')
      assert.equal(loads, 2)
      assert.deepEqual(emails(service), ['ada@example.com'])
      assert.deepEqual(
        complaints.filter(text => !/status of 400/.test(text)),
        [],
      )
    })
  }
})

/** Each name in `localhost` is this machine; what stands before it makes the site. */
const [page1, same, other] = ['www.shop.localhost', 'waitlist.shop.localhost', 'waitlist.elsewhere.localhost']
const cookies = [
  ['http', 'localhost', 'localhost'],
  ['http', page1, same],
  ['https', page1, same],
  ['https', page1, other],
] as const

describe('the cookie of a signup on another origin', { skip: skip || inRun }, () => {
  for (const [scheme, pageHost, serviceHost] of cookies) {
    const where = `${scheme}, from ${pageHost} to ${serviceHost}`
    test(`is kept: ${where}; the signup is stored all the same`, async t => {
      const tls = scheme === 'https'
      const { originAt, sendTo } = await landing(t, pageWith(FORM), { tls })
      const origin = originAt(pageHost)
      const env = { CORS_ORIGINS: origin, ...(tls ? pairIn(t).env : {}) }
      const running = await startService(t, env)
      const service = `${scheme}://${serviceHost}:${new URL(running.baseUrl).port}`
      sendTo(service)
      const { page, signUp, says, origins } = await visit(t, origin, { ignoreHTTPSErrors: true })
      await signUp('Ada', 'ada@example.com')
      await says(joined)
      assert.deepEqual(emails(running), ['ada@example.com'])
      const cookies = await page.context().cookies(service)
      assert.deepEqual(
        cookies.map(({ name, value, httpOnly, secure }) => [name, value, httpOnly, secure]),
        [[tls ? '__Host-waitlist' : 'waitlist', '1', true, tls]],
      )
      assert.equal(await page.evaluate('document.cookie'), '')
      assert.deepEqual([...origins].sort(), [origin, service].sort())
    })
  }
})

test('the form accepts the email addresses that the service accepts, and no others', () => {
  const [, source = ''] =
    /const address =\s*\/(.*)\/i\n/.exec(readFileSync(new URL('../../src/form/form.js', import.meta.url), 'utf8')) ?? []
  const address = new RegExp(source, 'i')
  const pieces = ['a', 'Z', '9', '.', '@', '-', '_', '+', "'", 'é', 'ſ', ' ', '..', 'xn--a', 'a'.repeat(63), '/']
  const near = fc.array(fc.constantFrom(...pieces), { maxLength: 9 }).map(list => list.join(''))
  const right = fc.stringMatching(new RegExp(`^${EMAIL_PATTERN}$`))
  const known = 'a@b.c a@b a.@b.cc .a@b.cc a..b@c.dd a@-b.cc a@b-.cc a@b.c- a@b.1c a@b.-c a@b.c.'.split(' ')
  const any = fc.oneof(
    near,
    near.map(text => `a@${text}`),
    near.map(text => `${text}@example.com`),
    right,
  )
  const numRuns = isSlow ? 20_000 : 1_000
  fc.assert(
    fc.property(any, text => {
      if (text !== text.trim() || text.length > 255) return
      assert.equal(address.test(text), !('problem' in parseSignup({ name: 'Ada', email: text })), text)
    }),
    { numRuns, examples: known.map(text => [text]) },
  )
})
