import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import { page as pageOf, policy } from '../../src/admin/page.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { withDatabase } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { delivery, empty, few, million, uncounted } from './readings.ts'

const forAll = { after: after as TestContext['after'] }
const started = isSlow
  ? await startBrowser(forAll)
  : { missing: 'it takes eight seconds of a processor; it runs in .ci/run' }
const skip = 'missing' in started && started.missing
const browser = started as Browser

const hostile = `</title></style><script>console.error('run')</script><img src=x onerror=console.error('loaded')>`
const readings = {
  empty,
  few,
  million,
  uncounted,
  hostile: {
    ...million,
    service: hostile,
    provider: hostile,
    countsFailed: hostile,
    destinations: [{ name: hostile, outage: 'unreachable' as const, lateAfter: 0 }],
    counts: {
      ...million.counts!,
      sources: [{ source: hostile, count: 1 }],
      deliveries: [delivery(hostile, 'waiting', 1, { oldest: million.at, why: hostile })],
    },
  },
}

/** The page of each reading, with the policy it is served with. */
const server = createServer((request, response) => {
  const reading = readings[request.url!.slice(1) as keyof typeof readings]
  const html = pageOf(reading, { refreshes: true, instance: 'process 7 on host-1' })
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy }).end(html)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
forAll.after(() => void server.close().closeAllConnections())
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

test('a browser has nothing to complain about and loads nothing from elsewhere, whatever others typed', {
  skip,
}, async t => {
  const { page, complaints, origins } = await openPage(t, browser, `${origin}/million`)
  assert.equal(
    await page.evaluate('getComputedStyle(document.querySelector("main")).display'),
    'grid',
    'the style works',
  )
  const elements = await page.locator('*').count()
  await page.goto(`${origin}/hostile`)
  assert.equal(await page.locator('h1').textContent(), hostile)
  assert.match(await page.title(), /^1,234,567 · <\/title><\/style><script>/)
  assert.ok((await page.locator('*').count()) < elements)
  assert.equal(await page.locator('script, img, style').count(), 1)
  assert.deepEqual(complaints, [])
  assert.deepEqual([...origins], [origin])
})

test('axe-core finds no violation, and nothing is wider than the screen, in light and dark, on a phone and a desk', {
  skip,
}, async t => {
  const sizes = { phone: { width: 320, height: 740 }, desk: { width: 1440, height: 900 } }
  const looks = (['light', 'dark'] as const).flatMap(scheme => [
    { scheme, size: 'phone' as const },
    { scheme, size: 'desk' as const },
  ])
  for (const { scheme, size } of looks) {
    // Only here may a script be put into the page.
    const options = { colorScheme: scheme, viewport: sizes[size], bypassCSP: true }
    const { page } = await openPage(t, browser, `${origin}/million`, options)
    for (const name of ['million', 'hostile', 'few', 'empty', 'uncounted']) {
      await page.goto(`${origin}/${name}`)
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), sizes[size].width, `${name}, ${size}`)
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
      const found = violations.map(({ id, nodes }) => [id, ...nodes.map(node => node.html)])
      assert.deepEqual(found, [], `${name}, ${scheme}, ${size}`)
    }
  }
})

test('on paper it is dark on white, without anything to click', { skip }, async t => {
  const { page } = await openPage(t, browser, `${origin}/few`, { colorScheme: 'dark' })
  const ground = () => page.evaluate('getComputedStyle(document.querySelector(".card")).backgroundColor')
  assert.notEqual(await ground(), 'rgb(255, 255, 255)')
  await page.emulateMedia({ media: 'print' })
  assert.equal(await ground(), 'rgb(255, 255, 255)')
  assert.ok(!(await page.locator('.refresh').isVisible()))
})

test('without script: people sign up, and the page counts them and names nobody', { skip }, async t => {
  const { baseUrl, adminOrigin, databasePath } = await startService(t, { ADMIN_PORT: '0', ADMIN_HOST: '127.0.0.1' })
  const marks = ['Zebulon', 'quixote', '0198']
  const signUp = async (name: string, email: string) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ name, email })
    return (await fetch(`${baseUrl}/api/waitlist`, { method: 'POST', headers, body })).status
  }
  for (let i = 0; i < 3; i++) assert.equal(await signUp(`Zebulon ${i}`, `sancho${i}@quixote.example`), 200)
  assert.equal(await signUp('Zebulon', 'sancho0@quixote.example'), 200)
  assert.equal(await signUp('Zebulon', 'no address'), 400)
  withDatabase(databasePath, database =>
    database.exec("update contact set source_label = '<b>crab</b>' where number = 1"),
  )
  const { page, complaints, origins } = await openPage(t, browser, adminOrigin!, { javaScriptEnabled: false })
  assert.equal(await page.locator('.number').textContent(), '3')
  const rows = await page.locator('tbody tr').allInnerTexts()
  const shown = rows.map(row => row.split(/\s*[\t\n]\s*/).join(' '))
  for (const row of ['<b>crab</b> 1 33.3%', 'not known 2 66.7%', 'New on the list 3', 'On the list already 1']) {
    assert.ok(shown.includes(row), `${row} is not in ${shown}`)
  }
  const html = await page.content()
  for (const mark of marks) assert.ok(!html.includes(mark), mark)
  assert.deepEqual(complaints, [])
  assert.deepEqual([...origins], [adminOrigin])
  for (const [path, seconds] of [
    ['/', '5'],
    ['/?refresh=off', null],
    ['/metrics', null],
  ] as const) {
    assert.equal((await fetch(adminOrigin + path)).headers.get('refresh'), seconds, path)
  }
  await page.getByRole('link', { name: 'Pause' }).click()
  assert.match((await page.locator('.refresh').textContent())!, /paused/)
  await page.getByRole('link', { name: 'Go on' }).click()
  assert.match((await page.locator('.refresh').textContent())!, /refreshed every 5 s/)
})

test('it is refreshed by itself, unless that was turned off', {
  skip,
}, async t => {
  const { adminOrigin } = await startService(t, { ADMIN_PORT: '0', ADMIN_HOST: '127.0.0.1' })
  const { page } = await openPage(t, browser, adminOrigin!, { viewport: { width: 390, height: 500 } })
  const { page: paused } = await openPage(t, browser, `${adminOrigin}?refresh=off`)
  let times = 0
  paused.on('framenavigated', () => void times++)
  const refreshed = () => page.waitForEvent('load')
  await refreshed()
  await refreshed()
  // What is asked while it is refreshed has no answer.
  const asked = (what: string) => page.evaluate(what).catch(() => null)
  await until(async () => (await asked('history.length')) === 2)
  assert.equal(times, 0)
})
