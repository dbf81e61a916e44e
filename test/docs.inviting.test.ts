import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseEnv, promisify } from 'node:util'
import PostalMime from 'postal-mime'
import { readConfig } from '../src/config/config.ts'
import { allVendors } from '../src/providers/list.ts'
import { blocksOf, textOf } from './documents.ts'
import { startExpress } from './examples/express.ts'
import { checkout } from './harness/checkout.ts'
import { startMailServer } from './harness/mail-server.ts'
import { freePort } from './harness/port.ts'
import { startPostgres, unsynced } from './harness/postgres.ts'
import { runProgram, until } from './harness/program.ts'
import { isSlow } from './harness/slow.ts'

const page = textOf('docs/inviting.md')
const blocks = blocksOf(page)
const settings = parseEnv(blocks.find(({ language }) => language === 'ini')!.lines.join('\n')) as Record<string, string>

const server = isSlow ? await startPostgres({ settings: unsynced }) : undefined
after(() => server?.remove())

for (const engine of ['SQLite', 'PostgreSQL'] as const) {
  test(`from an empty list to an app that lets the first fifty in, as docs/inviting.md says, on ${engine}`, {
    timeout: 240_000,
    skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
  }, async t => {
    const cwd = checkout(t)
    const mail = await startMailServer(t)
    const [admin, database] = [await freePort(), engine === 'SQLite' ? {} : { DATABASE_URL: await server!.database() }]
    // What another machine has elsewhere, and the pace of a test.
    const own = {
      ADMIN_PORT: String(admin),
      SMTP_URL: `smtp://${mail.host}:${mail.port}`,
      MAIL_RATE: '6000',
      ...database,
    }
    const lines = Object.entries({ ...settings, ...own }).map(([name, value]) => `${name}=${value}\n`)
    writeFileSync(join(cwd, '.env'), lines.join(''))
    const service = await runProgram(t, { HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0' }, { cwd })
    const printed = new Map<string, string>()
    for (const line of blocks.filter(({ language }) => language === 'sh').flatMap(block => block.lines)) {
      const { stdout } = await promisify(execFile)('sh', ['-c', line], {
        cwd,
        env: { PATH: process.env.PATH, HOME: process.env.HOME },
      })
      printed.set(line, stdout)
    }
    const of = (part: string) => [...printed].find(([line]) => line.includes(part))?.[1] ?? assert.fail(part)
    assert.match(
      of('--dry-run'),
      /^signed up .*\n.*Person 1 +person1@acme\.example\n(?:.*\n){49}50 people would be invited\.\n$/,
    )
    assert.equal(of('--yes'), '50 people were invited. The running service tells them.\n')
    assert.match(of('stats'), /60 signed up +10 listed, 50 invited/)
    assert.ok(existsSync(join(cwd, 'invited.csv')))

    // One of them went to the owner.
    await until(() => mail.mails.length === 51)
    const sent = await Promise.all(
      mail.mails
        .slice(1)
        .map(async ({ to, source }) => ({ to: to[0]!, text: (await PostalMime.parse(source)).text ?? '' })),
    )
    const invited = new Set(sent.map(({ to }) => to))
    assert.deepEqual(invited, new Set(Array.from({ length: 50 }, (_, i) => `person${i + 1}@acme.example`)))
    const { ADMIN_TOKEN, INVITE_LINK } = settings as { ADMIN_TOKEN: string; INVITE_LINK: string }
    const app = await startExpress(t, { ADMIN_TOKEN, WAITLIST_ADMIN: `http://localhost:${admin}` })
    const link = INVITE_LINK.slice(0, INVITE_LINK.indexOf('{code}'))
    for (const { to, text } of sent) {
      const [, code] = text.split(link)
      const response = await fetch(`${app}?code=${code!.slice(0, 22)}`, { method: 'POST' })
      assert.equal(response.status, 200)
      assert.match(await response.text(), new RegExp(`You are in, Person ${/\d+/.exec(to)![0]}\\.`))
    }
    const { stdout } = await promisify(execFile)('sh', ['-c', 'npm run -s waitlist stats'], { cwd })
    assert.match(stdout, /50 invited \(50 redeemed\)/)
    assert.equal(await service.end('SIGTERM'), 0)
  })
}

test('its settings are accepted', async () => {
  const result = await readConfig(settings)
  assert.ok('config' in result, JSON.stringify(result))
})

test('its table names the tools that are told, and the sentence below it the others', async () => {
  const titles = { yes: [] as string[], no: [] as string[] }
  for (const { title, promises } of Object.values(await allVendors()))
    titles[promises.namesEvents ? 'yes' : 'no'].push(title)
  const [, part = ''] = page.split('### Your email tool\n')
  const [table = '', rest = ''] = part.split('\n\nThe automations of ')
  const rows = [...table.matchAll(/^\| (.*?) \| .* \|$/gm)].slice(1).map(([, title]) => title!)
  assert.deepEqual(rows.toSorted(), titles.yes.toSorted())
  const [sentence = ''] = rest.split('With these')
  assert.deepEqual(
    titles.no.filter(title => !sentence.includes(title)),
    [],
  )
})
