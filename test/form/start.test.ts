import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { blocksOf, textOf } from '../documents.ts'
import { openPage, startBrowser } from '../harness/browser.ts'
import { contactsIn } from '../harness/database.ts'
import { skipSlow } from '../harness/environment.ts'
import { checkout, npmStart } from '../harness/npm.ts'
import { freePort } from '../harness/port.ts'

const written = (language: string) =>
  blocksOf(textOf('docs/start.md'))
    .filter(block => block.language === language && block.under === '4-put-a-form-on-your-page')
    .map(({ lines }) => lines.join('\n'))

test('step 4 of docs/start.md, typed as it stands there, puts a working form on a page of another origin', {
  skip: skipSlow,
}, async t => {
  const started = await startBrowser(t)
  if ('missing' in started) return t.skip(started.missing)
  const folder = checkout(t)
  const port = String(await freePort())
  const [page, settings, command] = [...written('html'), ...written('ini'), ...written('sh')].map(text =>
    text.replaceAll('3000', port),
  )
  writeFileSync(join(folder, '.env'), settings!)
  const { baseUrl } = await npmStart(t, folder)
  writeFileSync(join(folder, 'page.html'), page!.replace('http://localhost:8080', baseUrl))
  const server = spawn('sh', ['-c', `exec ${command}`], { cwd: folder, stdio: 'ignore' })
  t.after(() => server.kill())
  const url = `http://localhost:${port}`
  while (!(await fetch(url).catch(() => null))) await new Promise(resolve => setTimeout(resolve, 50))
  const { page: tab } = await openPage(t, started, url)
  await tab.getByLabel('Name').fill('Ada')
  await tab.getByLabel('Email').fill('ada@example.com')
  await tab.getByRole('button', { name: 'Join the waitlist' }).click()
  await tab.getByText('You are on the waitlist.').waitFor()
  assert.deepEqual(
    contactsIn(join(folder, 'data', 'waitlist.db')).map(({ email }) => email),
    ['ada@example.com'],
  )
})
