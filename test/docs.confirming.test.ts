import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseEnv, promisify } from 'node:util'
import PostalMime from 'postal-mime'
import { readConfig } from '../src/config/config.ts'
import { ofLinks } from '../src/http/messages/links.ts'
import { blocksOf, textOf } from './documents.ts'
import { checkout } from './harness/checkout.ts'
import { startMailServer } from './harness/mail-server.ts'
import { freePort } from './harness/port.ts'
import { startPostgres, unsynced } from './harness/postgres.ts'
import { runProgram, until } from './harness/program.ts'
import { isSlow } from './harness/slow.ts'

const page = textOf('docs/confirming.md')
const blocks = blocksOf(page)
const settings = parseEnv(blocks.find(({ language }) => language === 'ini')!.lines.join('\n')) as Record<string, string>

const server = isSlow ? await startPostgres({ settings: unsynced }) : undefined
after(() => server?.remove())

for (const engine of ['SQLite', 'PostgreSQL'] as const) {
  test(`from the settings to the first who has confirmed, as docs/confirming.md says, on ${engine}`, {
    timeout: 240_000,
    skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
  }, async t => {
    const cwd = checkout(t)
    const [mail, port] = [await startMailServer(t), await freePort()]
    const origin = `http://127.0.0.1:${port}`
    const database = engine === 'SQLite' ? {} : { DATABASE_URL: await server!.database() }
    const own = { SMTP_URL: `smtp://${mail.host}:${mail.port}`, ...database }
    writeFileSync(
      join(cwd, '.env'),
      Object.entries({ ...settings, ...own })
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    )
    const service = await runProgram(t, { HOST: '127.0.0.1', PORT: String(port), SHUTDOWN_DELAY: '0' }, { cwd })
    const env = { PATH: process.env.PATH, HOME: process.env.HOME }
    const type = async (line: string) => (await promisify(execFile)('sh', ['-c', line], { cwd, env })).stdout
    const printed: string[] = []
    for (const line of blocks.filter(({ language }) => language === 'sh').flatMap(block => block.lines)) {
      printed.push(await type(line.replace('http://localhost:8080', origin)))
    }
    const [checked, answered, asked] = printed as [string, string, string]
    assert.match(checked, /mail to you@example\.com: the server took it/)
    assert.ok(page.includes('"alreadyExisted":false,"automationTriggered":false'))
    assert.match(answered, /"success":true,.*"alreadyExisted":false,"automationTriggered":false\}$/)
    assert.match(asked, /ada@example\.com/)

    await until(() => mail.mails.length === 2)
    const textOfMail = async (i: number) => (await PostalMime.parse(mail.mails[i]!.source)).text!.trim()
    const linkIn = (text: string) => /https:\S+\/confirm\?\S+/.exec(text)![0].replace(settings.BASE_URL!, origin)
    const sample = linkIn(await textOfMail(0))
    assert.equal((await fetch(sample)).status, 404, 'the links of a sample are nobody’s')
    const sent = await textOfMail(1)
    const shown = blocks.find(({ language }) => language === 'text')!.lines.join('\n')
    assert.equal(sent.replaceAll(/(?<=token=)\S+/g, '…'), shown)
    const confirmed = await fetch(linkIn(sent), { method: 'POST' })
    assert.match(await confirmed.text(), new RegExp(`<h1>${ofLinks['confirm.done']}</h1>`))
    const [list, show] = [...page.matchAll(/`(?:npm run -s waitlist -- )?((?:list|show) [^`]+)`/g)].map(
      ([, command]) => command!,
    )
    assert.match(await type(`npm run -s waitlist -- ${list}`), /ada@example\.com/)
    assert.match(await type(`npm run -s waitlist -- ${show}`), /confirmed/i)
    assert.equal(await service.end('SIGTERM'), 0)
  })
}

test('its settings are accepted, without a warning', async () => {
  const result = await readConfig(settings)
  assert.ok('config' in result, JSON.stringify(result))
  assert.deepEqual(result.config.warnings, [])
})
