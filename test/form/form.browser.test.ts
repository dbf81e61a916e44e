import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Route } from 'playwright-core'
import { vendors } from '../../src/challenges/siteverify.ts'
import { type Kind, kinds, members, SECRET, SITE_KEY, startVerifier } from '../challenges/siteverify.fake.ts'
import {
  assertAccessible,
  assertFits,
  FORM,
  landing,
  openPage,
  POLICY,
  pageWith,
  SERVICE,
  startBrowser,
} from '../harness/browser.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { skipSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startService, type TestService } from '../harness/service.ts'
import { pairIn } from '../harness/tls.ts'

const started = await startBrowser({ after: after as TestContext['after'] })
const skip = 'missing' in started && started.missing
const browser = started as Browser

const joined = 'You are on the waitlist.'
const known = 'You are already on the waitlist.'
const saved = 'Saved on this device.'
const later = 'Please try again later.'

/** A page of another origin than its service, under a policy that allows the form and nothing else. */
async function opened(
  t: TestContext,
  { env = {}, html = pageWith(FORM), options = {} as BrowserContextOptions, path = '', policy = POLICY } = {},
) {
  const { originAt, sendTo } = await landing(t, html, { policy })
  const origin = originAt('localhost')
  const service = await startService(t, { CORS_ORIGINS: origin, ...env })
  sendTo(service.baseUrl)
  const { page, complaints, origins } = await openPage(t, browser, 'about:blank', options)
  let sent = 0
  page.on('request', request => {
    if (request.method() === 'POST') sent++
  })
  await page.goto(origin + path)
  const fill = async (name: string, email: string) => {
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Email').fill(email)
  }
  return {
    page,
    service,
    origin,
    complaints,
    origins,
    /** How many signups the page has sent. */
    sent: () => sent,
    fill,
    async signUp(name: string, email: string) {
      await fill(name, email)
      await page.getByRole('button', { name: 'Join the waitlist' }).click()
    },
    /** Waits until the form says this, also to those who cannot see it. */
    says: (sentence: string | RegExp) => page.getByRole('status').getByText(sentence, { exact: true }).waitFor(),
    /** Waits until a field has this hint, and is marked. */
    async hints(field: 'Name' | 'Email', hint: string) {
      const input = page.getByLabel(field).and(page.locator('[aria-invalid=true]'))
      await input.and(page.locator(`[aria-describedby=${field.toLowerCase()}-hint]`)).waitFor()
      await page.locator(`#${field.toLowerCase()}-hint`).getByText(hint, { exact: true }).waitFor()
    },
    kept: () => page.evaluate<{ name: string; email: string }[]>('Object.values(localStorage).map(JSON.parse)'),
    /** Answers the next signups in the place of the service. */
    answer: (status: number, json: object, headers = {}) =>
      page.route('**/api/waitlist*', (route: Route) =>
        route.fulfill({
          status,
          json,
          headers: {
            'access-control-allow-origin': origin,
            'access-control-allow-credentials': 'true',
            'access-control-expose-headers': 'Retry-After, Waitlist-Signup',
            ...headers,
          },
        }),
      ),
    cut: () => page.route('**/api/**', route => route.abort()),
  }
}

const emails = ({ databasePath }: TestService) => contactsIn(databasePath).map(({ email }) => email)

