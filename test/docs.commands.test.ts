import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { sqliteStore } from '../src/stores/sqlite/store.ts'
import { signup } from './contracts/store.place.ts'
import { blocksOf, root, textOf } from './documents.ts'
import { checkout } from './harness/checkout.ts'
import { commandsIn } from './harness/help.ts'
import { npmStart } from './harness/npm-start.ts'
import { isSlow } from './harness/slow.ts'

/** What only works from an empty folder: `.ci/run` types these. */
const setUp = ['npm ci && npm start', 'npm ci && npm test']
const environment = { PATH: process.env.PATH, HOME: process.env.HOME }

/** Documents, or what stands under a heading `##` of one (`document#anchor`). */
const parts = [
  'CONTRIBUTING.md',
  'docs/start.md#1-run-it',
  'docs/start.md#2-sign-somebody-up',
  'docs/start.md#3-see-your-list',
  'docs/deploy.md#which-way',
  'docs/deploy.md#backups',
  'docs/deploy.md#upgrades',
  'docs/deploy.md#monitoring',
  'docs/commands.md',
  'docs/privacy.md',
  'docs/troubleshooting.md',
  'docs/engineering/performance.md#what-stands-in-the-way',
]

describe('the commands of the documents', { timeout: 300_000, skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1' }, () => {
  for (const part of parts) {
    test(`every command of ${part} works as it stands there`, async t => {
      const [document, section] = part.split('#', 2) as [string, string?]
      const lines = blocksOf(textOf(document))
        .filter(({ language, under }) => language === 'sh' && (section === undefined || under === section))
        .flatMap(block => block.lines)
      assert.ok(lines.length > 0)
      const cwd = document === 'CONTRIBUTING.md' ? root : await checkoutWithList(t)
      let service: { baseUrl: string } | undefined
      for (const line of lines.filter(line => !setUp.includes(line))) {
        if (line.endsWith(' serve')) {
          await serves(t, line, cwd)
          continue
        }
        if (line.includes('http://localhost:8080')) service ??= await npmStart(t, cwd, settings)
        // Nobody is there to be asked.
        const typed = line
          .replace(/\bremove\b/, 'remove --yes')
          .replace('http://localhost:8080', service?.baseUrl ?? '')
        const { stdout } = await promisify(execFile)('sh', ['-c', typed], { cwd, env: environment })
        assert.doesNotMatch(stdout, /needs you/, line)
        if (line.includes('-X OPTIONS'))
          assert.match(stdout, /^access-control-allow-origin: https:\/\/example\.com\r$/im)
      }
    })
  }

  test('the script of docs/start.md signs somebody up, and shows what it is told', async t => {
    const { baseUrl } = await npmStart(t, checkout(t))
    const [script] = blocksOf(textOf('docs/start.md')).filter(({ language }) => language === 'js')
    const code = script!.lines.join('\n').replace('http://localhost:8080', baseUrl)
    const shown: string[] = []
    const run = Function('name', 'email', 'show', `return (async () => { ${code} })()`)
    for (const email of ['ada@example.com', 'ada@example.com', 'nobody']) {
      await run('Ada', email, (sentence: string) => shown.push(sentence))
    }
    assert.deepEqual(shown.slice(0, 2), ['You are on the waitlist.', 'You are already on the waitlist.'])
    assert.match(shown[2]!, /email/)
  })

  test('docs/commands.md names every command', async t => {
    const [table] = textOf('docs/commands.md').split('\n## ')
    for (const command of await commandsIn(t)) {
      if (command !== 'serve') assert.match(table!, new RegExp(`^\\|[^|]*\`${command}\``, 'm'), command)
    }
  })
})

const settings = { CORS_ORIGINS: 'https://example.com' }

/** Somebody is on the list. */
async function checkoutWithList(t: TestContext): Promise<string> {
  const cwd = checkout(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
  await store.admit(signup('Ada Lovelace', 'ada@example.com'))
  await store.close()
  return cwd
}

/** The service starts, and ends well when it is told to. */
async function serves(t: TestContext, line: string, cwd: string): Promise<void> {
  const env = { ...environment, HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0' }
  const service = spawn('sh', ['-c', `exec ${line}`], { cwd, env, stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(service, 'close')
  t.after(() => service.kill('SIGKILL'))
  const [log] = await Promise.race([once(service.stdout, 'data'), ended.then(() => [''])])
  assert.match(String(log), /waitlist is ready/)
  service.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
}
