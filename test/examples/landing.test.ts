import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import { build } from 'esbuild'
import fc from 'fast-check'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { EMAIL_PATTERN, parseSignup } from '../../src/waitlist/rules/signup.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { listening } from '../harness/listening.ts'
import { startReceiver } from '../harness/receiver.ts'
import { openTestServer } from '../harness/server.ts'
import { startService, type TestService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { fixture, pairIn } from '../harness/tls.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

/** The two examples with a form, as pages. */
export type Example = 'landing/index.html' | 'landing-react/Waitlist.tsx'

export const pathOf = (example: Example) => fileURLToPath(new URL(`../../examples/${example}`, import.meta.url))

async function pageOf(example: Example): Promise<string> {
  if (example.endsWith('.html')) return readFileSync(pathOf(example), 'utf8')
  const contents = `
    import { StrictMode } from 'react'
    import { createRoot } from 'react-dom/client'
    import { Waitlist } from ${JSON.stringify(pathOf(example))}
    const root = createRoot(document.querySelector('main'))
    const joined = outcome => { document.documentElement.dataset.outcome = outcome }
    root.render(<StrictMode><Waitlist service="https://waitlist.example.com" onJoined={joined} /></StrictMode>)`
  const stdin = { contents, loader: 'tsx', resolveDir: fileURLToPath(new URL('.', import.meta.url)) } as const
  // Not minified, so that React warns of what it does not like.
  const { outputFiles } = await build({ stdin, bundle: true, write: false, jsx: 'automatic', format: 'esm' })
  return `<!doctype html><html lang="en" style="background: Canvas"><head><meta charset="utf-8"><title>React</title>
    <meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
    <link rel="icon" href="data:,"></head><body><main></main>
    <script type="module">${outputFiles[0]!.text}</script></body></html>`
}

export interface Landing {
  /** Under a name that is given, such as `www.shop.localhost`: browsers find all names in `localhost` on this machine. */
  originAt(host: string): string
  /** From now on the form of the page sends to this address. */
  sendTo(service: string): void
}

/** Serves an example on an origin of its own until the test ends. */
export async function landing(test: Pick<TestContext, 'after'>, example: Example, tls = false): Promise<Landing> {
  const page = await pageOf(example)
  let address = ''
  const answer: Parameters<typeof createServer>[1] = (_, response) =>
    response.setHeader('content-type', 'text/html').end(page.replace('https://waitlist.example.com', address))
  const pair = () => ({ cert: readFileSync(fixture('first.crt')), key: readFileSync(fixture('first.key')) })
  const { port } = new URL(await listening(test, tls ? createTlsServer(pair(), answer) : createServer(answer)))
  return {
    originAt: host => `${tls ? 'https' : 'http'}://${host}:${port}`,
    sendTo(service) {
      address = service
    },
  }
}

const forAll = { after: after as TestContext['after'] }
// In `npm test` the same form is tried from the documentation page, by test/http/docs.browser.test.ts.
const started = isSlow ? await startBrowser(forAll) : { missing: 'takes longer than npm test may' }
const skip = 'missing' in started && started.missing
const browser = started as Browser

const page = readFileSync(pathOf('landing/index.html'), 'utf8')
const component = readFileSync(pathOf('landing-react/Waitlist.tsx'), 'utf8')

test('the form accepts the email addresses that the service accepts, and no others', () => {
  const [, source = ''] = /const address = \/(.*)\/i\n/.exec(page) ?? []
  const address = new RegExp(source, 'i')
  assert.ok(component.includes(`/${source}/i`))
  const piece = fc.constantFrom(
    'a',
    'Z',
    '9',
    '.',
    '@',
    '-',
    '_',
    '+',
    "'",
    'é',
    'ſ',
    ' ',
    '..',
    'xn--a',
    'a'.repeat(63),
    '/',
  )
  const near = fc.array(piece, { maxLength: 9 }).map(list => list.join(''))
  const right = fc.stringMatching(new RegExp(`^${EMAIL_PATTERN}$`))
  const known = [
    'a@b.c',
    'a@b',
    'a.@b.cc',
    '.a@b.cc',
    'a..b@c.dd',
    'a@-b.cc',
    'a@b-.cc',
    'a@b.c-',
    'a@b.1c',
    'a@b.-c',
    'a@b.c.',
  ]
  fc.assert(
    fc.property(
      fc.oneof(
        near,
        near.map(text => `a@${text}`),
        near.map(text => `${text}@example.com`),
        right,
      ),
      text => {
        const isOurs =
          text === text.trim() && text.length <= 255 && !('problem' in parseSignup({ name: 'Ada', email: text }))
        if (text === text.trim() && text.length <= 255) assert.equal(address.test(text), isOurs, text)
      },
    ),
    { numRuns: isSlow ? 20_000 : 1_000, examples: known.map(text => [text]) },
  )
})

const sentences = {
  new: 'You are on the waitlist.',
  known: 'You are already on the waitlist.',
  saved: 'Your signup is saved. You will be on the waitlist shortly.',
  sending: 'One moment …',
  slow: 'This takes longer than usual …',
  late: 'No answer came, so we do not know whether it arrived. Trying again is safe: nobody is listed twice.',
  offline: 'You are offline. Please try again when you are connected.',
  unreachable: 'The waitlist could not be reached. Please try again.',
  unavailable: 'The waitlist service is temporarily unavailable, please try again.',
}

interface Visit {
  readonly page: Page
  readonly complaints: readonly string[]
  readonly origins: ReadonlySet<string>
  /** How many signups the page has sent. */
  sent(): number
  signUp(name: string, email: string): Promise<void>
  /** Waits until the form says this to everybody, also to who cannot see it. */
  says(sentence: string): Promise<void>
  /** Waits until a field has this hint, or none, and is marked accordingly. */
  hints(field: 'Name' | 'Email', hint: string): Promise<void>
}

async function visit(t: Pick<TestContext, 'after'>, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const { page, complaints, origins } = await openPage(t, browser, url, options)
  let sent = 0
  page.on('request', request => {
    if (request.method() === 'POST') sent++
  })
  return {
    page,
    complaints,
    origins,
    sent: () => sent,
    async signUp(name, email) {
      await page.getByLabel('Name').fill(name)
      await page.getByLabel('Email').fill(email)
      await page.getByRole('button').click()
    },
    says: sentence => page.getByRole('status').getByText(sentence, { exact: true }).waitFor(),
    async hints(field, hint) {
      const described = page
        .getByLabel(field)
        .and(page.locator(hint === '' ? ':not([aria-invalid=true])' : '[aria-invalid=true]'))
      await described.waitFor()
      const id = await described.getAttribute('aria-describedby')
      const of = page.locator(`[id="${id}"]`)
      await (hint === '' ? of.and(page.locator(':empty')) : of.getByText(hint, { exact: true })).waitFor({
        state: 'attached',
      })
    },
  }
}

/** On a phone and at a desk, in light and dark: nothing sticks out, and axe finds no violation. */
async function looksRight({ page }: Visit, state: string): Promise<void> {
  await page.evaluate(axe.source)
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [320, 1280]) {
      await page.setViewportSize({ width, height: 800 })
      // Without motion, so that no colour is looked at on its way.
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      assert.equal(
        await page.evaluate('document.documentElement.scrollWidth'),
        width,
        `${state}: wider than ${width} px`,
      )
      const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
      const found = violations
        // A page about nothing but the component has no heading.
        .filter(({ id }) => id !== 'page-has-heading-one')
        .map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
      assert.deepEqual(found, [], `${state}, ${colorScheme}, ${width} px`)
    }
  }
}

