import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseEnv, promisify } from 'node:util'
import { signupCommand } from '../src/cli/serve.ts'
import { readConfig } from '../src/config/config.ts'
import { type SettingsTable, settings } from '../src/config/settings.ts'
import { checkout } from './harness/checkout.ts'
import { npmStart } from './harness/npm-start.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const readme = read('README.md')
const blocks = (language: string, text = readme) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, text]) => text!.trim())
const commands = blocks('sh').flatMap(block => block.split('\n'))

/** What only works from an empty folder: `.ci/run` types these. */
const setUp = ['npm ci && npm start', 'npm ci && npm test']

test('the commands of the README work as they stand there, and answer what it says', { timeout: 60_000 }, async t => {
  const folder = checkout(t)
  const { baseUrl } = await npmStart(t, folder)
  const run = (command: string) =>
    promisify(execFile)('sh', ['-c', command.replaceAll('http://localhost:8080', baseUrl)], {
      cwd: folder,
      env: environment,
    })

  for (const command of commands.filter(command => !setUp.includes(command))) {
    const { stdout } = await run(command)
    if (!command.startsWith('curl ')) continue
    const [first, second] = blocks('json')
    assert.deepEqual(withoutId(stdout), withoutId(first!))
    assert.deepEqual(JSON.parse((await run(command)).stdout), JSON.parse(second!))
  }
  assert.match(readFileSync(join(folder, 'contacts.csv'), 'utf8'), /,Ada Lovelace,ada@example\.com,listed,/)
  assert.equal(JSON.parse(readFileSync(join(folder, 'contacts.jsonl'), 'utf8')).email, 'ada@example.com')
  assert.ok(existsSync(join(folder, 'waitlist-backup.db')))
  assert.ok(existsSync(join(folder, 'data', 'waitlist.db')))
  // People's addresses are in each of them.
  for (const made of readdirSync(folder).filter(name => !lstatSync(join(folder, name)).isSymbolicLink())) {
    assert.equal(statSync(join(folder, made)).mode & 0o077, 0, `others may read ${made}`)
    execFileSync('git', ['check-ignore', '--quiet', '--no-index', made === 'data' ? 'data/' : made], { cwd: root })
  }
})

test('the README shows the two commands of the set-up and the curl line of the start-up text', () => {
  for (const command of setUp) assert.ok(commands.includes(command), command)
  assert.ok(commands.includes(signupCommand('http://localhost:8080')))
})

test('the table of settings is the table of the program', () => {
  const rows = [...read('docs/settings.md').matchAll(/^\| `([A-Z0-9_]+)` \| (.*?) \| (.*) \|$/gm)].map(
    ([, name, value, meaning]) => {
      return { name, value, meaning }
    },
  )
  const table: SettingsTable = settings
  const expected = Object.entries(table).map(([name, { default: standard, unset, meaning }]) => {
    const shown = standard ?? unset
    return { name, value: shown === undefined ? '–' : `\`${shown}\``, meaning }
  })
  assert.deepEqual(rows, expected)
})

test('the examples of settings are accepted', async () => {
  for (const block of ['README.md', 'docs/start.md', 'docs/deploy.md', 'docs/bots.md'].flatMap(path =>
    blocks('ini', read(path)),
  )) {
    const result = await readConfig({ BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1', ...parseEnv(block) })
    assert.ok('config' in result, JSON.stringify(result))
    assert.deepEqual(result.config.warnings, [])
  }
})

test('.env.example has every setting once, as the program explains it, and its values are the defaults', async () => {
  const example = read('.env.example')
  const explained = [...example.matchAll(/^# (.*)\n#([A-Z0-9_]+)=/gm)].map(([, meaning, name]) => ({ name, meaning }))
  assert.deepEqual(
    explained,
    Object.entries(settings).map(([name, { meaning }]) => ({ name, meaning })),
  )
  const values = parseEnv(example.replaceAll(/^#(?=[A-Z0-9_]+=)/gm, ''))
  const { BASE_URL, ...rest } = values
  assert.equal(BASE_URL, 'http://localhost:8080')
  assert.deepEqual(await readConfig(rest), await readConfig({}))
})

test('every production dependency stands in the table with its reason', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const named = [...read('docs/engineering/design.md').matchAll(/^\| `([a-z@/.-]+)` \| .{10,} \|$/gm)].map(
    ([, name]) => name,
  )
  assert.deepEqual(named.sort(), Object.keys(dependencies).sort())
})

const environment = { PATH: process.env.PATH, HOME: process.env.HOME }

function withoutId(text: string): object {
  const { contactId, ...rest } = JSON.parse(text)
  assert.match(contactId, /^[0-9a-f-]{36}$/)
  return rest
}
