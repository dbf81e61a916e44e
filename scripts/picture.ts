import { readFileSync, statSync } from 'node:fs'
import { landing, openPage, startBrowser } from '../test/harness/browser.ts'
import { startService } from '../test/harness/service.ts'

/** Photographs the landing page of the examples with its form in use: `npx node scripts/picture.ts`. */

const file = new URL('../docs/pictures/landing.png', import.meta.url)
const undo: (() => unknown)[] = []
const scene = { after: (step: () => unknown) => void undo.push(step), diagnostic() {} }

const page = readFileSync(new URL('../examples/landing/index.html', import.meta.url), 'utf8')
const { originAt, sendTo } = await landing(scene as never, page, { policy: "default-src * 'unsafe-inline' data:" })
const origin = originAt('localhost')
const service = await startService(scene as never, { CORS_ORIGINS: origin })
sendTo(service.baseUrl)

const browser = await startBrowser(scene as never)
if ('missing' in browser) throw new Error(browser.missing)
const { page: tab } = await openPage(scene as never, browser, origin, {
  viewport: { width: 1120, height: 730 },
  reducedMotion: 'reduce',
})
await tab.getByLabel('Name').fill('Ada Lovelace')
await tab.getByLabel('Email').fill('ada@example.com')
await tab.getByRole('button').hover()
await tab.screenshot({ path: file.pathname })
process.stdout.write(`${file.pathname}: ${statSync(file).size} bytes\n`)
for (const step of undo.reverse()) await step()