const examples: Example[] = ['landing/index.html', 'landing-react/Waitlist.tsx']

for (const example of examples) {
  describe(`${example} in a browser, on another origin than the service`, { skip, timeout: 240_000 }, () => {
    /** A page of the example, and the service that it sends to. */
    async function opened(t: TestContext, env: Record<string, string> = {}, options: BrowserContextOptions = {}) {
      const { originAt, sendTo } = await landing(t, example)
      const origin = originAt('localhost')
      const service = await startService(t, { CORS_ORIGINS: origin, ...env })
      sendTo(service.baseUrl)
      const visitor = await visit(t, origin, options)
      return { ...visitor, visitor, origin, service }
    }
    const emails = (service: TestService) => contactsIn(service.databasePath).map(({ email }) => email)
    const joined = (page: Page) => page.evaluate('document.documentElement.dataset.outcome')

    test('a new address and one that is known; a double click sends once; nothing comes from elsewhere', async t => {
      const { visitor, page, service, origin, signUp, says, sent, complaints, origins } = await opened(t)
      await page.getByLabel('Name').fill(' Ada Lovelace ')
      await page.getByLabel('Email').fill('ada@example.com')
      const height = () => page.locator('form').evaluate(({ offsetHeight }) => offsetHeight)
      const before = await height()
      await page.getByRole('button').dblclick()
      await says(sentences.new)
      await page.getByRole('status').and(page.locator(':focus')).waitFor()
      assert.equal(sent(), 1)
      assert.equal(await page.getByLabel('Name').isVisible(), false)
      assert.deepEqual((await page.getByRole('status').innerText()).split('\n'), [
        'Thank you, Ada Lovelace.',
        sentences.new,
        'We will write to ada@example.com when it is your turn.',
      ])
      assert.equal(await height(), before, 'nothing moves')
      await looksRight(visitor, 'done')
      if (example.endsWith('tsx')) assert.equal(await joined(page), 'new')
      await page.reload()
      await signUp('Ada', 'ADA@example.com')
      await says(sentences.known)
      if (example.endsWith('tsx')) assert.equal(await joined(page), 'known')
      assert.deepEqual(emails(service), ['ada@example.com'])
      assert.deepEqual(complaints, [])
      assert.deepEqual([...origins].sort(), [origin, service.baseUrl].sort())
    })

    test('a hint comes when a field is left, goes while it is put right, and a submission leads to the first', async t => {
      const { visitor, page, hints, sent, signUp } = await opened(t)
      const [name, email] = [page.getByLabel('Name'), page.getByLabel('Email')]
      await name.focus()
      await email.focus()
      await hints('Name', '')
      await email.pressSequentially('ada@')
      await hints('Email', '')
      await name.fill('é'.repeat(101))
      await hints('Email', 'Please check this email address.')
      await hints('Name', '')
      await page.getByRole('button').click()
      await hints('Name', 'Please use at most 100 characters.')
      await name.and(page.locator(':focus')).waitFor()
      await looksRight(visitor, 'invalid')
      await name.fill('🚀'.repeat(100))
      await hints('Name', '')
      await email.pressSequentially('example.com')
      await hints('Email', '')
      await signUp(' ', ' ')
      await hints('Name', 'Please enter your name.')
      await hints('Email', 'Please enter your email address.')
      await signUp('Ada', `${'a'.repeat(244)}@example.com`)
      await hints('Email', 'Please use at most 255 characters.')
      assert.equal(sent(), 0)
    })

    const outages = [
      ['a provider that is not reached', 502, (url: string) => loopsSettings(url)],
      ['a key that the provider refuses', 500, (url: string) => ({ ...loopsSettings(url), LOOPS_API_KEY: 'wrong' })],
    ] as const
    for (const [title, status, settings] of outages) {
      test(`saved but late is a success: ${status}, ${title}`, async t => {
        const vendor = await startReceiver(t, loopsFake().answer)
        if (status === 502) vendor.chaos(1, 1, ['503'])
        const { page, says, signUp, service } = await opened(t, { PROVIDER: 'loops', ...settings(vendor.url) })
        const answered = page.waitForResponse(response => response.request().method() === 'POST')
        await signUp('Ada', 'ada@example.com')
        await says(sentences.saved)
        assert.equal((await answered).status(), status)
        if (example.endsWith('tsx')) assert.equal(await joined(page), 'saved')
        assert.deepEqual(emails(service), ['ada@example.com'])
      })
    }

    test('what only the service can tell is said at its field, and what was typed stays', async t => {
      const vendor = await startReceiver(t, loopsFake().answer)
      const { page, hints, signUp } = await opened(t, { PROVIDER: 'loops', ...loopsSettings(vendor.url) })
      await signUp('Ada\u0007', 'ada@example.com')
      await hints('Name', 'Name must not contain control characters.')
      await signUp('Ada', 'refused@example.com')
      await hints('Email', 'The email provider does not accept this address: it is not valid there.')
      assert.equal(await page.getByLabel('Email').inputValue(), 'refused@example.com')
      await page.getByLabel('Email').and(page.locator(':focus')).waitFor()
    })

    /** Somebody else at the same address uses up the quota. */
    async function useUp({ baseUrl }: TestService): Promise<void> {
      const { status } = await fetch(`${baseUrl}/api/waitlist`, { method: 'POST' })
      assert.equal(status, 400)
    }

    test('after an attempt too many one sentence counts down, is read aloud once, and nothing is sent', async t => {
      const { visitor, page, signUp, service, sent } = await opened(t, { RATE_LIMIT: '1', RATE_LIMIT_WINDOW: '10m' })
      await useUp(service)
      await page.clock.install()
      await signUp('Ada', 'ada@example.com')
      const status = page.getByRole('status')
      await status.getByText('Too many attempts. You can try again in 10 min.').waitFor()
      await page.clock.fastForward(540_000)
      await status.getByText(/^Too many attempts\. You can try again in [1-9]\d? s\.$/).waitFor()
      assert.equal(await status.getAttribute('aria-live'), 'off')
      assert.equal((await page.locator('main, form').first().innerText()).match(/try again in/gi)!.length, 1)
      await page.getByLabel('Email').press('Enter')
      await page.getByRole('button', { name: 'Join the waitlist', disabled: true }).dispatchEvent('click')
      await looksRight(visitor, 'limited')
      assert.equal(sent(), 1)
    })

    test('what is not saved is an error, and what was typed stays for the next try', async t => {
      const { originAt, sendTo } = await landing(t, example)
      const origin = originAt('localhost')
      let isFull = true
      const server = await openTestServer(t, {}, { CORS_ORIGINS: origin }, store => ({
        ...store,
        admit: signup => (isFull ? Promise.reject(new Error('full')) : store.admit(signup)),
      }))
      sendTo(server.baseUrl)
      const visitor = await visit(t, origin)
      await visitor.signUp('Ada', 'ada@example.com')
      await visitor.says(sentences.unavailable)
      isFull = false
      await visitor.page.getByRole('button').click()
      await visitor.says(sentences.new)
    })

    test('without a network it says so and sends nothing; a service that is gone is told apart from that', async t => {
      const { page, says, signUp, sent, complaints, service } = await opened(t)
      await page.context().setOffline(true)
      await signUp('Ada', 'ada@example.com')
      await says(sentences.offline)
      assert.equal(sent(), 0)
      await page.context().setOffline(false)
      await service.stop()
      await page.getByRole('button').click()
      await says(sentences.unreachable)
      assert.ok(complaints.some(text => /Is it running, and is http:\S+ in its CORS_ORIGINS\?$/.test(text)))
    })

    test('a slow answer gets a word, and none at all a sentence that is true; then it may be sent again', async t => {
      const { originAt, sendTo } = await landing(t, example)
      const origin = originAt('localhost')
      const fields = {
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        'access-control-allow-headers': 'Content-Type',
      }
      // Answers preflights, and nothing else.
      const silent = createServer(({ method }, response) => {
        if (method === 'OPTIONS') response.writeHead(204, fields).end()
      })
      sendTo(await listening(t, silent))
      const visitor = await visit(t, origin)
      const { page, says, signUp, sent } = visitor
      await page.clock.install()
      await signUp('Ada', 'ada@example.com')
      await says(sentences.sending)
      await page.clock.runFor(4_000)
      await says(sentences.slow)
      await page.getByLabel('Email').press('Enter')
      await page.clock.runFor(26_000)
      await says(sentences.late)
      assert.equal(sent(), 1)
      await looksRight(visitor, 'late')
      await page.getByRole('button').click()
      await says(sentences.sending)
      assert.equal(sent(), 2)
    })

    test('the keyboard is enough, on a phone the fields are of a size and a kind that help', async t => {
      const { page, says } = await opened(t, {}, { viewport: { width: 320, height: 640 } })
      await page.getByRole('button').and(page.locator(':enabled')).waitFor()
      await page.keyboard.press('Tab')
      await page.keyboard.type('Ada')
      await page.keyboard.press('Tab')
      await page.keyboard.type('ada@example.com')
      const fields = await page
        .locator('input')
        .evaluateAll(inputs =>
          inputs.map(input => [
            input.getAttribute('type'),
            input.getAttribute('autocomplete'),
            input.getBoundingClientRect().height >= 44,
          ]),
        )
      assert.deepEqual(fields, [
        [null, 'name', true],
        ['email', 'email', true],
      ])
      const sizes = `[...document.querySelectorAll('input')].map(input => parseFloat(getComputedStyle(input).fontSize))`
      assert.ok(
        (await page.evaluate<number[]>(sizes)).every(size => size >= 16),
        'iOS does not zoom in',
      )
      const outline = () => page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
      assert.equal(await outline(), 'solid')
      await page.keyboard.press('Tab')
      assert.equal(await outline(), 'solid')
      await page.keyboard.press('Space')
      await says(sentences.new)
    })

    test('the query of the page is handed on', async t => {
      const { page, says, signUp, service, origin } = await opened(t, { TRACK_SOURCES: 'true' })
      await page.goto(`${origin}/?utm_source=newsletter&gclid=1&ref=ada`)
      await signUp('Ada', 'ada@example.com')
      await says(sentences.new)
      const rows = withDatabase(service.databasePath, database => database.prepare('select source from contact').all())
      assert.deepEqual(
        rows.map(({ source }) => source),
        ['{"utm_source":"newsletter","ref":"ada"}'],
      )
    })
  })
}

