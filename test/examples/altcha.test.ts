import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { altcha } from '../../src/challenges/altcha.ts'
import { blocksOf, textOf } from '../documents.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { listening } from '../harness/listening.ts'
import { until } from '../harness/program.ts'
import { openTestServer } from '../harness/server.ts'
import { startService, type TestService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const root = new URL('../../', import.meta.url)
const example = (name: string) => new URL(`examples/landing-altcha/${name}`, root)
const widget = (name: string) => new URL(`node_modules/altcha/dist/${name}`, root)

/** What its README has npm get. */
export const widgetFiles: Readonly<Record<string, URL>> = {
  'altcha.min.js': widget('external/altcha.min.js'),
  'altcha.css': widget('external/altcha.css'),
  'pbkdf2.js': widget('workers/pbkdf2.js'),
}

/** Where its README says that each file comes from. */
const files: Readonly<Record<string, readonly [type: string, from: URL]>> = {
  '/': ['text/html', example('index.html')],
  '/waitlist.css': ['text/css', example('waitlist.css')],
  '/waitlist.js': ['text/javascript', example('waitlist.js')],
  '/altcha.min.js': ['text/javascript', widgetFiles['altcha.min.js']!],
  '/altcha.css': ['text/css', widgetFiles['altcha.css']!],
  '/pbkdf2.js': ['text/javascript', widgetFiles['pbkdf2.js']!],
}

const [, policy = ''] = /```\n(default-src .*)\n```/.exec(readFileSync(example('README.md'), 'utf8')) ?? []
export const scriptPath = fileURLToPath(example('waitlist.js'))
export const pagePath = fileURLToPath(example('index.html'))

/** Serves the example with the policy of its README, on an origin of its own; returns that, and how to say where it sends to. */
export async function altchaLanding(test: Pick<TestContext, 'after'>) {
  let service = ''
  const addressed = (text: string) => text.replaceAll('https://waitlist.example.com', service)
  const server = createServer(({ url = '' }, response) => {
    const file = files[url.split('?', 1)[0]!]
    if (file === undefined) return response.writeHead(404).end()
    const [type, from] = file
    response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-security-policy': addressed(policy) })
    response.end(addressed(readFileSync(from, 'utf8')))
  })
  const { port } = new URL(await listening(test, server))
  return {
    origin: `http://localhost:${port}`,
    sendTo(address: string) {
      service = address
    },
  }
}

const started = isSlow
  ? await startBrowser({ after: after as TestContext['after'] })
  : { missing: 'takes longer than npm test may' }
const skip = 'missing' in started && started.missing
const browser = started as Browser

const STATE = `document.querySelector('altcha-widget').getState?.()`

/** The widget waits half a second at least, however quickly it is done. */
const easy = { CHALLENGE: 'altcha', CHALLENGE_RANGE: '50' }

const commands = blocksOf(textOf('examples/landing-altcha/README.md')).flatMap(({ language, lines }) =>
  language === 'sh' ? lines : [],
)

test('the README names the version of the widget that is tested here', () => {
  const { devDependencies } = JSON.parse(textOf('package.json'))
  assert.deepEqual(
    commands.filter(line => line.startsWith('npm ')),
    [`npm install --prefix widget altcha@${devDependencies.altcha}`],
  )
})

test('the commands of the README leave the three files of the widget that are tested here, and nothing else', {
  skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
  timeout: 120_000,
}, async t => {
  const cwd = join(temporaryFolder(t), 'page')
  mkdirSync(cwd)
  // The package comes from the registry, by what this machine says of proxies and certificates.
  for (const line of commands) await promisify(execFile)('sh', ['-c', line], { cwd })
  assert.deepEqual(readdirSync(cwd).sort(), Object.keys(widgetFiles).sort())
  for (const [name, from] of Object.entries(widgetFiles)) {
    assert.ok(readFileSync(join(cwd, name)).equals(readFileSync(from)), name)
  }
})

async function visit(t: TestContext, origin: string, options: BrowserContextOptions = {}) {
  const watched = await openPage(t, browser, origin, options)
  const { page } = watched
  const requests: string[] = []
  page.on('request', request => requests.push(`${request.method()} ${new URL(request.url()).pathname}`))
  const sent = (what: string) => requests.filter(each => each === what).length
  return {
    ...watched,
    signups: () => sent('POST /api/waitlist'),
    challenges: () => sent('GET /api/challenge'),
    async fill(name: string, email: string) {
      await page.getByLabel('Name').fill(name)
      await page.getByLabel('Email').fill(email)
    },
    join: () => page.getByRole('button', { name: 'Join the waitlist' }).click(),
    says: (sentence: string) => page.getByRole('status').getByText(sentence, { exact: true }).waitFor(),
    is: (state: string) => until(async () => (await page.evaluate(STATE)) === state),
  }
}

async function opened(t: TestContext, env: Record<string, string> = {}) {
  const { origin, sendTo } = await altchaLanding(t)
  const service = await startService(t, { ...easy, CORS_ORIGINS: origin, ...env })
  sendTo(service.baseUrl)
  return { ...(await visit(t, origin)), origin, service }
}

const emails = (service: TestService) => contactsIn(service.databasePath).map(({ email }) => email)

async function assertAccessible(page: Page, state: string): Promise<void> {
  await page.evaluate(axe.source)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
    const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
    assert.deepEqual(found, [], `${state}, ${colorScheme}`)
  }
}

