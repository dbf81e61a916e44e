import assert from 'node:assert/strict'
import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import chromium, { inflate } from '@sparticuz/chromium'
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from 'playwright-core'
import { temporaryFolder } from './folder.ts'
import { listening } from './port.ts'
import { fixture } from './tls.ts'

/**
 * The flags that the packed browser is meant to run with, without those that switch protections off: a test of CORS must
 * not pass because nobody checks.
 */
const flags = chromium.args.filter(flag => !/web-security|insecure|site-isolation|single-process|headless/.test(flag))

/**
 * Starts a real Chromium: the one that npm brings, else one of this machine; where there is none, says why.
 * Call it once for a file: to start it takes a second, and to unpack it seconds. All it writes is removed at the end.
 */
export async function startBrowser(test: Pick<TestContext, 'after'>): Promise<Browser | { readonly missing: string }> {
  const folder = temporaryFolder(test)
  const failures: string[] = []
  for (const candidate of [packed, packedWithLibraries, installed]) {
    try {
      const { path, env } = await candidate(folder)
      const browser = await inFolder(folder, () =>
        playwright.launch({ executablePath: path, args: flags, env: { ...process.env, ...env } }),
      )
      test.after(() => browser.close())
      return browser
    } catch (error) {
      failures.push((error as Error).message.split('\n', 1)[0]!)
    }
  }
  return { missing: `no Chromium starts here: ${failures.join('; ')}` }
}

interface Candidate {
  readonly path: string
  readonly env: Record<string, string>
}

/** Its own configuration looks for the fonts in a fixed place; without any font the browser crashes. */
async function packed(own: string): Promise<Candidate> {
  const folder = await unpacked(own, 'browser', () => chromium.executablePath())
  const configuration = join(own, 'fonts.conf')
  const [dir, cache] = [join(folder, 'fonts'), join(own, 'fonts-cache')]
  writeFileSync(
    configuration,
    `<?xml version="1.0"?><fontconfig><dir>${dir}</dir><cachedir>${cache}</cachedir></fontconfig>`,
  )
  return { path: join(folder, 'chromium'), env: { FONTCONFIG_FILE: configuration } }
}

/** The same with the libraries that some machines lack (NSS). */
async function packedWithLibraries(own: string): Promise<Candidate> {
  const { path, env } = await packed(own)
  const main = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const archive = join(dirname(main), '..', 'bin', 'al2023.tar.br')
  const libraries = await unpacked(own, 'libraries', () => inflate(archive))
  return { path, env: { ...env, LD_LIBRARY_PATH: join(libraries, 'al2023', 'lib') } }
}

async function installed(): Promise<Candidate> {
  const names = ['chromium', 'chromium-browser', 'google-chrome']
  const paths = (process.env.PATH ?? '').split(delimiter).flatMap(folder => names.map(name => join(folder, name)))
  const path = paths.find(isExecutable)
  if (path === undefined) throw new Error(`none of ${names.join(', ')} is on PATH`)
  return { path, env: {} }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
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

/** axe-core finds nothing, and nothing is wider than the screen. The page must be open with `bypassCSP`, or allow scripts. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source)
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), page.viewportSize()!.width, where)
  const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
  const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
  assert.deepEqual(found, [], where)
}

/**
 * The folder into which this was unpacked: once for all files, or in the folder of this one. Whoever comes before that
 * is done unpacks it too; since it gets its name at the end, it is complete.
 */
export async function unpacked(own: string, name: string, unpack: () => Promise<unknown>): Promise<string> {
  const done = join(process.env.WAITLIST_TEST_CHROMIUM ?? own, name)
  if (existsSync(done)) return done
  const folder = mkdtempSync(`${done}-`)
  await inFolder(folder, unpack)
  try {
    renameSync(folder, done)
  } catch (error) {
    if (!existsSync(done)) throw error
    rmSync(folder, { recursive: true })
  }
  return done
}

/** Works with another folder for what is temporary. */
export async function inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const { TMPDIR } = process.env
  process.env.TMPDIR = folder
  try {
    return await work()
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
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