/** Each name in `localhost` is this machine; what stands before it makes the site. */
const [page1, same, other] = ['www.shop.localhost', 'waitlist.shop.localhost', 'waitlist.elsewhere.localhost']
const settings = [
  ['http', 'localhost', 'localhost', 'lax', 'kept'],
  ['http', page1, same, 'lax', 'kept'],
  ['https', page1, same, 'strict', 'kept'],
  ['https', page1, other, 'strict', 'dropped'],
  ['https', page1, other, 'none', 'kept'],
] as const

describe('the cookie of a signup on another origin', { skip }, () => {
  for (const [scheme, pageHost, serviceHost, sameSite, expected] of settings) {
    const where = `${scheme}, from ${pageHost} to ${serviceHost}`
    test(`is ${expected} with COOKIE_SAME_SITE=${sameSite}: ${where}; the signup is stored all the same`, async t => {
      const tls = scheme === 'https'
      const { originAt, sendTo } = await landing(t, 'landing/index.html', tls)
      const origin = originAt(pageHost)
      const env = { CORS_ORIGINS: origin, COOKIE_SAME_SITE: sameSite, ...(tls ? pairIn(t).env : {}) }
      const { baseUrl, databasePath } = await startService(t, env)
      const service = `${scheme}://${serviceHost}:${new URL(baseUrl).port}`
      sendTo(service)
      const { page, signUp, says, origins } = await visit(t, origin, { ignoreHTTPSErrors: true })
      await signUp('Ada', 'ada@example.com')
      await says(sentences.new)
      assert.deepEqual(
        contactsIn(databasePath).map(({ email }) => email),
        ['ada@example.com'],
      )
      const cookies = await page.context().cookies(service)
      assert.deepEqual(
        cookies.map(({ name, value, httpOnly, secure }) => [name, value, httpOnly, secure]),
        expected === 'dropped' ? [] : [[tls ? '__Host-waitlist' : 'waitlist', '1', true, tls]],
      )
      assert.equal(await page.evaluate('document.cookie'), '')
      assert.deepEqual([...origins].sort(), [origin, service].sort())
    })
  }
})

test('without JavaScript the form says what it needs, and sends nothing anywhere', { skip }, async t => {
  const { originAt } = await landing(t, 'landing/index.html')
  const { page, sent } = await visit(t, originAt('localhost'), { javaScriptEnabled: false })
  const words = page.locator('noscript')
  assert.equal(await words.isVisible(), true)
  assert.match(await words.innerText(), /^This form needs JavaScript/)
  await page.getByLabel('Name').fill('Ada')
  await page.getByLabel('Email').fill('ada@example.com')
  await page.getByLabel('Email').press('Enter')
  assert.equal(await page.getByRole('button').isDisabled(), true)
  assert.equal(page.url(), `${originAt('localhost')}/`)
  assert.equal(sent(), 0)
})