describe('the form, on another origin than its service', { skip }, () => {
  test('a signup and its repetition: a double click sends once, nothing moves, nothing comes from elsewhere', async t => {
    const { page, service, origin, fill, signUp, says, sent, kept, complaints, origins } = await opened(t, {
      env: { TRACK_SOURCES: 'true' },
      path: '/?utm_source=newsletter&gclid=1',
    })
    await page.evaluate(`document.addEventListener('joined', event => { globalThis.heard = event.detail.outcome })`)
    await fill(' Ada Lovelace ', 'ada@example.com')
    const height = () => page.evaluate(`document.querySelector('waitlist-form').offsetHeight`)
    const before = await height()
    await page.getByRole('button').dblclick()
    await says(joined)
    await page.getByRole('status').and(page.locator(':focus')).waitFor()
    assert.equal(sent(), 1)
    assert.equal(await page.evaluate('heard'), 'new')
    assert.equal(await page.getByLabel('Name').isVisible(), false)
    const thanks = ['Thank you, Ada Lovelace.', joined, 'ada@example.com']
    assert.deepEqual((await page.getByRole('status').innerText()).split('\n').filter(Boolean), thanks)
    assert.equal(await height(), before)
    assert.deepEqual(await kept(), [])
    await page.reload()
    await signUp('Ada', 'ADA@example.com')
    await says(known)
    assert.deepEqual(emails(service), ['ada@example.com'])
    const source = withDatabase(service.databasePath, database => database.prepare('select source from contact').get())
    assert.equal(source?.source, '{"utm_source":"newsletter"}')
    assert.deepEqual(complaints, [])
    assert.deepEqual([...origins].sort(), [origin, service.baseUrl].sort())
  })

  test('without a network a signup is kept, a corrected one takes its place, and the next visit sends it', async t => {
    const { page, service, origin, cut, signUp, says, kept } = await opened(t)
    await cut()
    await signUp('Ada', 'ada@example.con')
    await says(saved)
    await page.getByRole('status').and(page.locator(':focus')).waitFor()
    await page.getByRole('button', { name: 'Change the address' }).click()
    await signUp('Ada', 'ada@example.com')
    await says('ada@example.com')
    assert.deepEqual(
      (await kept()).map(({ name, email }) => [name, email]),
      [['Ada', 'ada@example.com']],
    )
    await page.unrouteAll()
    const answered = page.waitForResponse(response => response.request().method() === 'POST')
    await page.goto(`${origin}/later`)
    await answered
    await page.getByLabel('Name').waitFor()
    assert.equal(await page.getByText('Ada').count(), 0, 'a visitor reads nothing of the one before')
    await page.waitForFunction('localStorage.length === 0')
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('what is kept is sent when the network is back, and by itself when the service is', async t => {
    const { page, service, cut, signUp, says } = await opened(t)
    await page.clock.install()
    await page.context().setOffline(true)
    await signUp('Ada', 'ada@example.com')
    await says(saved)
    await page.context().setOffline(false)
    await says(joined)
    await page.reload()
    await cut()
    await signUp('Bob', 'bob@example.com')
    await says(saved)
    await page.unrouteAll()
    await page.clock.fastForward(3_000)
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com', 'bob@example.com'])
  })

  test('what is a week old or no signup is not sent; a browser without storage is told so', async t => {
    const { page, service, origin, cut, signUp, says, sent } = await opened(t)
    await page.evaluate(`localStorage['waitlist ${service.baseUrl}/'] = JSON.stringify({
      name: 'Ada', email: 'ada@example.com', time: Date.now() - 604_800_001 })`)
    await page.goto(`${origin}/again`)
    await page.getByLabel('Name').waitFor()
    await page.evaluate(`localStorage['waitlist ${service.baseUrl}/'] = '{"email":["no"],"time":1}'`)
    await page.addInitScript(`Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }
      Object.defineProperty(globalThis, 'localStorage', { get() { throw new DOMException('no', 'SecurityError') } })`)
    await page.goto(`${origin}/last`)
    await cut()
    await signUp('Bob', 'bob@example.com')
    await says(/Please keep this page open/)
    assert.equal(sent(), 1)
    await page.unrouteAll()
    await says(joined)
    assert.deepEqual(emails(service), ['bob@example.com'])
  })

  test('what is wrong is said at its field, whether the form or only the service knows', async t => {
    const folder = temporaryFolder(t)
    writeFileSync(join(folder, 'blocked.txt'), 'blocked.example\n')
    const { page, service, hints, signUp, sent, kept } = await opened(t, {
      env: { BLOCKED_DOMAINS_FILE: join(folder, 'blocked.txt') },
    })
    await signUp(' ', 'ada@')
    await hints('Name', 'Name is required.')
    await hints('Email', 'Email must be a valid email address.')
    await page.getByLabel('Name').and(page.locator(':focus')).waitFor()
    await page.getByLabel('Email').pressSequentially('example.com')
    await page.getByLabel('Email').and(page.locator('[aria-invalid=false]')).waitFor()
    assert.equal(sent(), 0)
    await signUp('a'.repeat(101), 'ada@example.com')
    await hints('Name', 'Name must be at most 100 characters long.')
    await signUp('Eve', 'eve@blocked.example')
    await hints('Email', 'This email domain is not accepted.')
    assert.deepEqual([await kept(), emails(service)], [[], []])
  })

  test('a slip in a common domain is asked about once: a click puts it right, and it can be sent as it is', async t => {
    const { page, service, signUp, says, sent } = await opened(t)
    const better = page.getByRole('button', { name: /^Did you mean/ })
    for (const slip of ['gmail.co', 'gmil.com', 'gmaill.com', 'hotmai.com', 'Gmial.com']) {
      await signUp('Ada', `ada@${slip}`)
      await better.and(page.locator(':focus')).waitFor()
    }
    assert.equal(sent(), 0)
    await better.click()
    await says('ada@gmail.com')
    await page.reload()
    await signUp('Bob', 'bob@hotmail.con')
    await better.waitFor()
    await page.getByRole('button', { name: 'Join the waitlist' }).click()
    await says('bob@hotmail.con')
    await page.reload()
    await signUp('Cyd', 'cyd@yahoo.ca')
    await says('cyd@yahoo.ca')
    assert.deepEqual(emails(service), ['ada@gmail.com', 'bob@hotmail.con', 'cyd@yahoo.ca'])
  })

  test('after an attempt too many it counts down, and sends again; a long wait is kept', async t => {
    const { page, signUp, says, answer, sent } = await opened(t)
    await page.clock.install()
    await answer(429, { error: 'too many signup attempts' }, { 'retry-after': '30' })
    await signUp('Ada', 'ada@example.com')
    await says('Too many attempts. We will try again in 30 seconds.')
    await page.clock.runFor(10_000)
    await page.getByText('Too many attempts. We will try again in 20 seconds.').waitFor()
    assert.equal(await page.locator('strong').getAttribute('aria-live'), 'off')
    await page.unrouteAll()
    await page.clock.runFor(20_000)
    await says(joined)
    assert.equal(sent(), 2)
    await page.reload()
    await answer(429, {}, { 'retry-after': '600' })
    await signUp('Bob', 'bob@example.com')
    await says(saved)
  })

  test('what waiting does not mend is the founder’s to read, and is not called saved', async t => {
    const { page, origin, signUp, says, answer, complaints, sent } = await opened(t)
    await answer(404, { error: 'not found' })
    await signUp('Ada', 'ada@example.com')
    await says(later)
    assert.match(complaints.at(-1)!, /not set up right\. http\S+\/api\/waitlist answers 404\.$/)
    assert.equal(sent(), 1)
    const { originAt, sendTo } = await landing(t, pageWith(FORM))
    const service = await startService(t, { CORS_ORIGINS: origin })
    sendTo(service.baseUrl)
    await page.goto(originAt('localhost'))
    await signUp('Bob', 'bob@example.com')
    await says(later)
    assert.match(complaints.at(-1)!, /Is http:\/\/localhost:\d+ in CORS_ORIGINS\?$/)
    assert.deepEqual(emails(service), [])
  })

  test('saved by the service and late is a success', async t => {
    const { says, signUp, answer, kept } = await opened(t)
    await answer(502, { error: 'the email provider could not be reached' }, { 'waitlist-signup': 'saved' })
    await signUp('Ada', 'ada@example.com')
    await says('Your signup is saved. You will be on the waitlist shortly.')
    assert.deepEqual(await kept(), [])
  })

  test('it speaks the language of its page or, if that has none, of the browser', async t => {
    const env = { MESSAGES_FILE: fileURLToPath(new URL('../../examples/messages/messages.json', import.meta.url)) }
    const german = await opened(t, { env, html: pageWith(FORM, 'lang="de-AT"'), options: { locale: 'fr-FR' } })
    await german.page.getByLabel('Name').fill('Ada\u0007')
    await german.page.getByLabel('E-Mail').fill('ada@example.com')
    await german.page.getByRole('button', { name: 'Auf die Warteliste setzen' }).click()
    await german.page.getByText('Der Name darf keine Steuerzeichen enthalten.').waitFor()
    await german.page.getByLabel('Name').fill('Ada')
    await german.page.getByRole('button').click()
    await german.says('Danke, Ada.')
    await german.says('Du bist auf der Warteliste.')

    const arabic = await opened(t, { env, html: pageWith(FORM, ''), options: { locale: 'ar-EG' } })
    await arabic.page.getByRole('button', { name: 'الانضمام إلى قائمة الانتظار' }).click()
    await arabic.page.getByText('يُرجى إدخال الاسم.').waitFor()
    assert.equal(await arabic.page.locator('form[lang=ar][dir=rtl]').count(), 1)
  })

  test('what stands between the tags shows until the form is drawn; a form there is not left behind', async t => {
    const html = pageWith(FORM.replace('></w', '><p>Write to us.</p><form><input name="email"></form></w'))
    const { page } = await opened(t, { html, options: { javaScriptEnabled: false } })
    await page.getByText('Write to us.').waitFor()
    const drawn = await opened(t, { html })
    await drawn.page.getByLabel('Name').waitFor()
    assert.equal(await drawn.page.getByText('Write to us.').isVisible(), false)
    assert.equal(await drawn.page.locator('input:not([id])').isVisible(), false)
    // Frameworks take an element out and put it back.
    await drawn.page.evaluate(`document.querySelector('main').append(document.querySelector('waitlist-form'))`)
    await drawn.signUp('Ada', 'ada@example.com')
    await drawn.says(joined)
  })

  test('the keyboard is enough, and on a phone the fields are of a size and a kind that help', async t => {
    const { page, says } = await opened(t, { options: { viewport: { width: 320, height: 640 } } })
    await page.getByLabel('Name').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.type('Ada')
    await page.keyboard.press('Tab')
    await page.keyboard.type('ada@example.com')
    const inputs =
      await page.evaluate(`[...document.querySelector('waitlist-form').shadowRoot.querySelectorAll('input')].map(each => {
      const { fontSize, outlineStyle } = getComputedStyle(each)
      // iOS zooms in where the size is below 16.
      return [each.type, each.autocomplete, each.offsetHeight >= 44, parseFloat(fontSize) >= 16, outlineStyle]
    })`)
    assert.deepEqual(inputs, [
      ['text', 'name', true, true, 'none'],
      ['email', 'email', true, true, 'solid'],
    ])
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await says(joined)
  })
})

describe('how the form looks', { skip }, () => {
  /** What reset sheets and careless pages do. The frameworks' own rules are variations of these. */
  const resets = [
    '*, ::before, ::after { margin: 0; padding: 0; border: 0 solid; box-sizing: border-box }',
    '* { all: unset }',
    'form input, form button, form label { display: none }',
    'button, input { font: inherit; color: inherit; background: none; border: none; border-radius: 0; opacity: 1 }',
    'input:not([type=checkbox]) { width: 100%; height: 5em; margin-bottom: 2em; background: #fff } [type=text] { width: 1px }',
    'body { text-align: center } p, strong, div { color: red; font-size: 40px; background: yellow } [role=status] { display: none }',
  ]

  test('no rule of the page changes a field, the button or the thanks; its custom properties and parts do', async t => {
    const { page, signUp, says } = await opened(t, { policy: "style-src 'unsafe-inline'" })
    const look = () =>
      page.evaluate<object[]>(`
        [...document.querySelector('waitlist-form').shadowRoot.querySelectorAll('input, button, [role=status], strong')].map(element => {
          const { display, color, backgroundColor, borderWidth, fontSize, textAlign } = getComputedStyle(element)
          const { width, height } = element.getBoundingClientRect()
          return { display, color, backgroundColor, borderWidth, fontSize, textAlign, width, height }
        })`)
    const use = (style: string) =>
      page.evaluate(`document.querySelector('style')?.remove()
        document.head.append(Object.assign(document.createElement('style'), { textContent: ${JSON.stringify(
          `body, html { font: 16px sans-serif } main { display: block; width: 400px } ${style} style, head { display: none }`,
        )} }))`)
    const assertUnmoved = async () => {
      await use('')
      const expected = await look()
      assert.equal(expected.length > 3, true)
      for (const reset of resets) {
        await use(reset)
        assert.deepEqual(await look(), expected, reset)
      }
    }
    await assertUnmoved()
    await signUp('Ada', 'ada@example.com')
    await says(joined)
    await assertUnmoved()
    await page.reload()
    await use('waitlist-form { --waitlist-accent: rgb(1, 2, 3) } ::part(button) { min-height: 90px }')
    const button = page.evaluate(`{
      const button = document.querySelector('waitlist-form').shadowRoot.querySelector('button');
      [getComputedStyle(button).backgroundColor, button.offsetHeight]
    }`)
    assert.deepEqual(await button, ['rgb(1, 2, 3)', 90])
  })

  const pages = [
    ['ltr', 'lang="en"', 'color-scheme: light dark; background: Canvas'],
    ['rtl', 'lang="ar" dir="rtl"', 'color-scheme: light dark; background: Canvas'],
    ['dark without color-scheme', 'lang="en"', 'background: #111; color: #eee'],
  ] as const
  for (const [what, root, style] of pages) {
    test(`axe finds nothing in any state, and nothing sticks out or moves, at three widths: ${what}`, {
      skip: what !== 'ltr' && skipSlow,
    }, async t => {
      const options = { bypassCSP: true, reducedMotion: 'reduce' } as const
      const { page, fill, signUp, says, cut, answer } = await opened(t, { html: pageWith(FORM, root), options })
      const prepare = () => page.evaluate(`document.documentElement.style = '${style}'`)
      await prepare()
      const looksRight = async (state: string) => {
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          for (const width of [1280, 768, 320]) {
            await page.setViewportSize({ width, height: 800 })
            await assertFits(page, `${state}, ${colorScheme}, ${width} px`)
          }
          await assertAccessible(page, `${state}, ${colorScheme}`)
        }
        return page.evaluate<number>(`document.querySelector('waitlist-form').offsetHeight`)
      }
      const height = await looksRight('ready')
      await fill(' ', 'ada@gmial.com')
      await page.getByLabel('Name').press('Enter')
      await page.getByText('Name is required.').waitFor()
      assert.equal(await looksRight('invalid'), height)
      await page.getByLabel('Name').fill('Ada')
      await page.getByLabel('Name').press('Enter')
      await page.getByText('Did you mean').waitFor()
      assert.equal(await looksRight('doubted'), height)
      const cutting = Promise.withResolvers<void>()
      await page.route('**/api/waitlist*', route => cutting.promise.then(() => route.abort()))
      await signUp('Ada', 'ada@example.com')
      await says('One moment …')
      assert.equal(await looksRight('sending'), height)
      await cut()
      cutting.resolve()
      await says(saved)
      assert.equal(await looksRight('kept'), height)
      for (const [status, json, sentence] of [
        [429, {}, /^Too many attempts/],
        [400, { error: 'this cannot be taken' }, 'This cannot be taken.'],
        [200, { success: true, message: joined }, joined],
      ] as const) {
        await page.unrouteAll()
        await page.reload()
        await prepare()
        await answer(status, json)
        await signUp('Ada', 'ada@example.com')
        await says(sentence)
        assert.equal(await looksRight(String(status)), height)
      }
    })
  }
})

describe('the form and a challenge', { skip }, () => {
  test('ALTCHA is solved while the visitor types, and nobody else is asked; a solution that is refused is replaced', async t => {
    const { page, service, origin, says, fill, signUp, complaints, origins } = await opened(t, {
      env: { CHALLENGE: 'altcha' },
    })
    let challenges = 0
    page.on('request', request => {
      if (request.url().endsWith('/api/challenge')) challenges++
    })
    await page.reload()
    await page.getByLabel('Name').waitFor()
    assert.equal(challenges, 0, 'not before anybody types')
    await fill('Ada', 'ada@example.com')
    await page.getByRole('button').click()
    await says(joined)
    assert.equal(challenges, 1)
    assert.deepEqual([complaints, [...origins].sort()], [[], [origin, service.baseUrl].sort()])
    await page.reload()
    const spend = (route: Route) =>
      route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), altcha: 'spent' }) })
    await page.route('**/api/waitlist*', spend, { times: 1 })
    await signUp('Bob', 'bob@example.com')
    await says('The challenge was not solved, please try again.')
    await page.getByRole('button', { name: 'Join the waitlist' }).click()
    await says(joined)
    assert.deepEqual(emails(service), ['ada@example.com', 'bob@example.com'])
  })

  test('a challenge that cannot be had is an outage; one that is newer than the page asks for a reload', async t => {
    const { page, service, says, signUp } = await opened(t, { env: { CHALLENGE: 'altcha' } })
    await page.route('**/api/challenge', route => route.abort())
    await signUp('Ada', 'ada@example.com')
    await says(saved)
    await page.unrouteAll()
    await says(joined)
    await page.route('**/form.js', async route => {
      const response = await route.fetch()
      return route.fulfill({
        response,
        body: (await response.text()).replace(/"challenge":\{[^}]*\}/, '"challenge":null'),
      })
    })
    await page.reload()
    await signUp('Bob', 'bob@example.com')
    await says('Please reload this page and try again.')
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
      const token = verifier.solve()
      const key = kind === 'cap' ? {} : { CHALLENGE_SITE_KEY: SITE_KEY }
      const env = { CHALLENGE: kind, CHALLENGE_SECRET: SECRET, CHALLENGE_URL: verifier.address, ...key }
      const { script } = vendors[kind].widget('')
      const { page, service, says, signUp, kept, complaints } = await opened(t, {
        env,
        policy: `${POLICY.replace(SERVICE, `${SERVICE} ${new URL(script).origin}`)}; trusted-types waitlist`,
      })
      // A module from another origin needs CORS, as the vendor's has it.
      const headers = { 'access-control-allow-origin': '*', 'content-type': 'text/javascript' }
      await page.route(script, route => route.fulfill({ headers, body: standIn(kind) }))
      const enter = async () => {
        await page.reload()
        await page.getByLabel('Name').focus()
        await page.locator(`[name=${members[kind]}]`).waitFor({ state: 'attached' })
      }
      await enter()
      await signUp('Ada', 'ada@example.com')
      await says('Please solve the challenge.')
      assert.deepEqual([verifier.received.length, await kept()], [0, []])
      await page.evaluate(`solve('${token}')`)
      await signUp('Ada', 'ada@example.com')
      await says(joined)
      await enter()
      await page.evaluate(`solve('${token}')`)
      await signUp('Eve', 'eve@example.com')
      await says('The challenge has expired, please solve a new one.')
      assert.equal(await page.evaluate('document.documentElement.dataset.reset'), '')
      assert.deepEqual(emails(service), ['ada@example.com'])
      assert.deepEqual(
        complaints.filter(text => !/status of 400/.test(text)),
        [],
      )
    })
  }
})

test('the cookie of a signup on another site is kept over https', { skip }, async t => {
  // Each name in `localhost` is this machine; what stands before it makes the site.
  const { originAt, sendTo } = await landing(t, pageWith(FORM), { tls: true })
  const origin = originAt('www.shop.localhost')
  const { baseUrl } = await startService(t, { CORS_ORIGINS: origin, ...pairIn(t).env })
  const service = `https://waitlist.elsewhere.localhost:${new URL(baseUrl).port}`
  sendTo(service)
  const { page } = await openPage(t, browser, origin, { ignoreHTTPSErrors: true })
  await page.getByLabel('Name').fill('Ada')
  await page.getByLabel('Email').fill('ada@example.com')
  await page.getByRole('button').click()
  await page.getByText(joined).waitFor()
  const cookies = await page.context().cookies(service)
  assert.deepEqual(
    cookies.map(({ name, httpOnly, secure }) => [name, httpOnly, secure]),
    [['__Host-waitlist', true, true]],
  )
})