describe('the form with the official widget, under a strict policy, on another origin than the service', {
  skip,
  timeout: 120_000,
}, () => {
  test('it is solved while the visitor types; a double click sends once; nothing comes from elsewhere', async t => {
    const { page, service, origin, fill, is, says, signups, challenges, complaints, origins } = await opened(t)
    assert.equal(challenges(), 0, 'not before anybody types')
    await fill('Ada', 'ada@example.com')
    await is('verified')
    await page.getByRole('checkbox', { name: 'Verified', checked: true }).waitFor()
    await assertAccessible(page, 'verified')
    await page.getByRole('button', { name: 'Join the waitlist' }).dblclick()
    await says('You are on the waitlist.')
    assert.deepEqual([challenges(), signups()], [1, 1])
    assert.deepEqual(emails(service), ['ada@example.com'])
    assert.deepEqual(complaints, [])
    assert.deepEqual([...origins].sort(), [origin, service.baseUrl].sort())
  })

  test('the policy that is sent with the page lets no inline script run, and names no other server', async t => {
    const { origin, sendTo } = await altchaLanding(t)
    sendTo('http://localhost:1')
    const policy = (await fetch(origin)).headers.get('content-security-policy')!
    assert.match(policy, /^default-src 'none'; script-src 'self'; .*; connect-src http:\/\/localhost:1; /)
    assert.doesNotMatch(policy, /unsafe|\*|https?:(?!\/\/localhost:1)/)
  })

  test('a click before it is solved is enough: the signup waits for it, and a second click sends nothing', async t => {
    const { page, service, fill, join, says, signups, challenges } = await opened(t)
    const looked = Promise.withResolvers<void>()
    await page.route('**/api/challenge', route => looked.promise.then(() => route.continue()))
    await fill('Ada', 'ada@example.com')
    await join()
    await says('One moment …')
    await assertAccessible(page, 'verifying')
    await page.getByRole('button', { name: 'Join the waitlist' }).dispatchEvent('click')
    assert.equal(signups(), 0)
    looked.resolve()
    await says('You are on the waitlist.')
    assert.deepEqual([challenges(), signups()], [1, 1])
    assert.deepEqual(emails(service), ['ada@example.com'])
  })

  test('a challenge that has expired is solved anew by the next click', async t => {
    const { origin, sendTo } = await altchaLanding(t)
    const challenge = altcha({ secret: 'x', range: 5, lifetime: 8_000 })
    const { baseUrl } = await openTestServer(t, {}, { CORS_ORIGINS: origin }, undefined, { challenge })
    sendTo(baseUrl)
    const { page, fill, is, join, says, challenges, signups } = await visit(t, origin)
    await fill('Ada', 'ada@example.com')
    await is('verified')
    await is('expired')
    await assertAccessible(page, 'expired')
    await join()
    await says('You are on the waitlist.')
    assert.deepEqual([challenges(), signups()], [2, 1])
  })

  test('what the service says of a solution is shown, and the next click solves a new one', async t => {
    const { page, fill, is, join, says, signups, service } = await opened(t)
    await page.route('**/api/waitlist', route => route.abort(), { times: 1 })
    await fill('Ada', 'ada@example.com')
    await is('verified')
    const payload = await page.evaluate<string>(`new FormData(document.querySelector('form')).get('altcha')`)
    const response = await fetch(`${service.baseUrl}/api/waitlist`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Bob', email: 'bob@example.com', altcha: payload }),
    })
    assert.equal(response.status, 200)
    await join()
    await says('The waitlist could not be reached. Please try again.')
    await join()
    await says('The challenge was used for another signup, please solve a new one.')
    await join()
    await says('You are on the waitlist.')
    assert.equal(signups(), 3)
    assert.deepEqual(emails(service), ['bob@example.com', 'ada@example.com'])
  })

  test('challenges that are used up, or a service that is away, leave a sentence and a button that works', async t => {
    const { page, fill, is, join, says, signups } = await opened(t)
    await page.route('**/api/challenge', route =>
      route.fulfill({ status: 429, json: { error: 'too many challenges' } }),
    )
    await fill('Ada', 'ada@example.com')
    await is('error')
    await assertAccessible(page, 'error')
    await join()
    await says('The challenge could not be loaded or solved. Please try again.')
    assert.equal(signups(), 0)
    await page.unroute('**/api/challenge')
    await join()
    await says('You are on the waitlist.')
  })

  for (const isAway of [false, true]) {
    const title = isAway ? 'a service that is away' : 'a service that makes no challenges'
    test(`${title}: a sentence, what to check in the console, and a tooltip that leaves the button free`, async t => {
      const { origin, sendTo } = await altchaLanding(t)
      const service = await startService(t, { CORS_ORIGINS: origin })
      sendTo(service.baseUrl)
      if (isAway) await service.stop()
      const { page, fill, is, join, says, signups } = await visit(t, origin, { viewport: { width: 360, height: 800 } })
      const told: string[] = []
      page.on('console', message => told.push(message.text()))
      await fill('Ada', 'ada@example.com')
      await is('error')
      const warned = page.waitForEvent('console', message => message.type() === 'warning')
      await join()
      await says('The challenge could not be loaded or solved. Please try again.')
      assert.equal(signups(), 0)
      const wanted = `No solution. Does altcha.min.js load, is CHALLENGE=altcha set, is ${origin} in CORS_ORIGINS?`
      assert.equal((await warned).text(), wanted)
      // As docs/troubleshooting.md says.
      const isBlocked = (text: string) => text.includes('/api/challenge') && text.includes('blocked by CORS policy')
      assert.equal(told.some(isBlocked), !isAway)
      const tooltip = page.locator('.altcha-popover', { hasText: 'Verification failed.' })
      await tooltip.waitFor()
      const [above, button] = [await tooltip.boundingBox(), await page.getByRole('button').boundingBox()]
      assert.ok(above!.y + above!.height < button!.y)
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    })
  }

  test('without JavaScript the form says what is missing, and sends nothing', async t => {
    const { origin } = await altchaLanding(t)
    const { page, signups } = await visit(t, origin, { javaScriptEnabled: false })
    assert.match(await page.locator('noscript').innerText(), /^This form needs JavaScript/)
    assert.equal(await page.locator('noscript').isVisible(), true)
    assert.equal(await page.getByRole('button').isDisabled(), true)
    const [sentence, label] = [page.locator('noscript'), page.locator('label').first()]
    const [upper, lower] = [await sentence.boundingBox(), await label.boundingBox()]
    assert.ok(upper!.y + upper!.height + 8 < lower!.y, 'a gap below the sentence')
    await page.getByLabel('Email').press('Enter')
    assert.equal(page.url(), `${origin}/`)
    assert.equal(signups(), 0)
  })
})
