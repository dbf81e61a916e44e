import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import chromium, { inflate } from '@sparticuz/chromium'
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from 'playwright-core'
import { temporaryFolder } from './folder.ts'
import { listening } from './port.ts'
import { fixture } from './tls.ts'

chromium.setGraphicsMode = false
/**
 * The flags that the packed browser is meant to run with, without those that switch protections off: a test of CORS must
 * not pass because nobody checks.
 */
const flags = chromium.args.filter(flag => !/web-security|insecure|site-isolation|single-process|headless/.test(flag))

/**
 * Starts the Chromium that npm brings; where it does not run, says why. Call it once for a file: to start it takes a second,
 * and to unpack it seconds. All it writes is removed at the end.
 */
export async function startBrowser(test: Pick<TestContext, 'after'>): Promise<Browser | { readonly missing: string }> {
  const own = temporaryFolder(test)
  try {
    const folder = await unpacked(own)
    const configuration = join(own, 'fonts.conf')
    const [dir, cache] = [join(folder, 'fonts'), join(own, 'fonts-cache')]
    // Without any font it crashes.
    writeFileSync(
      configuration,
      `<?xml version="1.0"?><fontconfig><dir>${dir}</dir><cachedir>${cache}</cachedir></fontconfig>`,
    )
    const env = {
      ...process.env,
      FONTCONFIG_FILE: configuration,
      // Some machines lack these libraries (NSS).
      LD_LIBRARY_PATH: join(folder, 'al2023', 'lib'),
    }
    const browser = await inFolder(own, () =>
      playwright.launch({ executablePath: join(folder, 'chromium'), args: flags, env }),
    )
    test.after(() => browser.close())
    return browser
  } catch (error) {
    return { missing: `no Chromium starts here: ${(error as Error).message.split('\n', 1)[0]}` }
  }
}

/**
 * The folder into which it was unpacked: once for all files of `npm test`, or in the folder of this one. Whoever comes before
 * that is done unpacks it too; since it gets its name at the end, it is complete.
 */
async function unpacked(own: string): Promise<string> {
  const done = join(process.env.WAITLIST_TEST_CHROMIUM ?? own, 'browser')
  if (existsSync(done)) return done
  const folder = mkdtempSync(`${done}-`)
  const main = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  await inFolder(folder, () =>
    Promise.all([chromium.executablePath(), inflate(join(dirname(main), '..', 'bin', 'al2023.tar.br'))]),
  )
  try {
    renameSync(folder, done)
  } catch (error) {
    if (!existsSync(done)) throw error
    rmSync(folder, { recursive: true })
  }
  return done
}

/** Works with another folder for what is temporary. */
async function inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const { TMPDIR } = process.env
  process.env.TMPDIR = folder
  try {
    return await work()
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
}

export interface WatchedPage {
  readonly page: Page
  /** What a careful user would see in the developer tools: errors, warnings, violations of the policy. */
  readonly complaints: string[]
  /** The origins that were asked for anything. */
  readonly origins: Set<string>
}

/** A page in a context of its own (no shared cookies), with everything noted that should not happen. */
export async function openPage(
  test: Pick<TestContext, 'after'>,
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options)
  test.after(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  const complaints: string[] = []
  const origins = new Set<string>()
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', error => complaints.push(error.message))
  page.on('request', request => {
    if (!request.url().startsWith('data:')) origins.add(new URL(request.url()).origin)
  })
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', violation =>
    console.error('policy violated: ' + violation.violatedDirective + ' by ' + violation.blockedURI))`)
  await page.goto(url)
  return { page, complaints, origins }
}

/** Nothing is wider than the screen. */
export const assertFits = async (page: Page, where: string): Promise<void> =>
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), page.viewportSize()!.width, where)

/** axe-core finds nothing, and nothing is wider than the screen. The page must be open with `bypassCSP`, or allow scripts. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  await assertFits(page, where)
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
  const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
  assert.deepEqual(found, [], where)
}

/** In a page: the address of its Waitlist. */
export const SERVICE = 'https://waitlist.example.com'

/** The one line of the documentation, in an element of its own. */
export const FORM = `<script type="module" src="${SERVICE}/form.js"></script><waitlist-form></waitlist-form>`

/** A page about nothing but its form. */
export const pageWith = (form: string, root = 'lang="en"') => `<!doctype html><html ${root}><head><meta charset="utf-8">
  <title>Join</title><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
  <link rel="icon" href="data:,"></head><body><main><h1>Join</h1>${form}</main></body></html>`

/** Allows what the documentation says, and nothing else. */
export const POLICY = `default-src 'none'; script-src ${SERVICE}; connect-src ${SERVICE}; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'`

export interface Landing {
  /** Under a name that is given, such as `www.shop.localhost`: browsers find all names in `localhost` on this machine. */
  originAt(host: string): string
  /** From now on the form of the page sends to this address. */
  sendTo(service: string): void
}

/** Serves a page on an origin of its own until the test ends. */
export async function landing(
  test: Pick<TestContext, 'after'>,
  page: string,
  { tls = false, policy = POLICY } = {},
): Promise<Landing> {
  let address = ''
  const addressed = (text: string) => text.replaceAll(SERVICE, address)
  const answer: Parameters<typeof createServer>[1] = (_, response) =>
    response
      .setHeader('content-type', 'text/html')
      .setHeader('content-security-policy', addressed(policy))
      .end(addressed(page))
  const pair = () => ({ cert: readFileSync(fixture('first.crt')), key: readFileSync(fixture('first.key')) })
  const { port } = new URL(await listening(test, tls ? createTlsServer(pair(), answer) : createServer(answer)))
  return {
    originAt: host => `${tls ? 'https' : 'http'}://${host}:${port}`,
    sendTo(service) {
      address = service
    },
  }
}
