import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseEnv, promisify } from 'node:util'
import { signupCommand } from '../src/app/serve.ts'
import { readConfig } from '../src/config/load.ts'
import { vendorNames, vendorOf } from '../src/providers/list.ts'
import { anchorsOf, blocksOf, documents, linksIn, root, textOf } from './documents.ts'
import { commandsIn } from './harness/command.ts'
import { checkout, npmStart } from './harness/npm.ts'
import { mistakesIn } from './harness/service.ts'

const all = documents()

test('every link and picture leads somewhere, to a heading too', () => {
  const broken: string[] = []
  for (const path of all) {
    for (const { target, found, anchor } of linksIn(path)) {
      const isThere = existsSync(join(root, found)) && !found.startsWith('..')
      const isKnown = anchor === undefined || (found.endsWith('.md') && isThere && anchorsOf(textOf(found)).has(anchor))
      if (!isThere || !isKnown) broken.push(`${path}: ${target}`)
    }
  }
  assert.deepEqual(broken, [])
})

/** What only works from an empty folder: `.ci/run` types these. */
const setUp = ['npm ci && npm start', 'npm ci && npm test']
const environment = { PATH: process.env.PATH, HOME: process.env.HOME }

const commandsOf = (path: string, under = /(?:)/) =>
  blocksOf(textOf(path))
    .filter(block => block.language === 'sh' && under.test(block.under))
    .flatMap(({ lines }) => lines)

test('the commands of README.md work as they stand there, and answer what it says', async t => {
  const folder = checkout(t)
  const { baseUrl } = await npmStart(t, folder)
  const type = async (command: string) => {
    const typed = command.replaceAll('http://localhost:8080', baseUrl)
    return (await promisify(execFile)('sh', ['-c', typed], { cwd: folder, env: environment })).stdout
  }
  const commands = commandsOf('README.md')
  for (const command of [...setUp, signupCommand('http://localhost:8080')])
    assert.ok(commands.includes(command), command)
  const [first, second] = blocksOf(textOf('README.md'))
    .filter(({ language }) => language === 'json')
    .map(({ lines }) => JSON.parse(lines.join('')))
  for (const command of commands.filter(command => !setUp.includes(command))) {
    const printed = await type(command)
    if (!command.startsWith('curl ')) continue
    const { contactId, ...rest } = JSON.parse(printed)
    assert.match(contactId, /^[0-9a-f-]{36}$/)
    assert.deepEqual({ ...rest, contactId: first.contactId }, first)
    assert.deepEqual(JSON.parse(await type(command)), second)
  }
  assert.match(readFileSync(join(folder, 'contacts.csv'), 'utf8'), /,Ada Lovelace,ada@example\.com,listed,/)
  assert.ok(existsSync(join(folder, 'data', 'waitlist.db')))
})

test('the commands and the script of docs/start.md work as they stand there', async t => {
  const folder = checkout(t)
  const { baseUrl } = await npmStart(t, folder)
  const here = (text: string) => text.replaceAll('http://localhost:8080', baseUrl)
  // Step 4 is typed in test/form/start.test.ts, with a browser.
  for (const command of commandsOf('docs/start.md', /^[123]/).filter(command => !setUp.includes(command))) {
    await promisify(execFile)('sh', ['-c', here(command)], { cwd: folder, env: environment })
  }
  const [script] = blocksOf(textOf('docs/start.md')).filter(({ language }) => language === 'js')
  const shown: string[] = []
  const run = Function('name', 'email', 'show', `return (async () => { ${here(script!.lines.join('\n'))} })()`)
  for (const email of ['bob@example.com', 'bob@example.com', 'nobody']) {
    await run('Bob', email, (sentence: string) => shown.push(sentence))
  }
  assert.deepEqual(shown.slice(0, 2), ['You are on the waitlist.', 'You are already on the waitlist.'])
  assert.match(shown[2]!, /email/)
})

/** What an operator would have in the place of the secrets that the examples show. */
const own: Readonly<Record<string, string>> = {
  LOOPS_API_KEY: 'x',
  WEBHOOK_SECRET: `whsec_${Buffer.alloc(24, 'x').toString('base64')}`,
  ADMIN_TOKEN: 'x'.repeat(40),
  CHALLENGE_SECRET: 'x',
  SLACK_WEBHOOK_URL: 'https://hooks.slack.com/services/x',
  DISCORD_WEBHOOK_URL: 'https://discord.com/api/webhooks/1/x',
  SMTP_URL: 'smtps://me:x@smtp.example.com',
  DATABASE_URL: 'postgres://me:x@db.example.com/waitlist?sslmode=verify-full',
}

test('every example of settings is accepted, without a warning, but for its sample secrets', async () => {
  const server = { BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1' }
  for (const path of all) {
    for (const { lines } of blocksOf(textOf(path)).filter(({ language }) => language === 'ini')) {
      const env = { ...server, ...(parseEnv(lines.join('\n')) as Record<string, string>) }
      const isSecret = /(_KEY|_SECRET|_TOKEN|(SLACK|DISCORD)_WEBHOOK_URL)=|:\/\/.*:.*@/
      const secrets = Object.entries(env).filter(([name, value]) => isSecret.test(`${name}=${value}`))
      const samples = secrets.map(([name]) => name).filter(name => name !== 'CHALLENGE_SITE_KEY')
      const refused = await mistakesIn(env)
      assert.equal(refused.length, samples.length, `${path}: ${refused.join('\n')}`)
      const refusal = (name: string) => `${name} is a sample from our documents: use your own`
      for (const name of samples) assert.ok(refused.some(each => each.startsWith(refusal(name))))
      const { warnings } = await readConfig({ ...env, ...Object.fromEntries(samples.map(name => [name, own[name]!])) })
      assert.deepEqual(warnings, [], path)
    }
  }
})

test('docs/providers.md has the settings of each provider', async () => {
  for (const name of vendorNames) {
    const { title, settings } = await vendorOf(name)
    const part = textOf('docs/providers.md').split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
    assert.ok(part.includes(`\`PROVIDER=${name}\``), title)
    const rows = Object.entries(settings).map(([setting, { required, default: standard, meaning, where }]) => {
      const value = required ? 'required' : standard === undefined ? '–' : `\`${standard}\``
      return `| \`${setting}\` | ${value} | ${meaning} | ${where ?? 'Your choice.'} |`
    })
    assert.deepEqual(part.match(/^\| `.*/gm) ?? [], rows, title)
  }
})

test('docs/commands.md names every command', async t => {
  for (const command of await commandsIn(t)) {
    if (command !== 'serve')
      assert.match(textOf('docs/commands.md'), new RegExp(`^\\|[^|]*\`${command}\``, 'm'), command)
  }
})
